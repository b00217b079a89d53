"""Large batches that must be recompressed are validated by workers, so that they do not block the loop."""

import random
from typing import Any

import pytest

from ottla.base.ports import Processes, Workers
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.world import World
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData


class RecordingWorkers:
    """Workers that record the names of their functions."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.names: list[str] = []

    def run(self, work: Any) -> Any:
        self.names.append(getattr(getattr(work, "func", work), "__name__", ""))
        return self._workers.run(work)


class RecordingProcesses:
    """Child processes that record the names of their functions."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.names: list[str] = []

    def run(self, work: str, request: bytes, on_report: Any) -> Any:
        self.names.append(work)
        return self._processes.run(work, request, on_report)


@pytest.mark.parametrize("version", [8, 13])
@pytest.mark.parametrize(
    ("codec", "topic_codec", "size", "in_worker"),
    [(0, "gzip", 20_000, True), (0, "gzip", 100, False), (1, "producer", 20_000, True), (0, "producer", 20_000, False)],
)
def test_where_a_batch_is_validated(version: int, codec: int, topic_codec: str, size: int, in_worker: bool) -> None:
    async def scenario(world: World) -> bool:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        await client.create_topic("t", 1, {"compression.type": topic_codec})
        watched = node.broker.workers = RecordingWorkers(ports.workers)
        value = random.Random(1).randbytes(size)
        batch = build_batch([Record(timestamp=ports.clock.now_ms(), value=value)], codec=codec)
        response = await client.produce("t", 0, bytes(batch), acks=-1, version=version)
        assert response.error_code == 0
        fetched = records_of((await client.fetch("t", 0, 0)).records, 0)
        assert [record.value for record in fetched] == [value]
        await world.within(ports, node.stop())
        return "validate_batch" in watched.names

    with World(5) as world:
        assert world.run(scenario(world)) is in_worker


@pytest.mark.parametrize("version", [8, 13])
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize(("size", "validations"), [(60_000, 0), (140_000, 1), (1_000_000, 1), (5_000_000, 2)])
def test_small_batch_that_decompresses_to_a_large_one_is_validated_by_a_worker(
    version: int, codec: int, size: int, validations: int
) -> None:
    """Each batch of the request is appended once, and there is one response. Very large ones are validated one at a
    time, by a child process."""

    async def scenario(world: World) -> None:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        await client.create_topic("t", 3, {})
        watched = node.broker.workers = RecordingWorkers(ports.workers)
        others = node.broker.processes = RecordingProcesses(ports.processes)
        now_ms = ports.clock.now_ms()
        batches = [
            bytes(build_batch([Record(timestamp=now_ms, value=bytes(count))], codec=codec)) for count in (10, size, 20)
        ]
        parts = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
        topic = TopicProduceData(partition_data=parts)
        if version >= 13:
            topic.topic_id = client.topic_ids["t"]
        else:
            topic.name = "t"
        for round_number in range(2):
            response = await client.call(
                ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), ProduceResponse, version
            )
            results = response.responses[0].partition_responses
            assert [(result.index, result.error_code, result.base_offset) for result in results] == [
                (index, 0, round_number) for index in range(3)
            ]
        fetched = [(await client.fetch("t", index, 0)).records for index in range(3)]
        lengths = [[len(record.value or b"") for record in records_of(records, 0)] for records in fetched]
        assert lengths == [[10] * 2, [size] * 2, [20] * 2]
        if len(batches[1]) <= 4096:
            assert watched.names.count("validate_batch") == 2 * min(validations, 1)
            assert others.names == ["ottla.runtime.validation_process:serve"] * 2 * (validations == 2)
        await world.within(ports, node.stop())

    with World(6) as world:
        world.run(scenario(world))


@pytest.mark.parametrize(("count", "in_worker"), [(900, False), (1_100, True)])
def test_many_records_scanned_one_by_one_are_validated_by_a_worker(count: int, in_worker: bool) -> None:
    """One of their timestamps is wrong: a megabyte of the smallest records would block the loop for half a second."""

    async def scenario(world: World) -> None:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        await client.create_topic("t", 1, {})
        watched = node.broker.workers = RecordingWorkers(ports.workers)
        late_ms = ports.clock.now_ms() + 100_000_000
        batch = build_batch(
            [Record(timestamp=late_ms - (index > 0) * 100_000_000, value=b"x") for index in range(count)]
        )
        response = await client.produce("t", 0, bytes(batch), acks=-1)
        assert (response.error_code, [error.batch_index for error in response.record_errors]) == (32, [0])
        assert ("validate_batch" in watched.names) is in_worker
        await world.within(ports, node.stop())

    with World(8) as world:
        world.run(scenario(world))


def test_decompression_bomb_without_acks_closes_its_connection() -> None:
    """More than a batch may contain, in a few bytes, from a client that wants no responses."""

    async def scenario(world: World) -> None:
        ports = world.start("node")
        config = node_config(
            {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"}, directory="/", canonical_host=lambda: "node"
        )
        node: Node = await world.within(ports, assemble(ports, config))
        client = SimulatedClient(world.start("client").network, "node", 9092)
        await client.connect()
        await client.create_topic("t", 1, {})
        frame = bytes(build_batch([Record(timestamp=ports.clock.now_ms(), value=bytes(140 << 20))], codec=4))
        assert (await client.produce("t", 0, frame, acks=-1)).error_code == 10
        with pytest.raises(Disconnected):
            await client.produce("t", 0, frame, acks=0)
        await world.within(ports, node.stop())

    with World(7) as world:
        world.run(scenario(world))
