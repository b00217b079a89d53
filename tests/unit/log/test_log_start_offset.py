"""Log start offset after DeleteRecords, and after reopening the log."""

from pathlib import Path

from ottla.io.disk import RealDisk
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from tests.unit.log.log_fixtures import NOW, TOPIC_ID, append, batch, open_log, read_all

SMALL = LogConfig(segment_bytes=200)
"""Two batches of one record per segment."""


def filled(directory: Path) -> PartitionLog:
    log = open_log(directory, config=SMALL)
    for number in range(7):
        append(log, batch(b"%d" % number), leader_epoch=number // 3)
    return log


def opened(directory: Path, start_offset: int, *, clean: bool) -> PartitionLog:
    return PartitionLog.open(
        RealDisk(), str(directory), config=SMALL, topic_id=TOPIC_ID, now_ms=NOW, clean=clean, start_offset=start_offset
    )


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def logs_in(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def test_segments_before_the_log_start_offset_are_detached(tmp_path):
    log = filled(tmp_path)
    assert bases(log) == [0, 2, 4, 6]
    log.advance_start(5)
    detached = log.detach_below_start()
    assert ([segment.base_offset for segment in detached], bases(log)) == ([0, 2], [4, 6])
    assert (log.log_start_offset, log.log_end_offset) == (5, 7)
    assert [record.value for record in read_all(log, 5)] == [b"5", b"6"]
    assert log.epochs.entries() == [(1, 5), (2, 6)]
    assert log.detach_below_start() == []


def test_detached_segments_are_not_flushed(tmp_path):
    """Their files may be deleted by then."""
    log = filled(tmp_path)
    log.advance_start(4)
    for segment in log.detach_below_start():
        segment.remove()
    for item in log.drain_unflushed():
        item.flush()
    assert logs_in(tmp_path) == [4, 6]


def test_last_segment_is_not_detached(tmp_path):
    log = filled(tmp_path)
    log.advance_start(7)
    log.detach_below_start()
    assert (bases(log), log.log_start_offset, read_all(log, 7)) == ([6], 7, [])
    assert append(log) == 7


def test_log_start_offset_never_decreases(tmp_path):
    log = filled(tmp_path)
    log.advance_start(5)
    log.advance_start(3)
    assert log.log_start_offset == 5


def test_open_removes_segments_before_the_log_start_offset(tmp_path):
    """A node may have stopped before it deleted the files."""
    for clean in (False, True):
        directory = tmp_path / str(clean)
        filled(directory).close()
        log = opened(directory, 5, clean=clean)
        assert (log.log_start_offset, log.log_end_offset, bases(log), logs_in(directory)) == (5, 7, [4, 6], [4, 6])
        assert log.epochs.entries() == [(1, 5), (2, 6)]
        assert sorted(path.name[:20] for path in directory.glob("*.snapshot")) == [
            f"{offset:020d}" for offset in (4, 6, 7)
        ]


def test_log_that_ends_before_its_start_offset_restarts_there(tmp_path):
    """After a power failure took its end, no offset is assigned twice."""
    filled(tmp_path).close()
    log = opened(tmp_path, 20, clean=False)
    assert (log.log_start_offset, log.log_end_offset, bases(log), logs_in(tmp_path)) == (20, 20, [20], [20])
    assert (append(log, batch(b"new")), [record.value for record in read_all(log, 20)]) == (20, [b"new"])
    log.close()
    assert [record.offset for record in read_all(opened(tmp_path, 20, clean=True), 20)] == [20]
