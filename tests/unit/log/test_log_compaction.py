"""Which batches and records compaction retains."""

from pathlib import Path

import pytest

from ottla.log.compaction import serve
from ottla.log.compaction_plan import Cleaned, CleaningFailed, SegmentsMissing, plan_compaction
from ottla.log.partition_log import PartitionLog
from ottla.wire.batches import DELETE_HORIZON_BIT, BatchHeader, Record, decode_records, read_header
from tests.unit.log.compaction_harness import append_marker, append_records, clean, request
from tests.unit.log.log_fixtures import NOW, open_log, stored_batches, stored_records

DAY = 86_400_000


def compacted(directory: Path, **configs: object) -> PartitionLog:
    return open_log(directory, compacted=True, deletes=False, **{"segment_bytes": 1 << 20, **configs})


def put(log: PartitionLog, *records: tuple[bytes | None, bytes | None], now_ms: int = NOW, **fields: object) -> int:
    return append_records(log, list(records), now_ms=now_ms, **fields)


def headers(log: PartitionLog) -> list[BatchHeader]:
    return [read_header(batch) for batch in stored_batches(log)]


def retained(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in stored_records(log)]


def test_latest_record_of_each_key_keeps_offset_and_timestamp(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"b", b"2"))
    log.roll(now_ms=NOW)
    put(log, (b"a", b"3"))
    result = clean(log, now_ms=NOW)
    assert isinstance(result, Cleaned)
    assert (result.end_offset, result.keys) == (5, 3)
    assert stored_records(log) == [
        Record(2, NOW + 2, b"a", b"2"),
        Record(3, NOW, b"c", b"1"),
        Record(4, NOW + 1, b"b", b"2"),
        Record(5, NOW, b"a", b"3"),
    ]


@pytest.mark.parametrize("codec", range(5))
def test_batches_keep_codec_offset_range_and_attributes(tmp_path, codec):
    log = compacted(tmp_path)
    put(
        log,
        *[(b"k%d" % (at % 7), b"v" * 50 + b"%d" % at) for at in range(30)],
        codec=codec,
        producer_id=5,
        base_sequence=3,
    )
    put(log, *[(b"other%d" % at, b"v") for at in range(3)], codec=codec)
    before = stored_batches(log)
    log.roll(now_ms=NOW)
    clean(log, now_ms=NOW)
    first, second = headers(log)
    old = read_header(before[0])
    assert first._replace(length=0, crc=0, record_count=0) == old._replace(length=0, crc=0, record_count=0)
    assert (first.record_count, first.size < old.size) == (7, True)
    assert stored_batches(log)[1] == before[1], "a batch that loses no record is copied"
    assert [record.offset for record in decode_records(stored_batches(log)[0])] == list(range(23, 30))
    assert second.base_offset == 30


def test_max_timestamp_is_that_of_retained_records(tmp_path):
    """A batch may lose the record with its highest timestamp. With LogAppendTime, the batch keeps its timestamp."""
    log = compacted(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"x", b"1"), (b"y", b"1"), log_append_time=NOW + 77)
    log.roll(now_ms=NOW)
    put(log, (b"b", b"2"), (b"y", b"2"))
    log.roll(now_ms=NOW)
    clean(log, now_ms=NOW)
    found = [(header.max_timestamp, header.has_log_append_time) for header in headers(log)]
    assert found == [(NOW, False), (NOW + 77, True), (NOW + 1, False)]
    assert [record.timestamp for record in stored_records(log)] == [NOW, NOW + 77, NOW, NOW + 1]


