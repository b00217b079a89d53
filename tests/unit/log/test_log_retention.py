"""Deletion of segments by age, size and log start offset, and planning of compaction."""

from pathlib import Path

import pytest

from ottla.log.compaction_plan import plan_compaction
from ottla.log.partition_log import PartitionLog
from ottla.log.retention import delete_old, segments_to_delete
from tests.unit.log.compaction_harness import append_records
from tests.unit.log.log_fixtures import NOW, append, batch, open_log, read_all, stamped


def filled(directory: Path, **configs: object) -> PartitionLog:
    """Return a log with one record per segment, a second apart. The last segment is active."""
    log = open_log(directory, **{"retention_ms": -1, **configs})
    for number in range(5):
        append(log, batch(b"%d" % number, timestamp=NOW + 1000 * number))
        if number < 4:
            log.roll(now_ms=NOW)
    log.flush()
    return log


def deletable(log: PartitionLog, *, now_ms: int = NOW, high_watermark: int | None = None) -> int:
    return segments_to_delete(
        log, high_watermark=log.log_end_offset if high_watermark is None else high_watermark, now_ms=now_ms
    )


@pytest.mark.parametrize(
    ("now_ms", "expected"), [(NOW + 3000, 0), (NOW + 3001, 1), (NOW + 5000, 2), (NOW + 5001, 3), (NOW + 9000, 5)]
)
def test_age_is_that_of_the_newest_record(tmp_path, now_ms, expected):
    assert deletable(filled(tmp_path, retention_ms=3000), now_ms=now_ms) == expected


def test_no_limit_deletes_nothing(tmp_path):
    assert deletable(filled(tmp_path), now_ms=NOW * 2) == 0


def test_compact_policy_deletes_only_segments_before_the_log_start_offset(tmp_path):
    log = filled(tmp_path, retention_ms=1, retention_bytes=0, deletes=False)
    assert deletable(log, now_ms=NOW * 2) == 0
    log.advance_start(3)
    assert deletable(log, now_ms=NOW * 2) == 3


def test_size_limit_deletes_complete_segments(tmp_path):
    log = filled(tmp_path, retention_bytes=200)
    each = log.segments[0].size
    assert log.size_bytes == 5 * each
    for limit, expected in ((5 * each, 0), (5 * each - 1, 0), (4 * each, 1), (3 * each + 1, 1), (0, 5)):
        changed = open_log(tmp_path / str(limit), retention_ms=-1, retention_bytes=limit)
        for number in range(5):
            append(changed, batch(b"%d" % number))
            if number < 4:
                changed.roll(now_ms=NOW)
        assert deletable(changed) == expected, limit


def test_uncommitted_records_are_not_deleted(tmp_path):
    log = filled(tmp_path, retention_ms=0)
    assert [deletable(log, now_ms=NOW * 2, high_watermark=offset) for offset in (0, 1, 2, 5)] == [0, 1, 2, 5]


def test_fully_expired_log_continues_at_its_end_offset(tmp_path):
    log = filled(tmp_path, retention_ms=1)
    deleted = delete_old(log, high_watermark=5, now_ms=NOW * 2)
    assert [segment.base_offset for segment in deleted] == [0, 1, 2, 3, 4]
    assert (log.log_start_offset, log.log_end_offset, [segment.base_offset for segment in log.segments]) == (5, 5, [5])
    assert delete_old(log, high_watermark=5, now_ms=NOW * 2) == [], "the empty segment stays"
    assert append(log, batch(b"more")) == 5
    assert [record.value for record in read_all(log, 5)] == [b"more"]


def test_old_record_after_a_new_one_is_not_deleted_first(tmp_path):
    log = open_log(tmp_path, retention_ms=1000)
    for timestamp in (NOW, NOW - 100_000, NOW - 100_000):
        append(log, stamped([timestamp]))
        log.roll(now_ms=NOW)
    assert deletable(log, now_ms=NOW + 500) == 0
    assert deletable(log, now_ms=NOW + 1001) == 3


def compacted(directory: Path, **configs: object) -> PartitionLog:
    log = open_log(directory, compacted=True, deletes=False, **configs)
    for number in range(4):
        append_records(log, [(b"k", b"%d" % number)], now_ms=NOW + 1000 * number)
        log.roll(now_ms=NOW)
    log.flush()
    return log


def plan(
    log: PartitionLog, *, clean_to: int | None = None, now_ms: int = NOW + 10_000, high_watermark: int = 4
) -> tuple[int, int, int, bool]:
    found = plan_compaction(log, clean_to=clean_to, high_watermark=high_watermark, now_ms=now_ms)
    each = log.segments[0].size
    return found.first_dirty_offset, found.end_offset, found.dirty_bytes // each, found.is_overdue


def test_closed_segments_are_cleanable(tmp_path):
    log = compacted(tmp_path)
    assert plan(log) == (0, 4, 4, False)
    assert plan(log, clean_to=2) == (2, 4, 2, False)
    assert plan(log, clean_to=9) == (0, 4, 4, False), "a checkpoint after the log end offset is ignored"
    assert plan(log, high_watermark=2) == (0, 2, 2, False)
    assert plan_compaction(log, clean_to=3, high_watermark=4, now_ms=NOW).dirty_ratio == 0.25
    log.advance_start(1)
    assert plan(log, clean_to=0) == (1, 4, 3, False)


def test_min_compaction_lag_excludes_recent_segments(tmp_path):
    log = compacted(tmp_path, min_compaction_lag_ms=1500)
    assert plan(log, now_ms=NOW + 3000) == (0, 2, 2, False)
    assert plan(log, now_ms=NOW + 4500) == (0, 4, 4, False)


def test_max_compaction_lag_makes_compaction_due_and_closes_segments(tmp_path):
    log = compacted(tmp_path, max_compaction_lag_ms=2000)
    assert plan(log, now_ms=NOW + 2000)[3] is False
    assert plan(log, now_ms=NOW + 2001)[3] is True
    assert plan(log, clean_to=1, now_ms=NOW + 2001)[3] is False
    assert log.config.segment_age_max_ms == 2000
    append_records(log, [(b"k", b"v")], now_ms=NOW + 10_000)
    append_records(log, [(b"k", b"w")], now_ms=NOW + 12_001)
    assert [segment.base_offset for segment in log.segments[-2:]] == [4, 5]


def test_segment_with_unwritten_indexes_is_not_cleanable(tmp_path):
    log = open_log(tmp_path, compacted=True)
    append_records(log, [(b"k", b"v")], now_ms=NOW)
    log.roll(now_ms=NOW)
    assert plan_compaction(log, clean_to=None, high_watermark=1, now_ms=NOW).segments == ()
    log.flush()
    assert len(plan_compaction(log, clean_to=None, high_watermark=1, now_ms=NOW).segments) == 1
