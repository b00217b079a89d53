"""Snapshots are written when it is time, stand for what went before, and do not hold the log up."""

import asyncio
import errno
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.log.config import LogConfig
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import ClusterImage
from ottla.runtime.metadata_log import MetadataLog
from ottla.runtime.snapshots import CorruptSnapshot, SnapshotId, decode_snapshot, encode_snapshot, list_snapshots
from ottla.sim.world import ProcessCrashed, SimulatedPorts, World
from ottla.wire.records.control import VotersRecord
from ottla.wire.records.metadata import BeginTransactionRecord, FeatureLevelRecord, NoOpRecord, TopicRecord

DIRECTORY = "/data/__cluster_metadata-0"
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
FEATURES = FeatureLevelRecord("metadata.version", 30)


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"t{number}", Uuid(number.to_bytes(16, "big")))


class Follower:
    """Keeps the image up with the log, as the publisher does."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image

    def publish(self, offset: int, records: Any) -> None:
        delta = ClusterDelta(self.image)
        for number, record in enumerate(records):
            delta.replay(offset + number, record)
        self.image = delta.apply()


def open_log(ports: SimulatedPorts, **limits: int) -> tuple[MetadataLog, Follower]:
    ports.disk.make_directories("/data")
    ports.disk.fsync_directory("/")
    log = MetadataLog.open(
        ports.disk,
        ports.clock,
        ports.workers,
        DIRECTORY,
        node_id=1,
        clean=False,
        config=LogConfig(),
        on_failed=fail,
        **limits,
    )
    follower = Follower(log.load(CLUSTER))
    log.follow(follower.publish, lambda: follower.image)
    return log, follower


def fail(error: Exception) -> None:
    raise AssertionError(error)


@pytest.fixture
def world() -> Iterator[World]:
    with World(11) as made:
        yield made


def run(world: World, story: Callable[[SimulatedPorts], Coroutine[Any, Any, Any]]) -> Any:
    ports = world.start("node")

    async def within() -> Any:
        return await world.within(ports, story(ports))

    result = world.run(within())
    world.exit("node")
    return result


def files(world: World, suffix: str) -> list[str]:
    return [
        path.rpartition("/")[2]
        for path, _ in world.storage("node").files()
        if path.startswith(DIRECTORY) and path.endswith(suffix)
    ]


async def append_many(log: MetadataLog, numbers: range) -> None:
    for number in numbers:
        await log.append([topic(number)])
        await asyncio.sleep(1)


def test_after_so_many_bytes(world: World) -> None:
    """The snapshot holds what the log held, a new segment starts, and the next start reads from there."""

    async def first(ports: SimulatedPorts) -> ClusterImage:
        log, follower = open_log(ports, snapshot_bytes_max=1000)
        await log.append([FEATURES])
        await append_many(log, range(1, 16))
        await log.close()
        return follower.image

    image = run(world, first)
    (name,) = files(world, ".checkpoint")
    snapshot_id = SnapshotId(int(name[:20]), int(name[21:31]))
    assert snapshot_id.epoch == 1
    assert len(files(world, ".log")) == 2

    async def second(ports: SimulatedPorts) -> tuple[ClusterImage, int]:
        log, follower = open_log(ports)
        snapshot = decode_snapshot(ports.disk.read(f"{DIRECTORY}/{name}"))
        assert snapshot.records == [FEATURES, *(topic(number) for number in range(1, snapshot_id.end_offset - 1))]
        await log.close()
        return follower.image, log.epoch

    assert run(world, second) == (image, 2)


def test_after_so_much_time(world: World) -> None:
    """But only where there is something that is not in a snapshot yet."""

    async def story(ports: SimulatedPorts) -> list[SnapshotId]:
        log, _ = open_log(ports, snapshot_interval_max_ms=60_000)
        await append_many(log, range(1, 3))
        assert list_snapshots(ports.disk, DIRECTORY) == []
        await asyncio.sleep(60)
        await append_many(log, range(3, 4))
        assert list_snapshots(ports.disk, DIRECTORY) == [SnapshotId(4, 1)]
        await log.close()
        return list_snapshots(ports.disk, DIRECTORY)

    assert run(world, story) == [SnapshotId(4, 1)]


def test_two_snapshots_are_kept_and_the_log_since_the_older(world: World) -> None:
    async def first(ports: SimulatedPorts) -> list[SnapshotId]:
        log, _ = open_log(ports, snapshot_bytes_max=500)
        await append_many(log, range(1, 40))
        await log.close()
        return list_snapshots(ports.disk, DIRECTORY)

    kept = run(world, first)
    assert len(kept) == 2
    before = files(world, ".log")

    async def second(ports: SimulatedPorts) -> list[str]:
        log, follower = open_log(ports)
        assert [found.name for found in follower.image.topics_by_id.values()] == [
            f"t{number}" for number in range(1, 40)
        ]
        await log.close()
        return sorted(follower.image.topics_by_name)

    run(world, second)
    after = files(world, ".log")
    assert after == [name for name in before if name in after]
    assert len(after) < len(before)
    assert int(after[0][:20]) <= kept[0].end_offset


def test_metadata_log_falls_back_from_a_corrupt_snapshot(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The previous snapshot and the log after it produce the same image."""

    async def first(ports: SimulatedPorts) -> ClusterImage:
        log, follower = open_log(ports, snapshot_bytes_max=500)
        await append_many(log, range(1, 40))
        await log.close()
        newest = list_snapshots(ports.disk, DIRECTORY)[-1].file_name
        data = bytearray(ports.disk.read(f"{DIRECTORY}/{newest}"))
        data[len(data) // 2] ^= 1
        ports.disk.write_atomically(f"{DIRECTORY}/{newest}", data)
        return follower.image

    async def second(ports: SimulatedPorts) -> ClusterImage:
        return open_log(ports)[1].image

    image = run(world, first)
    with caplog.at_level(logging.WARNING):
        assert run(world, second) == image
    assert "corrupt" in caplog.text


def test_snapshot_writer_retries_after_a_failed_write(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Until then the log contains all records."""

    async def story(ports: SimulatedPorts) -> list[SnapshotId]:
        log, _ = open_log(ports, snapshot_bytes_max=500)
        ports.disk.fail("rename", 1, errno.ENOSPC)
        await append_many(log, range(1, 8))
        assert list_snapshots(ports.disk, DIRECTORY) == []
        await append_many(log, range(8, 16))
        await log.close()
        return list_snapshots(ports.disk, DIRECTORY)

    with caplog.at_level(logging.WARNING):
        assert len(run(world, story)) == 1
    assert "will retry" in caplog.text


def test_an_open_transaction_is_waited_for(world: World) -> None:
    """What has not ended is in no image, and a snapshot would lose it."""

    async def story(ports: SimulatedPorts) -> None:
        log, _ = open_log(ports, snapshot_bytes_max=1)
        await log.append([BeginTransactionRecord("t"), topic(1)])
        await asyncio.sleep(1)
        await log.close()
        assert list_snapshots(ports.disk, DIRECTORY) == []

    run(world, story)


@pytest.mark.parametrize("at", range(1, 120, 3))
def test_crashes_around_snapshots(at: int) -> None:
    """Power goes at some moment; all that was committed is there."""
    with World(at) as world:
        committed: list[int] = []

        async def story(ports: SimulatedPorts) -> None:
            log, _ = open_log(ports, snapshot_bytes_max=300)
            for number in range(1, 13):
                await log.append([topic(number)])
                committed.append(number)
                await asyncio.sleep(0.001)
            await log.close()

        async def life() -> None:
            ports = world.start("node")
            world.crash_in("node", at, "flushed")
            try:
                await world.within(ports, story(ports))
            except ProcessCrashed:
                return
            world.exit("node")

        world.run(life())

        async def reading(ports: SimulatedPorts) -> list[str]:
            return sorted(open_log(ports)[1].image.topics_by_name)

        assert {f"t{number}" for number in committed} <= set(run(world, reading))


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_a_snapshots_bytes(count: int) -> None:
    """Header, batches of bounded size, footer; the quorum's own records go along."""
    voters = VotersRecord(0, [VotersRecord.Voter(1, Uuid(b"v" * 16))])
    records = [topic(number) for number in range(count)]
    data = encode_snapshot(
        records, metadata_version=30, now_ms=5, epoch=3, last_contained_ms=4, kraft_version=1, voters=voters
    )
    found = decode_snapshot(data)
    assert (found.records, found.last_contained_ms, found.kraft_version, found.voters) == (records, 4, 1, voters)
    plain = decode_snapshot(encode_snapshot(records, metadata_version=30, now_ms=5))
    assert (plain.records, plain.last_contained_ms, plain.kraft_version, plain.voters) == (records, 0, 0, None)


def test_half_a_snapshot_is_none() -> None:
    """At whatever byte the file ends, and whichever byte is wrong after the first batch's header."""
    data = encode_snapshot([NoOpRecord(), topic(1)], metadata_version=30, now_ms=5)
    for end in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:end])
    for position in range(17, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x55
        try:
            found = decode_snapshot(bytes(damaged))
        except CorruptSnapshot:
            continue
        assert found.records == [NoOpRecord(), topic(1)]  # a base offset or a leader epoch, which no checksum covers
