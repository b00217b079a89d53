"""Log directories that fail, on a simulated machine: they take their own partitions with them, and nothing else."""

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
    with World(7) as made:
        yield made


class Machine:
    """A node with two log directories, and a client that knows what it made."""

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
        answer = await self.client.produce(topic, index, batch, acks=-1)
        return answer.error_code, answer.base_offset

    def homes(self) -> dict[str, str]:
        """Which partition lies in which directory."""
        return {
            f"{partition.topic}-{partition.index}": directory.path
            for directory in self.node.broker.log_directories
            for partition in directory.partitions
        }

    async def in_bad(self, count: int = 4) -> tuple[str, int]:
        """Make a topic, fill it, and name a partition of it that lies in the directory that is going to fail."""
        await self.client.create_topic("t", count)
        for index in range(count):
            assert await self.produce("t", index) == (0, 0)
        name = next(name for name, home in self.homes().items() if home == BAD)
        return "t", int(name.rpartition("-")[2])

    async def in_good(self) -> tuple[str, int]:
        name = next(name for name, home in self.homes().items() if home == GOOD)
        return "t", int(name.rpartition("-")[2])

    async def described(self) -> dict[str, tuple[int, int]]:
        """The error of each directory, and how many partitions it shows."""
        answer = await self.client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
        return {
            result.log_dir: (result.error_code, sum(len(topic.partitions) for topic in result.topics))
            for result in answer.results
        }

    async def leaders(self, topic: str) -> dict[int, tuple[int, int, list[int]]]:
        """Error, leader and offline replicas of each partition."""
        answer = await self.client.call(
            MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False),
            MetadataResponse,
            12,
        )
        return {
            each.partition_index: (each.error_code, each.leader_id, each.offline_replicas)
            for each in answer.topics[0].partitions
        }


def run(world: World, story: Callable[[Machine], Awaitable[Any]]) -> Any:
    machine = Machine(world)

    async def whole() -> Any:
        await machine.start()
        return await story(machine)

    return world.run(whole())


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENOENT])
def test_a_failed_write_takes_its_directory_offline(world: World, number: int) -> None:
    """Kafka answers the same: KAFKA_STORAGE_ERROR, no leader, and an error for the directory as a whole."""

    async def story(machine: Machine) -> None:
        bad, good = await machine.in_bad(), await machine.in_good()
        machine.ports.disk.fail_below(BAD, number)
        assert await machine.produce(*bad) == (STORAGE_ERROR, -1)
        assert await machine.produce(*bad) == (STORAGE_ERROR, -1)
        assert await machine.produce(*good) == (0, 1)
        assert await machine.described() == {GOOD: (0, 2), BAD: (STORAGE_ERROR, 0)}
        leaders = await machine.leaders("t")
        assert (leaders[bad[1]], leaders[good[1]]) == ((ErrorCode.LEADER_NOT_AVAILABLE, -1, [1]), (0, 1, []))
        assert (await machine.client.list_offsets(*bad, -1)).error_code == STORAGE_ERROR
        assert (await machine.client.fetch(*bad, 0)).error_code == STORAGE_ERROR
        text = Metrics(machine.node._server).text()
        assert "ottla_offline_log_directory_count 1\n" in text
        assert "ottla_offline_partitions 2\n" in text
        assert not machine.node.failed.done()

    run(world, story)


def test_new_topics_go_to_what_is_left(world: World) -> None:
    async def story(machine: Machine) -> dict[str, str]:
        bad = await machine.in_bad()
        machine.ports.disk.fail_below(BAD, errno.EIO)
        await machine.produce(*bad)
        await machine.client.create_topic("u", 3)
        assert [await machine.produce("u", index) for index in range(3)] == [(0, 0)] * 3
        return machine.homes()

    homes = run(world, story)
    assert {name: home for name, home in homes.items() if name.startswith("u-")} == {
        f"u-{index}": GOOD for index in range(3)
    }


