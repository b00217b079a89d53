"""Writes to a full disk fail with a retriable error, and succeed again once there is space."""

import errno

from ottla.base.errors import ErrorCode
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.sim.client import SimulatedClient, records_of
from ottla.sim.world import World
from ottla.wire.batches import Record, build_batch


def test_produce_to_a_full_disk_fails_and_then_recovers() -> None:
    async def scenario(world: World) -> tuple[list[int], list[bytes | None]]:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        await client.create_topic("t", 1)
        codes = []
        for number in range(4):
            if number in (1, 2):
                ports.disk.fail("append", 1, errno.ENOSPC if number == 1 else errno.EDQUOT)
            batch = build_batch([Record(timestamp=ports.clock.now_ms(), value=b"%d" % number)])
            codes.append((await client.produce("t", 0, bytes(batch), acks=-1)).error_code)
        fetched = await client.fetch("t", 0, 0)
        await world.within(ports, node.stop())
        return codes, [record.value for record in records_of(fetched.records, 0)]

    with World(3) as world:
        codes, values = world.run(scenario(world))
    assert codes == [0, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert values == [b"0", b"3"]
