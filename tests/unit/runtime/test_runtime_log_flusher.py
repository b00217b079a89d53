"""`flush.messages` and `flush.ms`: acked and readable records are fsynced, and producers share fsyncs."""

import asyncio
import errno
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.log import offset_checkpoint_file
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.sim.client import Disconnected, SimulatedClient, records_of
from ottla.sim.disk import SimulatedDisk, SimulatedFile
from ottla.sim.world import SimulatedPorts, World
from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

LOG = "/data/t-0/00000000000000000000.log"


def start(world: World, **settings: str) -> tuple[SimulatedPorts, Any]:
    configs = {"listeners": "PLAINTEXT://node:9092", "log.dirs": "/data"} | {
        k.replace("_", "."): v for k, v in settings.items()
    }
    config = node_config(configs, directory="/", canonical_host=lambda: "node")
    ports = world.start("node")
    return ports, world.within(ports, assemble(ports, config))


async def connect(world: World, name: str = "client") -> SimulatedClient:
    client = SimulatedClient(world.start(name).network, "node", 9092)
    await client.connect()
    return client


def batch(value: bytes) -> bytes:
    return bytes(build_batch([Record(timestamp=1_700_000_000_000, value=value)]))


class Flushes:
    """Counter of the flushes of one file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
        self.count = 0
        original = SimulatedFile.fsync

        def flush(file: SimulatedFile) -> None:
            if file.path == path:
                self.count += 1
            original(file)

        monkeypatch.setattr(SimulatedFile, "fsync", flush)


def stored(disk: SimulatedDisk, path: str = LOG) -> int:
    """Return how many bytes of a file have been flushed."""
    return len(disk.storage.get_file(path)._durable)


@pytest.mark.parametrize("acks", [1, -1])
def test_acks_and_reads_wait_for_the_flush_with_flush_messages_1(sim_seed: int, acks: int) -> None:
    """A power failure at any moment loses no record that was acked or read."""
    acked: dict[int, bytes] = {}
    seen: dict[int, bytes] = {}

    async def produce(client: SimulatedClient, name: str, disk: SimulatedDisk) -> None:
        for number in range(1000):
            value = b"%s %d" % (name.encode(), number)
            response = await client.produce("t", 0, batch(value), acks=acks)
            if response.error_code == 0:
                acked[response.base_offset] = value

    async def read(client: SimulatedClient) -> None:
        while True:
            fetched = await client.fetch("t", 0, max(seen, default=-1) + 1, wait_ms=5)
            seen.update(
                (record.offset, record.value or b"")
                for record in records_of(fetched.records, max(seen, default=-1) + 1)
            )

    async def scenario(world: World) -> None:
        ports, starting = start(world)
        await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"flush.messages": "1", "segment.bytes": "1048576"})
        world.crash_in("node", 60 + sim_seed * 37, "flushed")
        clients = [await connect(world, f"client-{number}") for number in range(5)]
        for other in clients:
            other.topic_ids = client.topic_ids
        works = [produce(one, f"p{number}", ports.disk) for number, one in enumerate(clients[:4])]
        ended = await asyncio.gather(*works, read(clients[4]), return_exceptions=True)
        assert all(isinstance(one, Disconnected | OSError) for one in ended), ended
        assert not world.is_running("node")
        _, starting = start(world)
        node: Node = await starting
        found = node.broker.partition("t", 0)
        assert found is not None
        again = await connect(world, "again")
        again.topic_ids = client.topic_ids
        values = [record.value for record in records_of((await again.fetch("t", 0, 0)).records, 0)]
        assert acked
        for offset, value in (acked | seen).items():
            assert values[offset] == value

    with World(sim_seed) as world:
        world.run(scenario(world))


def test_concurrent_producers_share_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = Flushes(monkeypatch, LOG)

    async def scenario(world: World) -> int:
        ports, starting = start(world)
        await starting
        first = await connect(world)
        await first.create_topic("t", 1, {"flush.messages": "1"})
        clients = [await connect(world, f"client-{number}") for number in range(50)]
        for client in clients:
            client.topic_ids = first.topic_ids
        before = flushes.count

        async def produce(client: SimulatedClient) -> None:
            for _ in range(10):
                assert (await client.produce("t", 0, batch(b"v"), acks=-1)).error_code == 0

        await asyncio.gather(*map(produce, clients))
        assert stored(ports.disk) == len(ports.disk.storage.get_file(LOG).cached)
        return flushes.count - before

    with World(5) as world:
        assert 10 <= world.run(scenario(world)) <= 100, "500 requests"


def test_flush_messages_counts_records(monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = Flushes(monkeypatch, LOG)

    async def scenario(world: World) -> list[int]:
        _, starting = start(world)
        await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"flush.messages": "3"})
        counts = []
        for _ in range(7):
            assert (await client.produce("t", 0, batch(b"v"), acks=1)).error_code == 0
            counts.append(flushes.count)
        return counts

    with World(6) as world:
        assert world.run(scenario(world)) == [0, 0, 1, 1, 1, 2, 2]


def test_changed_flush_messages_applies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    flushes = Flushes(monkeypatch, LOG)

    async def scenario(world: World) -> list[int]:
        _, starting = start(world)
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 1)
        counts = []
        for value in ("1", "9223372036854775807"):
            await client.produce("t", 0, batch(b"v"), acks=1)
            counts.append(flushes.count)
            config = AlterableConfig(name="flush.messages", config_operation=0, value=value)
            request = IncrementalAlterConfigsRequest(
                resources=[AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])]
            )
            await client.call(request, IncrementalAlterConfigsResponse, 1)
            await client.produce("t", 0, batch(b"v"), acks=1)
            counts.append(flushes.count)
        partition = node.broker.partition("t", 0)
        assert partition is not None
        assert partition.high_watermark == partition.log.log_end_offset == 4
        return counts

    with World(7) as world:
        first, second, third, fourth = world.run(scenario(world))
    assert first == 0
    assert first < second < third == fourth


@pytest.mark.parametrize("scheduler", [None, "100"])
def test_records_are_flushed_after_flush_ms(scheduler: str | None) -> None:
    """Logs are checked once a second, or at `log.flush.scheduler.interval.ms`."""

    async def scenario(world: World) -> list[bool]:
        ports, starting = start(world, **({} if scheduler is None else {"log_flush_scheduler_interval_ms": scheduler}))
        await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"flush.ms": "3000"})
        await client.produce("t", 0, batch(b"v"), acks=1)
        found = []
        for seconds in (1.0, 1.0, 2.6 if scheduler is None else 1.4):
            await asyncio.sleep(seconds)
            found.append(stored(ports.disk) > 0)
        return found

    with World(8) as world:
        assert world.run(scenario(world)) == [False, False, True]


def test_failed_fsync_takes_the_directory_offline() -> None:
    """The record is not acked, and nothing more is written to the directory."""

    async def scenario(world: World) -> tuple[list[int], bool]:
        ports, starting = start(world, log_dirs="/data,/more", metadata_log_dir="/more")
        node: Node = await starting
        client = await connect(world)
        await client.create_topic("t", 2, {"flush.messages": "1"})
        partitions = {partition.log.directory: partition for partition in node.broker.all_partitions()}
        index = next(partition.index for path, partition in partitions.items() if path.startswith("/data/"))
        codes = [(await client.produce("t", index, batch(b"a"), acks=1)).error_code]
        ports.disk.fail("fsync", 1, errno.EIO)
        codes += [(await client.produce("t", index, batch(b"b"), acks=1)).error_code for _ in range(2)]
        codes.append((await client.produce("t", 1 - index, batch(b"c"), acks=1)).error_code)
        return codes, node.failed.done()

    with World(9) as world:
        codes, has_failed = world.run(scenario(world))
    assert codes == [0, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert not has_failed


def test_duplicate_waits_for_the_flush_of_the_original() -> None:
    """The first connection is lost before the flush; the retry must not be acked before it either."""

    async def scenario(world: World) -> tuple[int, int]:
        ports, starting = start(world)
        await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"flush.messages": "1"})
        sent = bytes(
            build_batch(
                [Record(timestamp=1_700_000_000_000, value=b"v")], producer_id=5, producer_epoch=0, base_sequence=0
            )
        )
        lost = await connect(world, "lost")
        lost.topic_ids = client.topic_ids
        first = asyncio.ensure_future(lost.produce("t", 0, sent, acks=1))
        while len(ports.disk.storage.get_file(LOG).cached) == 0:
            await asyncio.sleep(0.0001)
        world.crash("lost")
        response = await client.produce("t", 0, sent, acks=1)
        assert stored(ports.disk) == len(ports.disk.storage.get_file(LOG).cached) > 0
        first.cancel()
        return response.error_code, response.base_offset

    with World(10) as world:
        assert world.run(scenario(world)) == (0, 0)


def test_recovery_points_are_written_and_removed_with_their_topic() -> None:
    """A stale recovery point would make a new topic of that name trust torn segments."""

    async def scenario(world: World) -> list[dict[tuple[str, int], int]]:
        ports, starting = start(world, log_flush_offset_checkpoint_interval_ms="5000")
        await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"flush.messages": "1"})
        for _ in range(3):
            await client.produce("t", 0, batch(b"v"), acks=1)
        await asyncio.sleep(7)
        path = f"/data/{offset_checkpoint_file.RECOVERY_POINTS_FILE}"
        found = [offset_checkpoint_file.read(ports.disk, path)]
        await client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), DeleteTopicsResponse, 5)
        await client.create_topic("t", 1)
        found.append(offset_checkpoint_file.read(ports.disk, path))
        return found

    with World(12) as world:
        assert world.run(scenario(world)) == [{("t", 0): 3}, {}]


def test_recovered_log_is_flushed_before_it_is_readable() -> None:
    """A killed process may leave records in the page cache only; recovery flushes them."""

    async def scenario(world: World) -> tuple[int, int]:
        ports, starting = start(world)
        await starting
        client = await connect(world)
        await client.create_topic("t", 1, {"flush.messages": "10"})
        for _ in range(4):
            await client.produce("t", 0, batch(b"v"), acks=1)
        world.crash("node")
        ports, starting = start(world)
        node: Node = await starting
        partition = node.broker.partition("t", 0)
        assert partition is not None
        assert stored(ports.disk) == len(ports.disk.storage.get_file(LOG).cached) > 0
        return partition.high_watermark, partition.log.recovery_point

    with World(13) as world:
        assert world.run(scenario(world)) == (4, 4)