def test_a_directory_that_fails_while_a_topic_is_made_in_it(world: World) -> None:
    """The topic is made all the same, in the other one."""

    async def story(machine: Machine) -> tuple[Any, dict[str, str]]:
        machine.ports.disk.fail_below(BAD, errno.EIO)
        await machine.client.create_topic("t", 4)
        for _ in range(100):
            if len(machine.homes()) == 4:
                break
            await machine.client.call(MetadataRequest(topics=[]), MetadataResponse, 12)
        return [await machine.produce("t", index) for index in range(4)], machine.homes()

    assert run(world, story) == ([(0, 0)] * 4, {f"t-{index}": GOOD for index in range(4)})


def test_it_is_back_after_a_restart(world: World) -> None:
    """Nothing that was acknowledged before the failure is missing."""

    async def story(machine: Machine) -> None:
        bad = await machine.in_bad()
        machine.ports.disk.fail_below(BAD, errno.EIO)
        await machine.produce(*bad)
        await machine.stop()
        await machine.start()
        assert await machine.described() == {GOOD: (0, 2), BAD: (0, 2)}
        assert await machine.produce(*bad) == (0, 1)

    run(world, story)


@pytest.mark.parametrize("calls", [None, ["lock"], ["list"], ["read"]])
def test_a_directory_that_fails_at_the_start(world: World, calls: list[str] | None) -> None:
    async def story(machine: Machine) -> None:
        bad, good = await machine.in_bad(), await machine.in_good()
        await machine.stop()
        start = machine.world.start

        def broken(name: str) -> SimulatedPorts:
            ports = start(name)
            if name == "node":
                ports.disk.fail_below(BAD, errno.EIO, calls)
            return ports

        machine.world.start = broken  # type: ignore[method-assign]
        await machine.start()
        assert await machine.described() == {GOOD: (0, 2), BAD: (STORAGE_ERROR, 0)}
        assert (await machine.produce(*bad), await machine.produce(*good)) == ((STORAGE_ERROR, -1), (0, 1))
        assert (await machine.leaders("t"))[bad[1]] == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
        await machine.stop()
        machine.world.start = start  # type: ignore[method-assign]
        await machine.start()
        assert (await machine.produce(*bad), await machine.produce(*good)) == ((0, 1), (0, 2))

    run(world, story)


def test_a_new_cluster_needs_all_of_them(world: World) -> None:
    start = world.start

    def broken(name: str) -> SimulatedPorts:
        ports = start(name)
        ports.disk.fail_below(BAD, errno.EACCES)
        return ports

    world.start = broken  # type: ignore[method-assign]
    with pytest.raises(StartError, match="cannot write to /bad"):
        world.run(Machine(world).start())


def test_an_empty_directory_in_its_place_hides_nothing(world: World) -> None:
    """A disk that is not mounted: its partitions are offline, not made anew without their records, and are there when it is back."""

    async def story(machine: Machine) -> None:
        bad = await machine.in_bad()
        await machine.stop()
        storage = machine.ports.disk.storage
        storage.rename(BAD, "/elsewhere")
        await machine.start()
        assert await machine.produce(*bad) == (STORAGE_ERROR, -1)
        await machine.stop()
        storage.rename(BAD, "/fresh")
        storage.rename("/elsewhere", BAD)
        await machine.start()
        assert await machine.produce(*bad) == (0, 1)

    run(world, story)


def test_a_topic_can_be_deleted_though_it_is_offline(world: World) -> None:
    async def story(machine: Machine) -> None:
        bad = await machine.in_bad()
        machine.ports.disk.fail_below(BAD, errno.EIO)
        await machine.produce(*bad)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
        answer = await machine.client.call(request, DeleteTopicsResponse, 6)
        assert [each.error_code for each in answer.responses] == [0]
        assert await machine.produce(*bad) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
        await machine.stop()
        await machine.start()
        await machine.client.create_topic("t", 4)
        assert [await machine.produce("t", index) for index in range(4)] == [(0, 0)] * 4

    run(world, story)


