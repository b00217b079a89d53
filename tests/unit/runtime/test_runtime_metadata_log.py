"""The metadata log: commits are fsynced, in order, and survive any crash."""

import asyncio
import errno
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.log.config import LogConfig
from ottla.metadata.image import ClusterImage
from ottla.runtime.metadata_log import MetadataLogFailed
from ottla.sim.world import ProcessCrashed, SimulatedPorts, World
from ottla.wire.records.control import LeaderChangeMessage, Voter
from ottla.wire.records.metadata import ConfigRecord, FeatureLevelRecord
from ottla.wire.schema import decode
from tests.unit.runtime.metadata_log_fixtures import (
    CLUSTER,
    DIRECTORY,
    FEATURES,
    batches,
    open_and_close,
    open_log,
    quorum_state,
    run,
    topic,
)


@pytest.fixture
def world() -> Iterator[World]:
    with World(7) as created:
        yield created


def test_new_log_starts_with_a_leader_change_record(world: World) -> None:
    """Epoch 1, a LeaderChange record at offset 0, and the quorum-state file that Kafka's tools expect."""

    async def scenario(ports: SimulatedPorts) -> tuple[int, int, int, ClusterImage]:
        log = open_log(ports)
        image = log.load(CLUSTER)
        await log.close()
        return log.epoch, log.end_offset, log.high_watermark, image

    assert run(world, scenario) == (1, 1, 1, ClusterImage(CLUSTER))
    ((offset, epoch, is_control, (value,)),) = batches(world)
    assert (offset, epoch, is_control) == (0, 1, True)
    assert value is not None
    assert decode(LeaderChangeMessage, 0, value)[0] == LeaderChangeMessage(0, 1, [Voter(1)], [Voter(1)])
    assert quorum_state(world) == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


def test_each_append_is_a_batch_and_commits_are_in_order(world: World) -> None:
    """The future returns the last offset, after the listener was called."""
    events: list[Any] = []

    async def scenario(ports: SimulatedPorts) -> list[int]:
        log = open_log(ports)
        log.follow(lambda offset, records: events.append((offset, list(records))))
        futures = [log.append([FEATURES]), log.append([topic(1), topic(2)]), log.append([topic(3)])]
        assert (log.end_offset, log.high_watermark, events) == (5, 1, [])
        for number, future in enumerate(futures):
            future.add_done_callback(lambda done, number=number: events.append((number, done.result())))
        offsets = await asyncio.gather(*futures)
        assert log.high_watermark == 5
        await log.close()
        return offsets

    assert run(world, scenario) == [1, 3, 4]
    assert [item for item in events if isinstance(item[1], list)] == [
        (1, [FEATURES]),
        (2, [topic(1), topic(2)]),
        (4, [topic(3)]),
    ]
    assert [item for item in events if isinstance(item[1], int)] == [(0, 1), (1, 3), (2, 4)]
    assert [(offset, len(values)) for offset, _, _, values in batches(world)] == [(0, 1), (1, 1), (2, 2), (4, 1)]


def test_pending_appends_share_a_flush(world: World) -> None:
    """A hundred concurrent appends cost one flush, and those during that flush one more."""

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports)
        flushes = count_flushes(ports)
        first = [log.append([topic(number)]) for number in range(100)]
        await asyncio.sleep(0)  # the first flush is running
        second = [log.append([topic(number)]) for number in range(100, 200)]
        assert await asyncio.gather(*first, *second) == list(range(1, 201))
        assert flushes() == 2
        await log.close()

    run(world, scenario)


def count_flushes(ports: SimulatedPorts) -> Callable[[], int]:
    """Return a function that returns the number of flushes of the log since this call."""
    counted = 0
    real = ports.disk.step

    def step(call: str, *details: Any) -> Any:
        nonlocal counted
        counted += call == "fsync" and str(details[0]).endswith(".log")
        return real(call, *details)

    ports.disk.step = step  # type: ignore[method-assign, assignment]
    return lambda: counted