def test_tombstone_is_removed_at_its_delete_horizon(tmp_path):
    log = compacted(tmp_path, delete_retention_ms=1000)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"b", None), (b"c", b"1"))
    log.roll(now_ms=NOW)
    put(log, (b"z", b"1"))
    clean(log, now_ms=NOW)
    assert retained(log) == [(0, b"a", b"1"), (2, b"b", None), (3, b"c", b"1"), (4, b"z", b"1")]
    marked = headers(log)[1]
    assert marked.attributes == DELETE_HORIZON_BIT
    assert (marked.base_timestamp, marked.max_timestamp) == (NOW + 1000, NOW + 1)
    assert [record.timestamp for record in stored_records(log)] == [NOW, NOW, NOW + 1, NOW], (
        "although deltas are relative to the delete horizon"
    )
    log.roll(now_ms=NOW)
    put(log, (b"y", b"1"))
    clean(log, 4, now_ms=NOW + 999)
    assert (2, b"b", None) in retained(log)
    assert headers(log)[1].base_timestamp == NOW + 1000, "a horizon is set once"
    log.roll(now_ms=NOW)
    put(log, (b"x", b"1"))
    clean(log, 5, now_ms=NOW + 1000)
    assert retained(log) == [(0, b"a", b"1"), (3, b"c", b"1"), (4, b"z", b"1"), (5, b"y", b"1"), (6, b"x", b"1")]
    assert headers(log)[1].attributes & DELETE_HORIZON_BIT


