"""Metadata snapshots: when they are written, what they contain, and crashes around them."""

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
    """Applies committed records to an image, as the publisher does."""

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
    with World(11) as created:
        yield created


def run(world: World, scenario: Callable[[SimulatedPorts], Coroutine[Any, Any, Any]]) -> Any:
    ports = world.start("node")

    async def within() -> Any:
        return await world.within(ports, scenario(ports))

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


def test_snapshot_is_written_after_enough_bytes(world: World) -> None:
    """It contains the records of the log, a new segment starts, and the next start reads from there."""

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


def test_snapshot_is_written_after_the_interval(world: World) -> None:
    """But only if there are records that no snapshot contains."""

    async def scenario(ports: SimulatedPorts) -> list[SnapshotId]:
        log, _ = open_log(ports, snapshot_interval_max_ms=60_000)
        await append_many(log, range(1, 3))
        assert list_snapshots(ports.disk, DIRECTORY) == []
        await asyncio.sleep(60)
        await append_many(log, range(3, 4))
        assert list_snapshots(ports.disk, DIRECTORY) == [SnapshotId(4, 1)]
        await log.close()
        return list_snapshots(ports.disk, DIRECTORY)

    assert run(world, scenario) == [SnapshotId(4, 1)]


def test_two_snapshots_and_the_log_since_the_older_are_retained(world: World) -> None:
    async def first(ports: SimulatedPorts) -> list[SnapshotId]:
        log, _ = open_log(ports, snapshot_bytes_max=500)
        await append_many(log, range(1, 40))
        await log.close()
        return list_snapshots(ports.disk, DIRECTORY)

    retained = run(world, first)
    assert len(retained) == 2
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
    assert int(after[0][:20]) <= retained[0].end_offset


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

    async def scenario(ports: SimulatedPorts) -> list[SnapshotId]:
        log, _ = open_log(ports, snapshot_bytes_max=500)
        ports.disk.fail("rename", 1, errno.ENOSPC)
        await append_many(log, range(1, 8))
        assert list_snapshots(ports.disk, DIRECTORY) == []
        await append_many(log, range(8, 16))
        await log.close()
        return list_snapshots(ports.disk, DIRECTORY)

    with caplog.at_level(logging.WARNING):
        assert len(run(world, scenario)) == 1
    assert "will retry" in caplog.text


def test_no_snapshot_is_written_during_a_transaction(world: World) -> None:
    """Its records are not in the image yet, so a snapshot would lose them."""

    async def scenario(ports: SimulatedPorts) -> None:
        log, _ = open_log(ports, snapshot_bytes_max=1)
        await log.append([BeginTransactionRecord("t"), topic(1)])
        await asyncio.sleep(1)
        await log.close()
        assert list_snapshots(ports.disk, DIRECTORY) == []

    run(world, scenario)


@pytest.mark.parametrize("at", range(1, 120, 3))
def test_committed_records_survive_power_failures_around_snapshots(at: int) -> None:
    with World(at) as world:
        committed: list[int] = []

        async def scenario(ports: SimulatedPorts) -> None:
            log, _ = open_log(ports, snapshot_bytes_max=300)
            for number in range(1, 13):
                await log.append([topic(number)])
                committed.append(number)
                await asyncio.sleep(0.001)
            await log.close()

        async def run_until_crash() -> None:
            ports = world.start("node")
            world.crash_in("node", at, "flushed")
            try:
                await world.within(ports, scenario(ports))
            except ProcessCrashed:
                return
            world.exit("node")

        world.run(run_until_crash())

        async def reading(ports: SimulatedPorts) -> list[str]:
            return sorted(open_log(ports)[1].image.topics_by_name)

        assert {f"t{number}" for number in committed} <= set(run(world, reading))


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_snapshot_is_decoded_as_encoded(count: int) -> None:
    """It has a header, batches of limited size and a footer, and contains the quorum's control records."""
    voters = VotersRecord(0, [VotersRecord.Voter(1, Uuid(b"v" * 16))])
    records = [topic(number) for number in range(count)]
    data = encode_snapshot(
        records, metadata_version=30, now_ms=5, epoch=3, last_contained_ms=4, kraft_version=1, voters=voters
    )
    found = decode_snapshot(data)
    assert (found.records, found.last_contained_ms, found.kraft_version, found.voters) == (records, 4, 1, voters)
    plain = decode_snapshot(encode_snapshot(records, metadata_version=30, now_ms=5))
    assert (plain.records, plain.last_contained_ms, plain.kraft_version, plain.voters) == (records, 0, 0, None)


def test_incomplete_or_corrupt_snapshot_is_rejected() -> None:
    """The file is truncated at any byte, or any byte after the first batch's base offset is wrong."""
    data = encode_snapshot([NoOpRecord(), topic(1)], metadata_version=30, now_ms=5)
    for end in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:end])
    for position in range(17, len(data)):
        corrupt = bytearray(data)
        corrupt[position] ^= 0x55
        try:
            found = decode_snapshot(bytes(corrupt))
        except CorruptSnapshot:
            continue
        assert found.records == [NoOpRecord(), topic(1)]  # a base offset or a leader epoch, which no checksum covers
