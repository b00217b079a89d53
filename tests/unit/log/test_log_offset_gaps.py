"""Offset gaps between segments after a crash: gaps of compaction are kept, and gaps of lost files end the log."""

import shutil
from pathlib import Path

import pytest

from ottla.io.disk import RealDisk
from ottla.log import offset_checkpoint_file, offset_gaps
from ottla.log.offset_checkpoint_file import CLEAN_OFFSETS_FILE
from ottla.wire.batches import Record, build_batch, iterate_batches, write_checksum
from tests.unit.log.compaction_harness import append_records, clean
from tests.unit.log.log_fixtures import NOW, append, open_log, read_all, stored_batches


def write_segment(directory: Path, base_offset: int, *batches: tuple[int, ...], missing: int = 0) -> None:
    """Write batches with records at these offsets. The last `missing` offsets of each batch have no record."""
    data = b""
    for offsets in batches:
        batch = build_batch(
            [Record(timestamp=NOW, value=b"%d" % offset) for offset in offsets], base_offset=offsets[0], leader_epoch=0
        )
        if missing:
            batch = with_last_delta(batch, len(offsets) - 1 + missing)
        data += batch
    (directory / f"{base_offset:020d}.log").write_bytes(data)


def with_last_delta(batch: bytearray, last_delta: int) -> bytearray:
    batch[23:27] = last_delta.to_bytes(4, "big")
    write_checksum(memoryview(batch))
    return batch


def empty_log(tmp_path: Path) -> Path:
    """Create an empty log. The test writes its segments."""
    directory = tmp_path / "t-0"
    open_log(directory).close()
    for path in directory.iterdir():
        if path.name.startswith("0"):
            path.unlink()
    return directory


def write_clean_to(tmp_path: Path, offset: int) -> None:
    offset_checkpoint_file.write(RealDisk(), f"{tmp_path}/{CLEAN_OFFSETS_FILE}", {("t", 0): offset, ("other", 0): 999})


def recovered(directory: Path, *, compacted: bool = False) -> tuple[list[int], int]:
    log = open_log(directory, clean=False, recovery_point=0, compacted=compacted)
    return [record.offset for record in read_all(log, 0)], log.log_end_offset


@pytest.mark.parametrize(("keys", "has_checkpoint"), [(40, True), (37, False), (23, False)])
def test_formerly_compacted_log_keeps_its_records(tmp_path: Path, keys: int, has_checkpoint: bool) -> None:
    directory = tmp_path / "t-0"
    log = open_log(directory, compacted=True, segment_bytes=600)
    for number in range(60):
        append_records(log, [(b"k%d" % (number * 7 % keys), b"x" * 50)], now_ms=NOW)
    log.roll(now_ms=NOW)
    clean(log, now_ms=NOW)
    if has_checkpoint:
        write_clean_to(tmp_path, log.log_end_offset)
    append_records(log, [(b"k1", b"after")], now_ms=NOW)
    log.close()
    expected = []
    for path in sorted(directory.glob("*.log")):  # Apache Kafka leaves no empty batch at the end of a segment
        stored = path.read_bytes()
        batches = [stored[at : at + header.size] for at, header in iterate_batches(stored) if header.record_count]
        path.write_bytes(b"".join(batches))
        expected += batches
    opened = open_log(directory, clean=False, recovery_point=0)
    assert (stored_batches(opened), opened.log_end_offset, opened.truncated_bytes) == (expected, 61, 0)


@pytest.mark.parametrize(
    ("segments", "missing", "trace"),
    [
        ([(0, (0,), (2,)), (5, (5,)), (9, (9, 10))], 0, "between batches"),
        ([(0, (1, 2)), (5, (5,)), (9, (9, 10))], 0, "before the first batch"),
        ([(0, (0, 1)), (5, (5,)), (9, (9, 10))], 1, "within batches"),
        ([(0, (0,)), (5, (5,)), (9, (10,))], 0, "after the gap"),
    ],
)
def test_gaps_with_traces_of_compaction_are_kept(
    tmp_path: Path, segments: list[tuple[int, *tuple[tuple[int, ...], ...]]], missing: int, trace: str
) -> None:
    directory = empty_log(tmp_path)
    for base_offset, *batches in segments:
        write_segment(directory, base_offset, *batches, missing=missing)
    expected = [offset for _, *batches in segments for offsets in batches for offset in offsets]
    assert recovered(directory) == (expected, expected[-1] + 1 + missing), trace


def test_gaps_before_the_cleaner_checkpoint_are_kept(tmp_path: Path) -> None:
    directory = empty_log(tmp_path)
    for base_offset in (0, 5, 9):
        write_segment(directory, base_offset, (base_offset,))
    write_clean_to(tmp_path, 9)
    assert recovered(directory) == ([0, 5, 9], 10)


def test_gap_after_the_clean_part_ends_the_log(tmp_path: Path) -> None:
    directory = empty_log(tmp_path)
    write_segment(directory, 0, (0,), (3,))
    for base_offset in (5, 9, 12):
        write_segment(directory, base_offset, (base_offset,))
    write_clean_to(tmp_path, 9)
    assert recovered(directory) == ([0, 3, 5, 9], 10)


@pytest.mark.parametrize("checkpoint", [None, b"", b"torn", b"0\n1\nother 0 100\n"])
def test_gap_without_traces_of_compaction_ends_the_log(tmp_path: Path, checkpoint: bytes | None) -> None:
    directory = empty_log(tmp_path)
    for base_offset in (0, 5, 9):
        write_segment(directory, base_offset, (base_offset, base_offset + 1))
    if checkpoint is not None:
        (tmp_path / CLEAN_OFFSETS_FILE).write_bytes(checkpoint)
    shutil.copytree(directory, tmp_path / "compacted-0")
    assert recovered(directory) == ([0, 1], 2)
    assert recovered(tmp_path / "compacted-0", compacted=True) == ([0, 1, 5, 6, 9, 10], 11)


def test_torn_batch_is_no_trace_of_compaction(tmp_path: Path) -> None:
    """Its header has a record count of 0, although it spans offsets."""
    directory = empty_log(tmp_path)
    write_segment(directory, 0, (0,))
    write_segment(directory, 5, (5, 6))
    path = directory / f"{5:020d}.log"
    data = path.read_bytes()
    path.write_bytes(data[:50] + bytes(len(data) - 50))
    assert recovered(directory) == ([0], 1)


def test_overlapping_segments_end_the_log(tmp_path: Path) -> None:
    directory = empty_log(tmp_path)
    write_segment(directory, 0, (0,), (3,), (4, 5, 6))
    write_segment(directory, 5, (5,))
    write_clean_to(tmp_path, 100)
    assert recovered(directory) == ([0, 3, 4, 5, 6], 7)


def test_log_without_gaps_is_not_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "t-0"
    log = open_log(directory)
    for number in range(9):
        append(log)
        if number % 3 == 2:
            log.roll(now_ms=NOW)
    log.flush()
    log.release_files()
    monkeypatch.setattr(offset_gaps, "scan_batches", None)
    assert recovered(directory) == (list(range(9)), 9)
