"""Cleaned segments: the cleaner process writes them, the broker swaps them in. After a crash, either the old segments
or the new one are valid.

The writer fsyncs complete files with names that end in `.cleaned`; the broker renames them to `.swap`. When none is
left with the first suffix and the directory is fsynced, the new segment is valid. Then the old ones are renamed to
`.deleted`, and the new one loses its suffix. Opening the log after a crash completes the swap. Names and order are
Apache Kafka's, so each broker can complete the other's.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.base.ports import Buffer, Disk
from ottla.log import transaction_index
from ottla.log.batch_scan import scan_headers
from ottla.log.offset_index import MutableOffsetIndex
from ottla.log.producer_state import SNAPSHOT_SUFFIX
from ottla.log.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from ottla.log.time_index import MutableTimeIndex
from ottla.log.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
OFFSET_DIGITS = 20

BUFFERED_BYTES_MAX = 1 << 20
SIZE_MAX = (1 << 31) - 1
"""Positions have 31 bits."""


class SegmentTooLarge(Exception):
    """Rewritten timestamps made the records longer than a segment may be."""


class CleanedSegmentWriter:
    """Writes the `.cleaned` files of the segment that a group of segments becomes. Buffers batches up to 1 MB."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int) -> None:
        self._disk = disk
        self._stem = f"{directory}/{base_offset:020d}"
        self.base_offset = base_offset
        self.size = 0
        self._index_interval_bytes = index_interval_bytes
        self._bytes_since_entry = 0
        self._offsets = MutableOffsetIndex(base_offset)
        self._times = MutableTimeIndex(base_offset)
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._parts: list[Buffer] = []
        self._buffered_bytes = 0
        self._file = disk.open(self._path(LOG_SUFFIX), create=True)
        self._file.truncate(0)

    def _path(self, suffix: str) -> str:
        return self._stem + suffix + CLEANED_SUFFIX

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Add one batch. Its memory must not change before the next `write`."""
        size = len(batch)
        if self.size + size > SIZE_MAX:
            raise SegmentTooLarge(f"{self._stem} would exceed the limit of {SIZE_MAX} bytes")
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = max_timestamp, last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            self._offsets.append(last_offset, self.size)
            self._times.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size
        self.size += size
        self._parts.append(batch)
        self._buffered_bytes += size
        if self._buffered_bytes >= BUFFERED_BYTES_MAX:
            self.write()

    def write(self) -> None:
        """Write buffered batches to the file, so that their memory can be reused."""
        if self._parts:
            self._file.append((b"".join(self._parts),))
            self._parts.clear()
            self._buffered_bytes = 0

    def finish(self, aborted: Sequence[AbortedTransaction]) -> None:
        """Write and fsync everything. The names become durable by an fsync of the directory after their next rename."""
        self.write()
        self._file.fsync()
        self._file.close()
        self._times.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self._write_file(OFFSET_INDEX_SUFFIX, self._offsets.encode())
        self._write_file(TIME_INDEX_SUFFIX, self._times.encode())
        if aborted:
            self._write_file(TRANSACTION_INDEX_SUFFIX, transaction_index.encode(aborted))

    def _write_file(self, suffix: str, data: bytes) -> None:
        file = self._disk.open(self._path(suffix), create=True)
        file.truncate(0)
        file.write_at(0, data)
        file.fsync()
        file.close()


class SegmentSwap:
    """Replaces segments by the cleaned one made from them. Call the methods in the order in which they are defined."""

    def __init__(self, log: "PartitionLog", bases: Sequence[int], size: int, *, now_ms: int) -> None:
        replaced = dict.fromkeys(bases)
        self._log = log
        self.old = [segment for segment in log.segments if segment.base_offset in replaced]
        self._is_complete = len(self.old) == len(bases)
        self._new = log.new_segment(bases[0], size, now_ms=now_ms)
        self._new.suffix = CLEANED_SUFFIX

    def begin(self) -> bool:
        """Rename the new files to `.swap`. Return False if the log has changed. Fsync the directory afterwards."""
        if not self._is_complete:
            return False
        self._new.rename(SWAP_SUFFIX)
        return True

    def replace(self) -> bool:
        """Put the new segment into the log. Return False, without effect, if the log has changed."""
        if self._log.replace(self.old, self._new):
            return True
        self._new.rename(CLEANED_SUFFIX)  # else `finish_swaps` would complete the swap
        return False

    def mark_deleted(self, segments: Sequence[LogSegment]) -> None:
        """Rename the files of old segments, some at a time. They are deleted later."""
        for segment in segments:
            mark_deleted(segment, keep_snapshot=segment.base_offset == self._new.base_offset)

    def finish(self) -> None:
        """Give the new files their final names, once all old ones are marked deleted. Then fsync the directory."""
        self._new.rename("")


def mark_deleted(segment: LogSegment, *, keep_snapshot: bool = False) -> None:
    """Rename the files of a segment that left its log to `.deleted`, and its producer snapshot too."""
    segment.rename(DELETED_SUFFIX)
    path = segment.stem + SNAPSHOT_SUFFIX
    if not keep_snapshot and segment.disk.exists(path):
        segment.disk.rename(path, path + DELETED_SUFFIX)


def remove_deleted_segments(segments: Sequence[LogSegment]) -> None:
    """Delete the files of segments marked deleted. Call from a worker."""
    for segment in segments:
        segment.remove()
        path = segment.stem + SNAPSHOT_SUFFIX + DELETED_SUFFIX
        if segment.disk.exists(path):
            segment.disk.remove(path)


def remove_unfinished(disk: Disk, directory: str) -> None:
    """Remove files of an interrupted compaction. They must not exist when new ones are renamed: see `finish_swaps`."""
    for name in disk.list(directory):
        if name.endswith(CLEANED_SUFFIX):
            disk.remove(f"{directory}/{name}")


def finish_swaps(disk: Disk, directory: str) -> None:
    """Complete or undo an interrupted swap. Call before anything else reads the directory."""
    names = disk.list(directory)
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX) and name[:OFFSET_DIGITS].isdecimal()]
    if not swaps:
        return
    cleaned = [
        int(name[:OFFSET_DIGITS])
        for name in names
        if name.endswith(CLEANED_SUFFIX) and name[:OFFSET_DIGITS].isdecimal()
    ]
    undo_from = min(cleaned, default=None)
    complete = []
    for name in swaps:
        if undo_from is not None and int(name[:OFFSET_DIGITS]) >= undo_from:
            disk.remove(f"{directory}/{name}")  # not all files were renamed: the old segments are still valid
        else:
            complete.append(name)
    logs = [name for name in complete if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        _remove_replaced(disk, directory, names, logs)
    for name in (*logs, *(name for name in complete if name not in logs)):
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    disk.fsync_directory(directory)


def _remove_replaced(disk: Disk, directory: str, names: list[str], logs: list[str]) -> None:
    """Remove the files of segments whose offsets are in the new ones."""
    first = min(int(name[:OFFSET_DIGITS]) for name in logs)
    end = max(_end_of(disk, directory, name) for name in logs)
    for name in names:
        stem, _, suffix = name.partition(".")
        if "." + suffix in SUFFIXES and stem.isdecimal() and first <= int(stem) < end:
            disk.remove(f"{directory}/{name}")


def _end_of(disk: Disk, directory: str, name: str) -> int:
    """Return the offset after the last batch. An empty segment replaces at least the one with its own name."""
    base_offset = int(name[:OFFSET_DIGITS])
    file = disk.open_read_only(f"{directory}/{name}")
    try:
        last = None
        for _, header in scan_headers(file, 0, file.size()):
            last = header
    finally:
        file.close()
    return base_offset + 1 if last is None else last.last_offset + 1
