"""Appending, reading and rolling, compared with a list of records."""

import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.io.disk import RealDisk
from ottla.log.config import LogConfig, TimestampType
from ottla.log.partition_directory import TopicIdMismatch
from ottla.log.partition_log import BatchRejected, ColdRead, PartitionLog
from ottla.sim.disk import SimulatedDisk
from ottla.sim.log_files import check_log_files
from ottla.wire.batches import Record, build_batch, decode_records, iterate_batches, read_header
from tests.unit.log.log_fixtures import (
    NOW,
    TOPIC_ID,
    append,
    batch,
    index_entries,
    open_log,
    read_all,
    stored_batches,
    stored_records,
)


def files_of(directory: Path) -> list[tuple[str, bytes]]:
    return [(str(path), path.read_bytes()) for path in sorted(directory.iterdir())]


def test_new_log_is_empty(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes, len(log.segments)) == (0, 0, 0, 1)
    assert log.read(0, 1000, limit_offset=0, min_one_message=True) is None
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None
    assert sorted(path.name for path in (tmp_path / "t-0").iterdir()) == [
        "00000000000000000000.log",
        "partition.metadata",
    ]


def test_append_assigns_offsets_and_records_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert [
        append(log, batch(b"a", b"b")),
        append(log, batch(b"c"), leader_epoch=4),
        append(log, batch(b"d"), leader_epoch=4),
    ] == [0, 2, 3]
    assert [(record.offset, record.value) for record in stored_records(log)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
        (3, b"d"),
    ]
    assert [read_header(stored).leader_epoch for stored in stored_batches(log)] == [0, 4, 4]
    assert [log.epoch_for(offset) for offset in (0, 1, 2, 3, 9)] == [0, 0, 4, 4, 4]
    assert log.epochs.entries() == [(0, 0), (4, 2)]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_log_equals_a_list(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Appended records are read back from any offset, with rolls, flushes, restarts and crashes in between."""
    directory = tmp_path_factory.mktemp("log")
    config = LogConfig(
        segment_bytes=data.draw(st.integers(600, 3000)), index_interval_bytes=data.draw(st.sampled_from([1, 100, 500]))
    )
    log = open_log(directory, config=config)
    model: list[Record] = []
    for step in data.draw(
        st.lists(st.sampled_from(["append"] * 12 + ["roll", "flush", "close", "kill", "read"]), max_size=60)
    ):
        match step:
            case "append":
                count, size = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 60))
                stamps = [NOW + data.draw(st.integers(-500, 500)) for _ in range(count)]
                sent = [Record(timestamp=stamp, key=b"k", value=b"v" * size) for stamp in stamps]
                base = append(log, memoryview(build_batch(sent, codec=data.draw(st.sampled_from([0, 0, 2])))))
                assert base == len(model)
                model += [record._replace(offset=base + index) for index, record in enumerate(sent)]
            case "roll":
                log.roll(now_ms=NOW)
            case "flush":
                log.flush()
            case "close":
                log.close()
                assert check_log_files(files_of(directory)) == []
                log = open_log(directory, config=config, clean=True)
            case "kill":
                log.release_files()
                log = open_log(directory, config=config, clean=False)
            case "read":
                offset = data.draw(st.integers(0, len(model)))
                assert read_all(log, offset, data.draw(st.integers(1, 2000))) == model[offset:]
        assert log.log_end_offset == len(model)
    assert read_all(log, 0) == model
    for offset in range(len(model)):
        found = log.read(offset, 1, limit_offset=len(model), min_one_message=True)
        assert found is not None
        assert offset in [record.offset for record in decode_records(found.file.read_at(found.position, found.size))]
    for offset in range(len(model)):
        max_bytes = data.draw(st.integers(1, 2000))
        view, found = (
            bytes(each) if (each := log.read_cached(offset, max_bytes, limit_offset=len(model))) is not None else None,
            log.read(offset, max_bytes, limit_offset=len(model), min_one_message=True),
        )
        assert found is not None
        assert view is None or view == found.file.read_at(found.position, found.size)
    for timestamp in (NOW - 501, NOW - 77, NOW, NOW + 300, NOW + 501):
        expected = next(((r.timestamp, r.offset, 0) for r in model if r.timestamp >= timestamp), None)
        assert log.offset_for_timestamp(timestamp) == expected
    latest = max(model, key=lambda record: record.timestamp, default=None)
    assert log.offset_of_max_timestamp() == (None if latest is None else (latest.timestamp, latest.offset, 0))


def test_cached_records_are_read_into_the_shared_buffer(tmp_path: Path) -> None:
    """In active and closed segments; not if the first batch is too large, or later records would be included."""
    log = open_log(tmp_path, config=LogConfig(index_interval_bytes=200))
    sent = [batch(b"%d" % index * 50) for index in range(60)]
    for each in sent:
        append(log, each)
        if log.log_end_offset == 30:
            log.roll(now_ms=NOW)
    stored = stored_batches(log)
    for offset in range(60):
        size = len(stored[offset]) + 3
        view = log.read_cached(offset, size, limit_offset=60)
        assert view is not None
        assert bytes(view) == b"".join(stored[offset : 30 if offset < 30 else 60])[:size]
    assert log.read_cached(5, len(stored[5]) - 1, limit_offset=60) is None
    assert log.read_cached(5, 1000, limit_offset=59) is None
    assert log.read_cached(60, 1000, limit_offset=60) is None


def test_cached_read_starts_at_a_batch_of_any_size(tmp_path: Path) -> None:
    """The first offset of a batch is searched from the batch before it: over 20 kB, but not over 70 kB."""
    log = open_log(tmp_path)
    sizes = [20_000, 20_000, 20_000, 70_000, 20_000, 20_000, 500]
    for size in sizes:
        append(log, batch(bytes(size), b"and one more"))
    log.roll(now_ms=NOW)
    append(log, batch(b"the last"))
    stored = stored_batches(log)
    assert log.read_cached(8, 80_000, limit_offset=log.log_end_offset) is None
    for offset in range(2 * len(sizes)):
        view = log.read_cached(offset, 80_000, limit_offset=log.log_end_offset)
        assert view is not None  # at 8 too, by the hint from the read before
        assert b"".join(stored[offset // 2 : len(sizes)])[:80_000].startswith(view)
        assert list(iterate_batches(view))


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("size", [100, 1_500, 4_000, 9_000, 30_000])
def test_large_cached_read_omits_a_last_incomplete_batch(tmp_path: Path, size: int, is_closed: bool) -> None:
    """A reader advances past the last complete batch of each read, even if an incomplete one follows."""
    log = open_log(tmp_path)
    while log.log_end_offset < 400_000 // size:
        append(log, batch(bytes(size + log.log_end_offset % 7)))
    if is_closed:
        log.roll(now_ms=NOW)
        append(log, batch(b"the last"))
        log.segments[0].write_indexes()
        log.segments[0].use_index_files()
    stored = stored_batches(log)
    offset, truncated, end = 0, 0, len(stored) - is_closed
    while offset < end:
        view = log.read_cached(offset, 65_536, limit_offset=log.log_end_offset)
        assert view is not None
        expected = b"".join(stored[offset:end])[:65_536]
        assert expected.startswith(view)
        complete = [header.last_offset for _, header in iterate_batches(view)]
        truncated += len(view) < len(expected)
        assert len(expected) - len(view) < size + 100
        assert complete[0] == offset
        offset = complete[-1] + 1
    assert truncated > 0 or size == 100


def test_interleaved_readers_get_their_own_records(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for index in range(300):
        append(log, batch(b"%d" % index * 1000))
    stored = stored_batches(log)
    positions = [0, 0, 50, 51, 200]
    while any(position < len(stored) for position in positions):
        for reader, position in enumerate(positions):
            if position < len(stored):
                view = log.read_cached(position, 40_000 + reader, limit_offset=len(stored))
                assert view is not None
                assert b"".join(stored[position:])[: len(view)] == view
                positions[reader] += len(list(iterate_batches(view)))


def test_read_stops_at_the_limit_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sizes = [len(batch(b"x" * n)) for n in range(10)]
    for n in range(10):
        append(log, batch(b"x" * n))
    for limit in range(11):
        for offset in range(limit):
            found = log.read(offset, 1 << 20, limit_offset=limit, min_one_message=True)
            assert found is not None
            assert (found.position, found.size) == (sum(sizes[:offset]), sum(sizes[offset:limit]))
        assert log.read(limit, 1 << 20, limit_offset=limit, min_one_message=True) is None


def test_first_batch_is_complete_or_absent(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    full_size = len(batch(b"x" * 500))
    append(log, batch(b"x" * 500))
    append(log, batch(b"y"))
    sizes = {}
    for min_one_message in (True, False):
        for max_bytes in (0, 10, full_size - 1, full_size, full_size + 5):
            found = log.read(0, max_bytes, limit_offset=2, min_one_message=min_one_message)
            sizes[min_one_message, max_bytes] = 0 if found is None else found.size
    assert sizes == {
        (True, 0): full_size,
        (True, 10): full_size,
        (True, full_size - 1): full_size,
        (True, full_size): full_size,
        (True, full_size + 5): full_size + 5,
        (False, 0): 0,
        (False, 10): 0,
        (False, full_size - 1): 0,
        (False, full_size): full_size,
        (False, full_size + 5): full_size + 5,
    }


def test_read_continues_in_the_next_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    log.roll(now_ms=NOW)
    append(log)
    first, second = (log.read(offset, 1 << 20, limit_offset=2, min_one_message=True) for offset in (0, 1))
    assert first is not None
    assert second is not None
    assert (first.file.path, second.file.path) == tuple(segment.log_path for segment in log.segments)
    assert (first.size, second.position) == (len(batch()), 0)


class TestRolling:
    def test_rolls_by_size(self, tmp_path: Path) -> None:
        size = len(batch())
        log = open_log(tmp_path, segment_bytes=3 * size)
        for _ in range(7):
            append(log)
        assert [segment.base_offset for segment in log.segments] == [0, 3, 6]

    def test_rolls_by_record_timestamps(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, segment_ms=1000, segment_jitter_ms=100)
        for elapsed in (0, 900, 500, 901, 1801, 1802):
            append(log, batch(timestamp=NOW - 10_000 + elapsed), now_ms=NOW + 50_000)
        assert [segment.base_offset for segment in log.segments] == [0, 3, 5]

    def test_rolls_by_broker_time_without_timestamps(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, segment_ms=1000)
        for now in (NOW, NOW + 1000, NOW + 1001, NOW + 1500, NOW + 2002):
            append(log, batch(timestamp=-1), now_ms=now)
        assert [segment.base_offset for segment in log.segments] == [0, 2, 4]

    def test_rolls_when_an_index_is_full(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, segment_index_bytes=48, index_interval_bytes=1)
        for n in range(12):
            append(log, batch(timestamp=NOW + n))
        assert [segment.base_offset for segment in log.segments] == [0, 4, 8]

    def test_does_not_roll_an_empty_segment(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.roll(now_ms=NOW)
        assert len(log.segments) == 1

    def test_applies_a_changed_config(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log)
        log.config = LogConfig(segment_bytes=len(batch()))
        append(log)
        assert len(log.segments) == 2

    def test_leaves_disk_writes_to_a_worker(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log)
        log.roll(now_ms=NOW)
        before = {path.name for path in tmp_path.iterdir()}
        for item in log.drain_unflushed():
            item.flush()
        assert {path.name for path in tmp_path.iterdir()} - before == {
            "00000000000000000000.index",
            "00000000000000000000.timeindex",
            "00000000000000000001.snapshot",
            "leader-epoch-checkpoint",
        }
        assert log.drain_unflushed() == []
        assert index_entries(log)[0] == ([], [(NOW, 0)])


def test_batch_larger_than_a_segment_is_rejected(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    with pytest.raises(BatchRejected) as rejected:
        append(log, batch(b"x" * 100))
    assert (rejected.value.code, log.log_end_offset, log.size_bytes) == (18, 0, 0)


def test_log_append_time_replaces_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, timestamp_type=TimestampType.APPEND)
    assert log.append(batch(timestamp=5), leader_epoch=0, now_ms=NOW) == (0, NOW)
    assert log.append(batch(b"a", b"b", timestamp=NOW * 2), leader_epoch=0, now_ms=NOW + 1) == (1, NOW + 1)
    assert [record.timestamp for record in stored_records(log)] == [NOW, NOW + 1, NOW + 1]
    assert log.offset_for_timestamp(NOW + 1) == (NOW + 1, 1, 0)


def test_preassigned_batches_are_written_unchanged(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    made = [
        build_batch([Record(value=b"a"), Record(value=b"b")], base_offset=0, leader_epoch=2),
        build_batch([Record(value=b"c")], base_offset=2, leader_epoch=3, is_control=True),
    ]
    for one in made:
        log.append_preassigned(one, now_ms=NOW)
    assert stored_batches(log) == made
    assert (log.log_end_offset, log.epochs.entries()) == (3, [(2, 0), (3, 2)])
    with pytest.raises(AssertionError):
        log.append_preassigned(made[0], now_ms=NOW)


def test_failed_write_changes_nothing(tmp_path: Path) -> None:
    disk = SimulatedDisk(cold_reads=0)
    log = open_log("/data/t-0", disk=disk)
    append(log, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    disk.fail("append", 1, errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        append(log, batch(b"b", producer_id=1, producer_epoch=0, base_sequence=1), leader_epoch=9)
    assert (log.log_end_offset, log.epochs.latest) == (1, 0)
    assert append(log, batch(b"c", producer_id=1, producer_epoch=0, base_sequence=1)) == 1
    assert [record.value for record in stored_records(log)] == [b"a", b"c"]


def test_cold_read_is_left_to_a_worker() -> None:
    disk = SimulatedDisk(cold_reads=1.0)
    log = open_log("/data/t-0", disk=disk, index_interval_bytes=100)
    for n in range(20):
        append(log, batch(b"x" * n))
    expected = log.read(3, 50, limit_offset=20, min_one_message=True)
    with pytest.raises(ColdRead) as cold:
        log.read(3, 50, limit_offset=20, min_one_message=True, may_wait=False)
    assert cold.value.retry() == expected
    assert log.read(19, 50, limit_offset=20, min_one_message=True, may_wait=False) is not None, (
        "positions at the end are in memory"
    )


def test_directory_of_another_topic_is_rejected(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    with pytest.raises(TopicIdMismatch):
        open_log(tmp_path, topic_id=TOPIC_ID[::-1])


def test_batch_may_be_validated_before_append(tmp_path: Path) -> None:
    from ottla.wire.batch_validation import validate_batch

    log = open_log(tmp_path)
    sent = batch(b"x" * 6000, codec=1)
    assert not log.needs_worker_validation(sent)
    large = memoryview(build_batch([Record(timestamp=NOW, value=bytes(range(256)) * 40)], codec=2))
    assert log.needs_worker_validation(large) == (len(large) > 4096)
    found = validate_batch(sent, log.config.rules(), NOW)
    assert log.append(sent, leader_epoch=0, now_ms=NOW, validated=found) == (0, -1)
    assert [record.value for record in stored_records(log)] == [b"x" * 6000]


def test_batch_to_be_recompressed_needs_a_worker(tmp_path: Path) -> None:
    from ottla.log.config import Compression

    log = open_log(tmp_path, compression=Compression.GZIP)
    assert log.needs_worker_validation(batch(b"x" * 20_000))
    assert not log.needs_worker_validation(batch(b"x"))


def test_slices_outlive_the_log(tmp_path: Path) -> None:
    """A fetch that is being sent keeps the file open, even if the log is deleted."""
    log = open_log(tmp_path)
    append(log)
    found = log.read(0, 1000, limit_offset=1, min_one_message=True)
    assert found is not None
    log.release_files()
    RealDisk().remove_tree(str(tmp_path))
    assert decode_records(found.file.read_at(found.position, found.size))[0].value == b"v"


def test_reopening_a_closed_log_changes_no_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=100)
    for n in range(50):
        append(log, batch(b"x" * n, timestamp=NOW + n))
    log.close()
    before = files_of(tmp_path)
    reopened: PartitionLog = open_log(tmp_path, index_interval_bytes=100)
    reopened.close()
    assert files_of(tmp_path) == before
