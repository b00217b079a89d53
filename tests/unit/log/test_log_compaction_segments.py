"""Interrupted swaps, of Ottla or Apache Kafka, are completed or undone when a log is opened."""

import shutil
from pathlib import Path

from ottla.io.disk import RealDisk
from ottla.log.compaction_segments import CLEANED_SUFFIX, SWAP_SUFFIX, SegmentSwap, finish_swaps, remove_unfinished
from ottla.log.partition_log import PartitionLog
from tests.unit.log.compaction_harness import append_records, clean
from tests.unit.log.log_fixtures import NOW, open_log, stored_records

EXTENSIONS = (".log", ".index", ".timeindex")


def filled(directory: Path) -> PartitionLog:
    log = open_log(directory, compacted=True, segment_bytes=400)
    for number in range(20):
        append_records(log, [(b"k%d" % (number % 3), b"%d" % number)], now_ms=NOW)
    return log


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.suffix != ".snapshot"}


def prepared(tmp_path: Path) -> tuple[Path, dict[str, bytes], dict[str, bytes]]:
    """Return a directory before compaction, its files, and the files that compaction creates."""
    log = filled(tmp_path / "log")
    log.flush()
    log.close()
    shutil.copytree(tmp_path / "log", tmp_path / "cleaned")
    before = files(tmp_path / "log")
    other = open_log(tmp_path / "cleaned", compacted=True, segment_bytes=4000)
    clean(other, now_ms=NOW)
    other.close()
    return tmp_path / "log", before, files(tmp_path / "cleaned")


def put(directory: Path, contents: dict[str, bytes], suffix: str, extensions: tuple[str, ...] = EXTENSIONS) -> None:
    for extension in extensions:
        name = f"{0:020d}{extension}"
        (directory / (name + suffix)).write_bytes(contents[name])


def test_valid_swap_is_completed(tmp_path):
    directory, before, after = prepared(tmp_path)
    put(directory, after, SWAP_SUFFIX)
    finish_swaps(RealDisk(), str(directory))
    assert files(directory) == after
    assert len(before) > len(after)


def test_swap_with_a_renamed_log_is_completed(tmp_path):
    directory, before, after = prepared(tmp_path)
    for name in before:
        if name.startswith("0") and name not in after:
            (directory / name).unlink()
    put(directory, after, "", (".log",))
    put(directory, after, SWAP_SUFFIX, (".index", ".timeindex"))
    finish_swaps(RealDisk(), str(directory))
    assert files(directory) == after


def test_incomplete_swap_is_undone(tmp_path):
    """One file was not renamed to `.swap`, so the old segments are still valid."""
    directory, before, after = prepared(tmp_path)
    put(directory, after, SWAP_SUFFIX, (".log", ".index"))
    put(directory, after, CLEANED_SUFFIX, (".timeindex",))
    finish_swaps(RealDisk(), str(directory))
    remove_unfinished(RealDisk(), str(directory))
    assert files(directory) == before


def test_directory_without_swap_files_is_unchanged(tmp_path):
    directory, before, _ = prepared(tmp_path)
    finish_swaps(RealDisk(), str(directory))
    assert files(directory) == before


def test_swap_is_rejected_if_the_log_has_changed(tmp_path):
    """Segments were deleted while the cleaner was running."""
    log = filled(tmp_path)
    bases = [segment.base_offset for segment in log.segments[:2]]
    for extension in EXTENSIONS:
        (tmp_path / f"{bases[0]:020d}{extension}{CLEANED_SUFFIX}").write_bytes(b"")
    swap = SegmentSwap(log, bases, 0, now_ms=NOW)
    assert swap.begin()
    log.advance_start(bases[1])
    log.detach_below_start()
    assert not swap.replace()
    assert not [path.name for path in tmp_path.glob("*.swap")]
    assert not SegmentSwap(log, bases, 0, now_ms=NOW).begin()


def test_replaced_segments_stay_readable(tmp_path):
    log = filled(tmp_path)
    old_slice = log.read(0, 1 << 20, limit_offset=log.log_end_offset, min_one_message=True)
    assert old_slice is not None
    before = old_slice.file.read_at(old_slice.position, old_slice.size)
    clean(log, now_ms=NOW)
    assert old_slice.file.read_at(old_slice.position, old_slice.size) == before
    assert [record.offset for record in stored_records(log)][-3:] == [17, 18, 19]
    found = log.offset_for_timestamp(NOW)
    assert found is not None
    assert found[0] == NOW
