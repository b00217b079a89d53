"""Moving partitions between log directories in simulation, during writes, failures and crashes."""

import errno
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.world import SimulatedPorts, World
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

PORT = 9092
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
DIRECTORIES = ("/a", "/b")


@pytest.fixture
def world() -> Iterator[World]:
    with World(5) as created:
        yield created


class TwoDirectories:
    """A node with two log directories and a topic of one partition."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.topic_ids: dict[str, Any] = {}
        self.runs = 0
        self.sent = 0

    async def start(self) -> None:
        config = node_config(
            {"listeners": f"PLAINTEXT://node:{PORT}", "log.dirs": ",".join(DIRECTORIES), "metadata.log.dir": "/a"},
            cluster_id=CLUSTER,
            directory="/",
            canonical_host=lambda: "node",
        )
        self.ports: SimulatedPorts = self.world.start("node")
        self.node: Node = await self.world.within(self.ports, assemble(self.ports, config))
        self.runs += 1
        self.client = SimulatedClient(self.world.start(f"client{self.runs}").network, "node", PORT)
        self.client.topic_ids = self.topic_ids
        await self.client.connect()

    async def stop(self) -> None:
        await self.world.within(self.ports, self.node.stop())
        self.world.exit("node")

    async def produce(self, count: int = 1) -> None:
        for _ in range(count):
            batch = bytearray(build_batch([Record(timestamp=1, value=b"%d" % self.sent + b"." * 300)]))
            response = await self.client.produce("t", 0, batch, acks=-1)
            assert (response.error_code, response.base_offset) == (0, self.sent)
            self.sent += 1

    async def values(self) -> list[int]:
        found: list[int] = []
        while len(found) < self.sent:
            response = await self.client.fetch("t", 0, len(found))
            assert response.error_code == 0
            records = records_of(response.records, len(found))
            assert records
            found += [int(record.value.rstrip(b".")) for record in records if record.value is not None]
        return found

    def directory(self) -> str:
        partition = self.node.broker.partition("t", 0)
        assert partition is not None
        return partition.log.directory.removesuffix("/t-0")

    def other_directory(self) -> str:
        return next(path for path in DIRECTORIES if path != self.directory())

    async def alter(self, path: str, index: int = 0, topic: str = "t") -> int:
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])]
        )
        response = await self.client.call(request, AlterReplicaLogDirsResponse)
        return int(response.results[0].partitions[0].error_code)

    async def describe_log_dirs(self) -> dict[str, list[bool]]:
        """Return per directory whether each replica in it is a future replica."""
        response = await self.client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        return {
            result.log_dir: [partition.is_future_key for topic in result.topics for partition in topic.partitions]
            for result in response.results
        }

    async def wait_until_moved(self) -> None:
        """Produce until no move is in progress."""
        while any(is_future for flags in (await self.describe_log_dirs()).values() for is_future in flags):
            await self.produce()

    def names(self, path: str) -> list[str]:
        return [name for name in self.ports.disk.list(path) if name.startswith("t-0") and not name.endswith("-delete")]


def run(
    world: World, scenario: Callable[[TwoDirectories], Awaitable[Any]], configs: dict[str, str] | None = None
) -> Any:
    fixture = TwoDirectories(world)

    async def start_and_run() -> Any:
        await fixture.start()
        await fixture.client.create_topic("t", 1, configs or {"segment.bytes": "1048576"})
        await fixture.produce(20)
        return await scenario(fixture)

    return world.run(start_and_run())


@pytest.mark.parametrize("configs", [{"segment.ms": "1"}, {"flush.messages": "1"}, {"segment.bytes": "1048576"}])
def test_partition_moves_while_it_is_written_to(world: World, configs: dict[str, str]) -> None:
    """No record is lost or duplicated, the old directory is empty, and a restart finds the partition."""

    async def scenario(fixture: TwoDirectories) -> None:
        source, target = fixture.directory(), fixture.other_directory()
        assert await fixture.alter(target) == 0
        assert sorted((await fixture.describe_log_dirs()).items()) == sorted({source: [False], target: [True]}.items())
        await fixture.wait_until_moved()
        assert fixture.directory() == target
        assert await fixture.describe_log_dirs() == {source: [], target: [False]}
        assert (fixture.names(source), fixture.names(target)) == ([], ["t-0"])
        await fixture.produce(5)
        assert await fixture.values() == list(range(fixture.sent))
        await fixture.stop()
        await fixture.start()
        assert fixture.directory() == target
        assert await fixture.values() == list(range(fixture.sent))
        await fixture.produce()

    run(world, scenario, configs)


def test_invalid_moves_are_rejected(world: World) -> None:
    """The error codes are Apache Kafka's."""

    async def scenario(fixture: TwoDirectories) -> None:
        directory = fixture.directory()
        assert await fixture.alter("/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await fixture.alter(directory + "/") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await fixture.alter(directory, topic="u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await fixture.alter(directory, 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await fixture.alter(directory) == 0
        assert await fixture.describe_log_dirs() == {directory: [False], fixture.other_directory(): []}
        other = fixture.other_directory()
        if other != "/a":
            fixture.ports.disk.fail_below(other, errno.EIO)
            await fixture.describe_log_dirs()
            assert await fixture.alter(other) == ErrorCode.KAFKA_STORAGE_ERROR

    run(world, scenario)


def test_moving_to_the_current_directory_cancels_a_move(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> None:
        source, target = fixture.directory(), fixture.other_directory()
        assert await fixture.alter(target) == 0
        assert await fixture.alter(source) == 0
        for _ in range(50):
            await fixture.produce()
        assert fixture.directory() == source
        assert await fixture.describe_log_dirs() == {source: [False], target: []}
        assert fixture.names(target) == []

    run(world, scenario)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(
    ("call", "nth"), [("make_directories", 1), ("rename", 1), ("fsync", 1), ("fsync", 3), ("create", 3)]
)
def test_failing_target_leaves_the_partition_in_its_directory(world: World, call: str, nth: int, number: int) -> None:
    async def scenario(fixture: TwoDirectories) -> None:
        source, target = fixture.directory(), fixture.other_directory()
        fixture.ports.disk.fail(call, nth, number)
        assert await fixture.alter(target) == 0
        for _ in range(30):
            await fixture.produce()
        assert fixture.directory() == source
        assert await fixture.describe_log_dirs() == {source: [False], target: []}
        assert await fixture.values() == list(range(fixture.sent))

    run(world, scenario)


@pytest.mark.parametrize("changes", range(1, 34))
@pytest.mark.parametrize("keep", ["page-cache", "flushed"])
def test_move_survives_a_crash_at_any_step(changes: int, keep: Any) -> None:
    """All flushed records are there afterwards, and the partition is in exactly one directory."""
    with World(100 + changes) as world:

        async def scenario(fixture: TwoDirectories) -> None:
            fixture.ports.disk.crash_in(changes, lambda: world.crash("node", keep))
            try:
                await fixture.alter(fixture.other_directory())
                for _ in range(200):
                    await fixture.describe_log_dirs()
            except Disconnected:
                sent = fixture.sent
            else:
                return  # the move took fewer steps
            await fixture.start()
            await fixture.wait_until_moved()
            assert fixture.sent >= sent
            assert await fixture.values() == list(range(fixture.sent))
            assert sorted(fixture.names("/a") + fixture.names("/b")) == ["t-0"]

        run(world, scenario, {"flush.messages": "1"})
