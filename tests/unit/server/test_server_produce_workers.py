"""A batch that is large and has to be compressed anew is left to a worker: the loop is for others meanwhile."""

import random
from typing import Any

import pytest

from ottla.base.ports import Workers
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.sim.client import SimulatedClient, records_of
from ottla.sim.world import World
from ottla.wire.batches import Record, build_batch


class WatchedWorkers:
    """Workers that note the names of what they were given."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.names: list[str] = []

    def run(self, work: Any) -> Any:
        self.names.append(getattr(getattr(work, "func", work), "__name__", ""))
        return self._workers.run(work)


@pytest.mark.parametrize("version", [8, 13])
@pytest.mark.parametrize(("codec", "kept", "size", "in_worker"), [
    (0, "gzip", 20_000, True), (0, "gzip", 100, False), (1, "producer", 20_000, True), (0, "producer", 20_000, False)])
def test_who_inspects_a_batch(version: int, codec: int, kept: str, size: int, in_worker: bool) -> None:
    async def story(world: World) -> bool:
        ports = world.start("node")
        config = node_config({"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node")
        node: Node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        await client.create_topic("t", 1, {"compression.type": kept})
        watched = node.broker.workers = WatchedWorkers(ports.workers)
        value = random.Random(1).randbytes(size)
        batch = build_batch([Record(timestamp=ports.clock.now_ms(), value=value)], codec=codec)
        answer = await client.produce("t", 0, bytes(batch), acks=-1, version=version)
        assert answer.error_code == 0
        fetched = records_of((await client.fetch("t", 0, 0)).records, 0)
        assert [record.value for record in fetched] == [value]
        await world.within(ports, node.stop())
        return "inspect" in watched.names

    with World(5) as world:
        assert world.run(story(world)) is in_worker
