"""Deferred requests: those that wait for one thing after another, and those whose client disconnects meanwhile."""

import asyncio

import pytest

from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.server.connection_state import Event, State
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.world import World
from ottla.wire.batches import Record, build_batch
from tests.unit.server.test_server_connection_state import WatchedTransitions

DEFERRED_AGAIN = (State.DEFERRED, Event.DEFER)
COMPLETED_LATE = (State.CLOSED, Event.COMPLETE)


@pytest.fixture
def transitions(monkeypatch: pytest.MonkeyPatch) -> WatchedTransitions:
    table = WatchedTransitions()
    monkeypatch.setattr("ottla.server.connection.TRANSITIONS", table)
    return table


@pytest.mark.parametrize("disconnects", [False, True])
def test_produce_waits_for_a_worker_and_then_for_a_flush(disconnects: bool, transitions: WatchedTransitions) -> None:
    async def scenario(world: World) -> list[bytes | None]:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        network = world.start("client").network
        client, other = SimulatedClient(network, "node", 9092), SimulatedClient(network, "node", 9092)
        await client.connect()
        await other.connect()
        await client.create_topic("t", 1, {"flush.messages": "1", "compression.type": "gzip"})
        other.topic_ids.update(client.topic_ids)
        batch = build_batch([Record(timestamp=ports.clock.now_ms(), value=bytes(range(256)) * 100)])
        produced = asyncio.ensure_future(client.produce("t", 0, bytes(batch), acks=-1))
        if disconnects:
            partition = node.broker.partition("t", 0)
            assert partition is not None
            while not partition.log.log_end_offset:
                await asyncio.sleep(0.0001)
            client.close()
            with pytest.raises(Disconnected):
                await produced
            await asyncio.sleep(1)
        else:
            assert (await produced).error_code == 0
        fetched = await other.fetch("t", 0, 0)
        await world.within(ports, node.stop())
        return [record.value for record in records_of(fetched.records, 0)]

    with World(5) as world:
        assert world.run(scenario(world)) == [bytes(range(256)) * 100]
    assert DEFERRED_AGAIN in transitions.used
    assert (COMPLETED_LATE in transitions.used) == disconnects