def test_each_start_begins_a_new_epoch(world: World) -> None:
    """Earlier records are replayed with their offsets, without the control records."""

    async def first(ports: SimulatedPorts) -> None:
        log = open_log(ports)
        await log.append([FEATURES, topic(1)])
        await log.close()

    async def second(ports: SimulatedPorts) -> tuple[int, list[tuple[int, Any]], int]:
        log = open_log(ports, clean=True)
        replayed = list(log.replay_all())
        offset = await log.append([topic(2)])
        await log.close()
        return log.epoch, replayed, offset

    run(world, first)
    assert run(world, second) == (2, [(1, FEATURES), (2, topic(1))], 4)
    assert quorum_state(world)["leaderEpoch"] == 2
    assert [(offset, epoch, is_control) for offset, epoch, is_control, _ in batches(world)] == [
        (0, 1, True),
        (1, 1, False),
        (3, 2, True),
        (4, 2, False),
    ]


def test_epoch_is_never_reused(world: World) -> None:
    """Even if a start crashed after writing the state file and before writing the log."""
    run(world, lambda ports: open_and_close(ports))
    ports = world.start("node")
    state = quorum_state(world) | {"leaderEpoch": 41}
    ports.disk.write_atomically(f"{DIRECTORY}/quorum-state", json.dumps(state).encode())
    world.exit("node")
    assert run(world, lambda ports: open_and_close(ports)) == 42


@pytest.mark.parametrize("keep", ["page-cache", "flushed"])
@pytest.mark.parametrize("at", range(1, 60))
def test_committed_records_survive_a_crash_at_any_step(keep: Any, at: int) -> None:
    """A process crash or power failure happens during the nth change to the disk; each append is atomic.

    Segments are so small that every other append starts a new one.
    """
    with World(at) as world:
        committed: list[int] = []

        async def scenario(ports: SimulatedPorts) -> None:
            log = open_log(ports, config=LogConfig(segment_bytes=250))
            for number in range(1, 9):
                await log.append([topic(2 * number), topic(2 * number + 1)])
                committed.append(number)
            await log.close()

        async def crashing() -> None:
            ports = world.start("node")
            world.crash_in("node", at, keep)
            try:
                await world.within(ports, scenario(ports))
            except ProcessCrashed:
                return
            world.exit("node")

        world.run(crashing())

        async def reading(ports: SimulatedPorts) -> list[Any]:
            log = open_log(ports, config=LogConfig(segment_bytes=250))
            return [record for _, record in log.replay_all()]

        found = run(world, reading)
        complete = len(found) // 2
        assert found == [topic(number) for number in range(2, 2 + 2 * complete)]
        assert complete >= len(committed)


def test_failed_flush_fails_the_log(world: World) -> None:
    """Pending and later appends fail, and the node is notified. Nothing is retried."""
    failures: list[MetadataLogFailed] = []
    events: list[Any] = []

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports, failures=failures)
        log.follow(lambda offset, records: events.append(offset))
        await log.append([topic(1)])
        ports.disk.fail("fsync", 1, errno.EIO)
        doomed = [log.append([topic(2)]), log.append([topic(3)])]
        results = await asyncio.gather(*doomed, return_exceptions=True)
        assert [type(result) for result in results] == [MetadataLogFailed, MetadataLogFailed]
        with pytest.raises(MetadataLogFailed):
            await log.append([topic(4)])
        assert (log.high_watermark, events) == (2, [1])
        await log.close()

    run(world, scenario)
    assert len(failures) == 1
    assert isinstance(failures[0].__cause__, OSError)


def test_failed_write_fails_the_log(world: World) -> None:
    failures: list[MetadataLogFailed] = []

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports, failures=failures)
        ports.disk.fail("append", 1, errno.EIO)
        for number in (1, 2):
            with pytest.raises(MetadataLogFailed):
                await log.append([topic(number)])

    run(world, scenario)
    assert len(failures) == 1


