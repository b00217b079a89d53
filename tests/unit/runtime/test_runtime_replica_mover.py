"""Partitions that move from one log directory to another on a simulated machine, while they are written to and whatever fails."""

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
    with World(5) as made:
        yield made


class Machine:
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
            answer = await self.client.produce("t", 0, batch, acks=-1)
            assert (answer.error_code, answer.base_offset) == (0, self.sent)
            self.sent += 1

    async def values(self) -> list[int]:
        found: list[int] = []
        while len(found) < self.sent:
            answer = await self.client.fetch("t", 0, len(found))
            assert answer.error_code == 0
            records = records_of(answer.records, len(found))
            assert records
            found += [int(record.value.rstrip(b".")) for record in records if record.value is not None]
        return found

    def home(self) -> str:
        partition = self.node.broker.partition("t", 0)
        assert partition is not None
        return partition.log.directory.removesuffix("/t-0")

    def other(self) -> str:
        return next(path for path in DIRECTORIES if path != self.home())

    async def alter(self, path: str, index: int = 0, topic: str = "t") -> int:
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])]
        )
        answer = await self.client.call(request, AlterReplicaLogDirsResponse)
        return int(answer.results[0].partitions[0].error_code)

    async def described(self) -> dict[str, list[bool]]:
        """Where the partition is shown, and whether as one to be."""
        answer = await self.client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        return {
            result.log_dir: [partition.is_future_key for topic in result.topics for partition in topic.partitions]
            for result in answer.results
        }

    async def moved(self) -> None:
        """Until nothing is on its way."""
        while any(is_future for shown in (await self.described()).values() for is_future in shown):
            await self.produce()

    def names(self, path: str) -> list[str]:
        return [name for name in self.ports.disk.list(path) if name.startswith("t-0") and not name.endswith("-delete")]


def run(world: World, story: Callable[[Machine], Awaitable[Any]], configs: dict[str, str] | None = None) -> Any:
    machine = Machine(world)

    async def whole() -> Any:
        await machine.start()
        await machine.client.create_topic("t", 1, configs or {"segment.bytes": "1048576"})
        await machine.produce(20)
        return await story(machine)

    return world.run(whole())


@pytest.mark.parametrize("configs", [{"segment.ms": "1"}, {"flush.messages": "1"}, {"segment.bytes": "1048576"}])
def test_a_partition_moves_while_it_is_written_to(world: World, configs: dict[str, str]) -> None:
    """Nothing is lost or doubled, the old place is empty, and it is where it is after a restart."""

    async def story(machine: Machine) -> None:
        source, target = machine.home(), machine.other()
        assert await machine.alter(target) == 0
        assert sorted((await machine.described()).items()) == sorted({source: [False], target: [True]}.items())
        await machine.moved()
        assert machine.home() == target
        assert await machine.described() == {source: [], target: [False]}
        assert (machine.names(source), machine.names(target)) == ([], ["t-0"])
        await machine.produce(5)
        assert await machine.values() == list(range(machine.sent))
        await machine.stop()
        await machine.start()
        assert machine.home() == target
        assert await machine.values() == list(range(machine.sent))
        await machine.produce()

    run(world, story, configs)


def test_what_is_refused(world: World) -> None:
    """The codes are Apache Kafka's."""

    async def story(machine: Machine) -> None:
        home = machine.home()
        assert await machine.alter("/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await machine.alter(home + "/") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await machine.alter(home, topic="u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await machine.alter(home, 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await machine.alter(home) == 0
        assert await machine.described() == {home: [False], machine.other(): []}
        other = machine.other()
        if other != "/a":
            machine.ports.disk.fail_below(other, errno.EIO)
            await machine.described()
            assert await machine.alter(other) == ErrorCode.KAFKA_STORAGE_ERROR

    run(world, story)


def test_to_where_it_is_ends_a_move(world: World) -> None:
    async def story(machine: Machine) -> None:
        source, target = machine.home(), machine.other()
        assert await machine.alter(target) == 0
        assert await machine.alter(source) == 0
        for _ in range(50):
            await machine.produce()
        assert machine.home() == source
        assert await machine.described() == {source: [False], target: []}
        assert machine.names(target) == []

    run(world, story)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(
    ("call", "nth"), [("make_directories", 1), ("rename", 1), ("fsync", 1), ("fsync", 3), ("create", 3)]
)
def test_a_target_that_fails_leaves_the_partition_where_it_is(world: World, call: str, nth: int, number: int) -> None:
    async def story(machine: Machine) -> None:
        source, target = machine.home(), machine.other()
        machine.ports.disk.fail(call, nth, number)
        assert await machine.alter(target) == 0
        for _ in range(30):
            await machine.produce()
        assert machine.home() == source
        assert await machine.described() == {source: [False], target: []}
        assert await machine.values() == list(range(machine.sent))

    run(world, story)


@pytest.mark.parametrize("changes", range(1, 34))
@pytest.mark.parametrize("keep", ["page-cache", "flushed"])
def test_a_crash_at_any_step(changes: int, keep: Any) -> None:
    """Whatever was on the disk is there afterwards, once, wherever the partition is then."""
    with World(100 + changes) as world:

        async def story(machine: Machine) -> None:
            machine.ports.disk.crash_in(changes, lambda: world.crash("node", keep))
            try:
                await machine.alter(machine.other())
                for _ in range(200):
                    await machine.described()
            except Disconnected:
                sent = machine.sent
            else:
                return  # the move took fewer steps
            await machine.start()
            await machine.moved()
            assert machine.sent >= sent
            assert await machine.values() == list(range(machine.sent))
            assert sorted(machine.names("/a") + machine.names("/b")) == ["t-0"]

        run(world, story, {"flush.messages": "1"})