def test_superseded_tombstone_is_removed_at_once(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", None))
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    clean(log, now_ms=NOW)
    assert retained(log) == [(1, b"a", b"2")]


def test_records_without_a_key_are_removed(tmp_path):
    """They were written when the topic was not compacted."""
    log = compacted(tmp_path)
    put(log, (None, b"1"), (b"", b"2"), (b"a", b""))
    log.roll(now_ms=NOW)
    clean(log, now_ms=NOW)
    assert retained(log) == [(1, b"", b"2"), (2, b"a", b"")]


def test_last_batch_of_a_producer_stays_as_an_empty_batch(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1"), producer_id=9, base_sequence=0)
    put(log, (b"a", b"2"), (b"a", b"3"), producer_id=9, producer_epoch=0, base_sequence=1)
    put(log, (b"a", b"4"))
    log.roll(now_ms=NOW)
    clean(log, now_ms=NOW)
    empty, last = headers(log)
    assert (empty.base_offset, empty.last_offset, empty.record_count, empty.producer_id, empty.base_sequence) == (
        1,
        2,
        0,
        9,
        1,
    )
    assert (empty.base_timestamp, empty.max_timestamp, empty.size) == (-1, NOW + 1, 61)
    assert last.base_offset == 3
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    opened = open_log(tmp_path, clean=False, compacted=True)
    producer = opened.producers.get(9)
    assert producer is not None
    assert producer.batches[-1][:4] == (1, 2, 1, 2), "its sequence is restored"
    opened.producers.clear()
    opened.roll(now_ms=NOW)
    put(opened, (b"b", b"1"))
    opened.roll(now_ms=NOW)
    clean(opened, now_ms=NOW)
    assert [header.base_offset for header in headers(opened)] == [3, 4], "nothing is retained for an expired producer"


def test_log_end_offset_survives_removal_of_all_records(tmp_path):
    """All records before the active segment may be removed, and the active segment may be empty."""
    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    append_marker(log, "abort", 3, now_ms=NOW)
    put(log, (b"b", None), producer_id=3, base_sequence=0, transactional=True)
    append_marker(log, "abort", 3, now_ms=NOW)
    log.producers.clear()
    log.roll(now_ms=NOW)
    for days in (0, 2, 4):
        clean(log, 0, now_ms=NOW + days * DAY)
    assert [(header.base_offset, header.last_offset, header.record_count) for header in headers(log)] == [
        (0, 0, 1),
        (3, 3, 0),
    ]
    log.disk.remove(log.segments[-1].log_path)
    assert open_log(tmp_path, clean=False, compacted=True).log_end_offset == 4


def test_active_segment_and_uncommitted_records_are_not_cleaned(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    log.roll(now_ms=NOW)
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    put(log, (b"a", b"3"))
    log.flush()
    plan = plan_compaction(log, clean_to=None, high_watermark=1, now_ms=NOW)
    assert ([segment.base_offset for segment in plan.segments], plan.end_offset) == ([0], 1)
    clean(log, now_ms=NOW)
    assert retained(log) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_marker_stays_until_its_records_are_removed_and_its_horizon_has_passed(tmp_path):
    """KAFKA-14055: a record whose key equals a marker's does not replace the marker."""
    log = compacted(tmp_path, delete_retention_ms=1000)
    put(log, (b"a", b"1"), producer_id=3, base_sequence=0, transactional=True)
    append_marker(log, "commit", 3, now_ms=NOW)
    put(log, (b"b", b"1"), producer_id=4, base_sequence=0, transactional=True)
    append_marker(log, "abort", 4, now_ms=NOW)
    put(log, (b"\0\0\0\1", b"1"), (b"\0\0\0\0", b"1"))
    log.producers.clear()
    log.roll(now_ms=NOW)
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    put(log, (b"z", b"1"))

    def remaining() -> list[tuple[int, int, bool]]:
        return [
            (header.base_offset, header.record_count, header.attributes & DELETE_HORIZON_BIT != 0)
            for header in headers(log)
            if header.base_offset < 4
        ]

    clean(log, 0, now_ms=NOW)
    assert remaining() == [(1, 1, False), (3, 1, False)], "both transactions lost their records in this run"
    clean(log, 0, now_ms=NOW + 10)
    assert remaining() == [(1, 1, True), (3, 1, True)], "with a delete horizon"
    clean(log, 0, now_ms=NOW + 1009)
    assert remaining() == [(1, 1, True), (3, 1, True)]
    clean(log, 0, now_ms=NOW + 1010)
    assert remaining() == []
    assert [key for _, key, _ in retained(log)] == [b"\0\0\0\1", b"\0\0\0\0", b"a", b"z"]


def test_open_transaction_is_not_cleaned(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    put(log, (b"a", b"3"), producer_id=3, base_sequence=0, transactional=True)
    put(log, (b"a", b"4"))
    log.roll(now_ms=NOW)
    log.producers.clear()  # so that only the log has this information
    result = clean(log, now_ms=NOW)
    assert isinstance(result, Cleaned)
    assert (result.end_offset, [record.offset for record in stored_records(log)]) == (2, [1, 2, 3])
    append_marker(log, "abort", 3, now_ms=NOW)
    log.roll(now_ms=NOW)
    put(log, (b"z", b"1"))
    log.producers.clear()
    clean(log, 2, now_ms=NOW)
    assert [(header.base_offset, header.is_control) for header in headers(log)] == [(3, False), (4, True), (5, False)]


def test_second_run_changes_nothing(tmp_path):
    log = compacted(tmp_path, segment_bytes=300)
    for at in range(40):
        put(log, (b"k%d" % (at % 5), b"%d" % at))
    clean(log, now_ms=NOW)
    once = stored_records(log)
    result = clean(log, now_ms=NOW + 5)
    assert isinstance(result, Cleaned)
    assert stored_records(log) == once


def test_segments_are_merged_up_to_segment_bytes(tmp_path):
    log = compacted(tmp_path, segment_bytes=400)
    for at in range(40):
        put(log, (b"k%d" % at, b"%d" % at))
    assert len(log.segments) == 8
    clean(log, now_ms=NOW)
    assert len(log.segments) == 8, "each has the maximum size"
    for at in range(40):
        put(log, (b"k%d" % (at % 39), b"again"))
    clean(log, now_ms=NOW)
    assert len(log.segments) == 16, "grouped by their sizes before the run"
    clean(log, now_ms=NOW)
    sizes = [segment.size for segment in log.segments[:-1]]
    assert len(log.segments) < 12
    assert max(sizes) <= 400
    assert sorted(path.name for path in tmp_path.glob("*.log*")) == [
        f"{segment.base_offset:020d}.log" for segment in log.segments
    ]


def test_groups_respect_offset_range_and_index_size(tmp_path):
    from ottla.log.compaction import group_segments

    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    log.roll(now_ms=NOW)
    plan = plan_compaction(log, clean_to=None, high_watermark=1, now_ms=NOW)
    joined = request(
        log,
        plan,
        now_ms=NOW,
        bases=(0, 10, 20, 30),
        sizes=(40, 40, 0, 40),
        index_sizes=(8, 8, 0, 8),
        segment_bytes=100,
        segment_index_bytes=100,
        end_offset=40,
    )
    assert group_segments(joined, end_offset=40, clean_to=40) == [[0, 1, 2], [3]]
    assert group_segments(joined, end_offset=40, clean_to=21) == [[0, 1, 2]]
    small = request(
        log,
        plan,
        now_ms=NOW,
        bases=(0, 10, 20, 30),
        sizes=(40, 40, 0, 40),
        index_sizes=(8, 8, 0, 8),
        segment_bytes=1000,
        segment_index_bytes=16,
        end_offset=40,
    )
    assert group_segments(small, end_offset=40, clean_to=40) == [[0, 1, 2], [3]]
    wide = request(
        log,
        plan,
        now_ms=NOW,
        bases=(0, 10, 1 << 31),
        sizes=(40, 40, 40),
        index_sizes=(8, 8, 8),
        segment_bytes=1000,
        segment_index_bytes=100,
        end_offset=(1 << 31) + 1,
    )
    assert group_segments(wide, end_offset=wide.end_offset, clean_to=wide.end_offset) == [[0, 1], [2]]


def test_keys_beyond_the_memory_limit_are_cleaned_in_the_next_run(tmp_path):
    """Keys are added by complete windows of records; records after the last window stay unchanged."""
    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    log.roll(now_ms=NOW)
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    result = clean(log, now_ms=NOW, key_memory_bytes=1)
    assert isinstance(result, Cleaned)
    assert (result.end_offset, retained(log)) == (1, [(0, b"a", b"1"), (1, b"a", b"2")])
    result = clean(log, 1, now_ms=NOW, key_memory_bytes=1)
    assert isinstance(result, Cleaned)
    assert (result.end_offset, retained(log)) == (2, [(1, b"a", b"2")])


def test_corrupt_segment_is_reported_and_unchanged(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(now_ms=NOW)
    path = log.segments[0].log_path
    data = bytearray(log.disk.read(path))
    data[-3] ^= 1
    log.disk.write_atomically(path, data)
    result = clean(log, now_ms=NOW)
    assert isinstance(result, CleaningFailed)
    assert "checksum" in result.reason
    assert log.disk.read(path) == data


def test_missing_segment_is_reported(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1"))
    log.roll(now_ms=NOW)
    log.flush()
    joined = request(log, plan_compaction(log, clean_to=None, high_watermark=1, now_ms=NOW), now_ms=NOW)
    log.disk.remove(log.segments[0].log_path)
    assert b"SegmentsMissing" in list(serve(log.disk, joined.encode()))[-1]  # type: ignore[operator]
    assert SegmentsMissing.__name__ == "SegmentsMissing"


def test_throttled_run_yields_minimum_durations(tmp_path):
    log = compacted(tmp_path)
    put(log, (b"a", b"1" * 1000))
    log.roll(now_ms=NOW)
    log.flush()
    plan = plan_compaction(log, clean_to=None, high_watermark=1, now_ms=NOW)
    steps = [
        step
        for step in serve(log.disk, request(log, plan, now_ms=NOW, bytes_per_second=1000.0).encode())
        if isinstance(step, float)
    ]
    size = log.segments[0].size
    assert sum(steps) == pytest.approx(3 * size / 1000), "read twice, written once"