def test_full_disk_rejects_only_the_append(world: World) -> None:
    """Nothing of the rejected append is written; the next one succeeds."""
    failures: list[MetadataLogFailed] = []

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports, failures=failures)
        end = log.end_offset
        ports.disk.fail("append", 1, errno.ENOSPC)
        with pytest.raises(ApiError) as caught:
            await log.append([topic(1)])
        assert (caught.value.code, log.end_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, end)
        assert await log.append([topic(2)]) == end

    run(world, scenario)
    assert len(failures) == 0


def test_failing_listener_fails_the_log(world: World) -> None:
    """Committed records that cannot be applied must not be skipped."""
    failures: list[MetadataLogFailed] = []

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports, failures=failures)

        def listener(offset: int, records: Any) -> None:
            if offset == 2:
                raise OSError(errno.ENOSPC, "no space")

        log.follow(listener)
        results = await asyncio.gather(*[log.append([topic(number)]) for number in range(3)], return_exceptions=True)
        assert results[0] == 1
        assert [type(result) for result in results[1:]] == [MetadataLogFailed, MetadataLogFailed]

    run(world, scenario)
    assert len(failures) == 1


def test_wait_committed_waits_for_earlier_appends(world: World) -> None:
    """It does not wait for later ones, and raises after a failure."""
    failures: list[MetadataLogFailed] = []

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports, failures=failures)
        await log.wait_committed()
        first = log.append([topic(1)])
        await log.wait_committed()
        assert first.done()
        ports.disk.fail("fsync", 1, errno.EIO)
        second = log.append([topic(2)])
        with pytest.raises(MetadataLogFailed):
            await log.wait_committed()
        assert isinstance(second.exception(), MetadataLogFailed)

    run(world, scenario)


def test_close_commits_pending_appends(world: World) -> None:
    async def scenario(ports: SimulatedPorts) -> int:
        log = open_log(ports)
        future = log.append([topic(1)])
        await log.close()
        return future.result()

    assert run(world, scenario) == 1


def test_log_with_several_segments_is_replayed(world: World) -> None:
    config = LogConfig(segment_bytes=2000)

    async def scenario(ports: SimulatedPorts) -> None:
        log = open_log(ports, config=config)
        for number in range(1, 101):
            await log.append([topic(number)])

    run(world, scenario)
    world_files = [path for path, _ in world.storage("node").files() if path.endswith(".log")]
    assert len(world_files) > 3

    async def reading(ports: SimulatedPorts) -> list[Any]:
        return [record for _, record in open_log(ports, config=config).replay_all()]

    assert run(world, reading) == [topic(number) for number in range(1, 101)]


def test_records_are_written_in_versions_of_the_metadata_version(world: World) -> None:
    """The metadata version is read from the log itself, also after a restart."""
    from ottla.wire.records.framing import decode_metadata_record
    from ottla.wire.records.metadata import PartitionRecord

    partition = PartitionRecord(partition_id=0, topic_id=topic(1).topic_id, replicas=[1], isr=[1], leader=1)

    async def first(ports: SimulatedPorts) -> None:
        log = open_log(ports)
        await log.append([FeatureLevelRecord("metadata.version", 16), topic(1)])
        await log.close()

    async def second(ports: SimulatedPorts) -> None:
        log = open_log(ports)
        log.load(CLUSTER)
        await log.append([partition])
        await log.append([FEATURES])
        await log.append([partition, ConfigRecord(2, "t1", "retention.ms", "1")])
        await log.close()

    run(world, first)
    run(world, second)
    values = [
        value for _, _, is_control, values in batches(world) if not is_control for value in values if value is not None
    ]
    assert [value[2] for value in values] == [0, 0, 0, 0, 2, 0]
    assert decode_metadata_record(values[2]) == decode_metadata_record(values[4]) == partition
