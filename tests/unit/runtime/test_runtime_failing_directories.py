"""Failing log directories in simulation: only their own partitions go offline."""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.node.errors import StartError
from ottla.server.metrics import Metrics
from ottla.sim.client import SimulatedClient, records_of
from ottla.sim.world import SimulatedPorts, World
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

PORT = 9092
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
GOOD, BAD = "/good", "/bad"
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def world() -> Iterator[World]:
    with World(7) as created:
        yield created


class TwoDirectories:
    """A node with two log directories, and a client."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.topic_ids: dict[str, Any] = {}
        self.runs = 0

    async def start(self, **settings: str) -> None:
        configs = {
            "listeners": f"PLAINTEXT://node:{PORT}",
            "log.dirs": f"{GOOD},{BAD}",
            "metadata.log.dir": GOOD,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        config = node_config(configs, cluster_id=CLUSTER, directory="/", canonical_host=lambda: "node")
        self.ports: SimulatedPorts = self.world.start("node")
        self.node: Node = await self.world.within(self.ports, assemble(self.ports, config))
        self.runs += 1
        self.client = SimulatedClient(self.world.start(f"client{self.runs}").network, "node", PORT)
        self.client.topic_ids = self.topic_ids
        await self.client.connect()

    async def stop(self) -> None:
        await self.world.within(self.ports, self.node.stop())
        self.world.exit("node")

    async def produce(self, topic: str, index: int = 0) -> tuple[int, int]:
        batch = bytes(build_batch([Record(timestamp=1, value=b"x" * 100)]))
        response = await self.client.produce(topic, index, batch, acks=-1)
        return response.error_code, response.base_offset

    def directories(self) -> dict[str, str]:
        """Return the directory of each partition."""
        return {
            f"{partition.topic}-{partition.index}": directory.path
            for directory in self.node.broker.log_directories
            for partition in directory.partitions
        }

    async def create_in_bad(self, count: int = 4) -> tuple[str, int]:
        """Create topic t with a record per partition; return a partition in the directory that is going to fail."""
        await self.client.create_topic("t", count)
        for index in range(count):
            assert await self.produce("t", index) == (0, 0)
        name = next(name for name, directory in self.directories().items() if directory == BAD)
        return "t", int(name.rpartition("-")[2])

    async def find_in_good(self) -> tuple[str, int]:
        name = next(name for name, directory in self.directories().items() if directory == GOOD)
        return "t", int(name.rpartition("-")[2])

    async def describe_log_dirs(self) -> dict[str, tuple[int, int]]:
        """Return the error code and partition count of each directory."""
        response = await self.client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
        return {
            result.log_dir: (result.error_code, sum(len(topic.partitions) for topic in result.topics))
            for result in response.results
        }

    async def leaders(self, topic: str) -> dict[int, tuple[int, int, list[int]]]:
        """Return error code, leader and offline replicas of each partition."""
        response = await self.client.call(
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False),
            MetadataResponse,
            12,
        )
        return {
            each.partition_index: (each.error_code, each.leader_id, each.offline_replicas)
            for each in response.topics[0].partitions
        }


def run(world: World, scenario: Callable[[TwoDirectories], Awaitable[Any]]) -> Any:
    fixture = TwoDirectories(world)

    async def start_and_run() -> Any:
        await fixture.start()
        return await scenario(fixture)

    return world.run(start_and_run())


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENOENT])
def test_failed_write_takes_its_directory_offline(world: World, number: int) -> None:
    """As in Kafka: KAFKA_STORAGE_ERROR, no leader, and an error for the directory."""

    async def scenario(fixture: TwoDirectories) -> None:
        bad, good = await fixture.create_in_bad(), await fixture.find_in_good()
        fixture.ports.disk.fail_below(BAD, number)
        assert await fixture.produce(*bad) == (STORAGE_ERROR, -1)
        assert await fixture.produce(*bad) == (STORAGE_ERROR, -1)
        assert await fixture.produce(*good) == (0, 1)
        assert await fixture.describe_log_dirs() == {GOOD: (0, 2), BAD: (STORAGE_ERROR, 0)}
        leaders = await fixture.leaders("t")
        assert (leaders[bad[1]], leaders[good[1]]) == ((ErrorCode.LEADER_NOT_AVAILABLE, -1, [1]), (0, 1, []))
        assert (await fixture.client.list_offsets(*bad, -1)).error_code == STORAGE_ERROR
        assert (await fixture.client.fetch(*bad, 0)).error_code == STORAGE_ERROR
        text = Metrics(fixture.node._server).text()
        assert "ottla_offline_log_directory_count 1\n" in text
        assert "ottla_offline_partitions 2\n" in text
        assert not fixture.node.failed.done()

    run(world, scenario)


def test_new_topics_are_created_in_online_directories(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> dict[str, str]:
        bad = await fixture.create_in_bad()
        fixture.ports.disk.fail_below(BAD, errno.EIO)
        await fixture.produce(*bad)
        await fixture.client.create_topic("u", 3)
        assert [await fixture.produce("u", index) for index in range(3)] == [(0, 0)] * 3
        return fixture.directories()

    directories = run(world, scenario)
    assert {name: directory for name, directory in directories.items() if name.startswith("u-")} == {
        f"u-{index}": GOOD for index in range(3)
    }


def test_topic_is_created_elsewhere_when_its_directory_fails(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> tuple[Any, dict[str, str]]:
        fixture.ports.disk.fail_below(BAD, errno.EIO)
        await fixture.client.create_topic("t", 4)
        for _ in range(100):
            if len(fixture.directories()) == 4:
                break
            await fixture.client.call(MetadataRequest(topics=[]), MetadataResponse, 12)
        return [await fixture.produce("t", index) for index in range(4)], fixture.directories()

    assert run(world, scenario) == ([(0, 0)] * 4, {f"t-{index}": GOOD for index in range(4)})


def test_failed_directory_is_used_again_after_a_restart(world: World) -> None:
    """Records acknowledged before the failure are not lost."""

    async def scenario(fixture: TwoDirectories) -> None:
        bad = await fixture.create_in_bad()
        fixture.ports.disk.fail_below(BAD, errno.EIO)
        await fixture.produce(*bad)
        await fixture.stop()
        await fixture.start()
        assert await fixture.describe_log_dirs() == {GOOD: (0, 2), BAD: (0, 2)}
        assert await fixture.produce(*bad) == (0, 1)

    run(world, scenario)


@pytest.mark.parametrize("calls", [None, ["lock"], ["list"], ["read"]])
def test_node_starts_without_a_failed_directory(world: World, calls: list[str] | None) -> None:
    async def scenario(fixture: TwoDirectories) -> None:
        bad, good = await fixture.create_in_bad(), await fixture.find_in_good()
        await fixture.stop()
        start = fixture.world.start

        def broken(name: str) -> SimulatedPorts:
            ports = start(name)
            if name == "node":
                ports.disk.fail_below(BAD, errno.EIO, calls)
            return ports

        fixture.world.start = broken  # type: ignore[method-assign]
        await fixture.start()
        assert await fixture.describe_log_dirs() == {GOOD: (0, 2), BAD: (STORAGE_ERROR, 0)}
        assert (await fixture.produce(*bad), await fixture.produce(*good)) == ((STORAGE_ERROR, -1), (0, 1))
        assert (await fixture.leaders("t"))[bad[1]] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
        await fixture.stop()
        fixture.world.start = start  # type: ignore[method-assign]
        await fixture.start()
        assert (await fixture.produce(*bad), await fixture.produce(*good)) == ((0, 1), (0, 2))

    run(world, scenario)


def test_new_cluster_needs_all_directories(world: World) -> None:
    start = world.start

    def broken(name: str) -> SimulatedPorts:
        ports = start(name)
        ports.disk.fail_below(BAD, errno.EACCES)
        return ports

    world.start = broken  # type: ignore[method-assign]
    with pytest.raises(StartError, match="cannot write to /bad"):
        world.run(TwoDirectories(world).start())


def test_partitions_of_an_empty_directory_are_offline(world: World) -> None:
    """An unmounted disk: its partitions are not recreated empty, and are back once it is mounted."""

    async def scenario(fixture: TwoDirectories) -> None:
        bad = await fixture.create_in_bad()
        await fixture.stop()
        storage = fixture.ports.disk.storage
        storage.rename(BAD, "/elsewhere")
        await fixture.start()
        assert await fixture.produce(*bad) == (STORAGE_ERROR, -1)
        await fixture.stop()
        storage.rename(BAD, "/fresh")
        storage.rename("/elsewhere", BAD)
        await fixture.start()
        assert await fixture.produce(*bad) == (0, 1)

    run(world, scenario)


def test_offline_topic_can_be_deleted(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> None:
        bad = await fixture.create_in_bad()
        fixture.ports.disk.fail_below(BAD, errno.EIO)
        await fixture.produce(*bad)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
        response = await fixture.client.call(request, DeleteTopicsResponse, 6)
        assert [each.error_code for each in response.responses] == [0]
        assert await fixture.produce(*bad) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
        await fixture.stop()
        await fixture.start()
        await fixture.client.create_topic("t", 4)
        assert [await fixture.produce("t", index) for index in range(4)] == [(0, 0)] * 4

    run(world, scenario)


def test_node_stops_when_the_metadata_directory_fails(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> str:
        await fixture.create_in_bad()
        good = await fixture.find_in_good()
        fixture.ports.disk.fail_below(GOOD, errno.EIO)
        await fixture.produce(*good)
        return str(fixture.node.failed.exception())

    assert "the log directory of the metadata log, /good, failed" in run(world, scenario)


def test_full_disk_rejects_writes_until_space_is_available(world: World) -> None:
    """The directory stays online; rejected records are not in the log; writes succeed once there is space."""

    async def scenario(fixture: TwoDirectories) -> None:
        bad, good = await fixture.create_in_bad(), await fixture.find_in_good()
        fixture.ports.disk.fail_below(BAD, errno.ENOSPC, ["append", "write_at", "create"])
        assert [await fixture.produce(*bad) for _ in range(3)] == [(STORAGE_ERROR, -1)] * 3
        assert await fixture.produce(*good) == (0, 1)
        assert await fixture.describe_log_dirs() == {GOOD: (0, 2), BAD: (0, 2)}
        assert 'state="full"} 1' in Metrics(fixture.node._server).text()
        response = await fixture.client.fetch(*bad, 0)
        assert (response.error_code, len(records_of(response.records, 0))) == (0, 1)
        fixture.ports.disk.cancel_faults()
        assert await fixture.produce(*bad) == (0, 1)

    run(world, scenario)


def test_topic_on_a_full_disk_is_created_later(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> None:
        for path in (GOOD, BAD):
            fixture.ports.disk.fail_below(path + "/t-0", errno.ENOSPC)
        await fixture.client.create_topic("t", 1)
        assert await fixture.produce("t") == (STORAGE_ERROR, -1)
        fixture.ports.disk.cancel_faults()
        before = world.loop.time()
        while (response := await fixture.produce("t")) == (STORAGE_ERROR, -1):
            assert world.loop.time() < before + 10
            await fixture.client.call(MetadataRequest(topics=[]), MetadataResponse, 12)
        assert response == (0, 0)

    run(world, scenario)


CALLS = (
    "append",
    "write_at",
    "fsync",
    "create",
    "truncate",
    "rename",
    "remove",
    "fsync_directory",
    "make_directories",
    "read",
    "read_at",
    "read_at_if_cached",
    "exists",
    "list",
    "space",
    "map",
)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", CALLS)
def test_any_failing_call_affects_only_its_directory(world: World, call: str, number: int) -> None:
    """The other directory keeps working; after a restart all acknowledged records are there, in both."""

    async def scenario(fixture: TwoDirectories) -> None:
        bad, good = await fixture.create_in_bad(), await fixture.find_in_good()
        acked = {bad: 1, good: 1}
        fixture.ports.disk.fail_below(BAD, number, [call])
        for round_number in range(12):
            for partition in (bad, good):
                code, offset = await fixture.produce(*partition)
                assert code == 0 or (partition == bad and code == STORAGE_ERROR), (partition, code)
                if code == 0:
                    assert offset >= acked[partition]
                    acked[partition] = offset + 1
                await fixture.client.fetch(*partition, 0)
                await fixture.client.list_offsets(*partition, 1)
            if round_number == 6:
                await fixture.client.create_topic("u", 2)
            await fixture.describe_log_dirs()
            await asyncio.sleep(0.7)
        assert not fixture.node.failed.done()
        await fixture.stop()
        await fixture.start()
        for partition, count in acked.items():
            response = await fixture.client.fetch(*partition, 0)
            assert (response.error_code, len(records_of(response.records, 0)) >= count) == (0, True)
        assert [(await fixture.produce("u", index))[0] for index in range(2)] == [0, 0]

    run(world, scenario)


def test_cordoned_directory_gets_no_new_partitions(world: World) -> None:
    async def scenario(fixture: TwoDirectories) -> dict[str, str]:
        await fixture.stop()
        await fixture.start(cordoned_log_dirs=BAD)
        await fixture.client.create_topic("t", 4)
        return fixture.directories()

    assert run(world, scenario) == {f"t-{index}": GOOD for index in range(4)}