def test_where_the_metadata_log_is_nothing_goes_on(world: World) -> None:
    async def story(machine: Machine) -> str:
        await machine.in_bad()
        good = await machine.in_good()
        machine.ports.disk.fail_below(GOOD, errno.EIO)
        await machine.produce(*good)
        return str(machine.node.failed.exception())

    assert "the log directory of the metadata log, /good, failed" in run(world, story)


def test_a_full_disk_refuses_and_recovers(world: World) -> None:
    """The directory stays; nothing of what was refused is in the log; the first write after there is room is taken."""

    async def story(machine: Machine) -> None:
        bad, good = await machine.in_bad(), await machine.in_good()
        machine.ports.disk.fail_below(BAD, errno.ENOSPC, ["append", "write_at", "create"])
        assert [await machine.produce(*bad) for _ in range(3)] == [(STORAGE_ERROR, -1)] * 3
        assert await machine.produce(*good) == (0, 1)
        assert await machine.described() == {GOOD: (0, 2), BAD: (0, 2)}
        assert 'state="full"} 1' in Metrics(machine.node._server).text()
        answer = await machine.client.fetch(*bad, 0)
        assert (answer.error_code, len(records_of(answer.records, 0))) == (0, 1)
        machine.ports.disk.cancel_faults()
        assert await machine.produce(*bad) == (0, 1)

    run(world, story)


def test_a_topic_that_there_was_no_room_for_is_made_later(world: World) -> None:
    async def story(machine: Machine) -> None:
        for path in (GOOD, BAD):
            machine.ports.disk.fail_below(path + "/t-0", errno.ENOSPC)
        await machine.client.create_topic("t", 1)
        assert await machine.produce("t") == (STORAGE_ERROR, -1)
        machine.ports.disk.cancel_faults()
        before = world.loop.time()
        while (answer := await machine.produce("t")) == (STORAGE_ERROR, -1):
            assert world.loop.time() < before + 10
            await machine.client.call(MetadataRequest(topics=[]), MetadataResponse, 12)
        assert answer == (0, 0)

    run(world, story)


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
def test_whichever_call_fails(world: World, call: str, number: int) -> None:
    """The other directory serves on, whatever is asked; after a restart all that was acknowledged is there, in both."""

    async def story(machine: Machine) -> None:
        bad, good = await machine.in_bad(), await machine.in_good()
        acked = {bad: 1, good: 1}
        machine.ports.disk.fail_below(BAD, number, [call])
        for turn in range(12):
            for place in (bad, good):
                code, offset = await machine.produce(*place)
                assert code == 0 or (place == bad and code == STORAGE_ERROR), (place, code)
                if code == 0:
                    assert offset >= acked[place]
                    acked[place] = offset + 1
                await machine.client.fetch(*place, 0)
                await machine.client.list_offsets(*place, 1)
            if turn == 6:
                await machine.client.create_topic("u", 2)
            await machine.described()
            await asyncio.sleep(0.7)
        assert not machine.node.failed.done()
        await machine.stop()
        await machine.start()
        for place, count in acked.items():
            answer = await machine.client.fetch(*place, 0)
            assert (answer.error_code, len(records_of(answer.records, 0)) >= count) == (0, True)
        assert [(await machine.produce("u", index))[0] for index in range(2)] == [0, 0]

    run(world, story)


def test_a_cordoned_directory_gets_nothing_new(world: World) -> None:
    async def story(machine: Machine) -> dict[str, str]:
        await machine.stop()
        await machine.start(cordoned_log_dirs=BAD)
        await machine.client.create_topic("t", 4)
        return machine.homes()

    assert run(world, story) == {f"t-{index}": GOOD for index in range(4)}
