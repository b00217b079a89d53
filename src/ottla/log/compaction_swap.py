"""How a cleaned segment takes the place of others, so that a crash at any moment leaves either the old ones or the new one.

The files of a cleaned segment are complete and flushed under names that end in `.cleaned`; then they are renamed to `.swap`. Once none
of them is left under the first name, and the directory is flushed, the new segment counts. Then the old ones are renamed to `.deleted`, and
the new one loses its suffix. Whoever opens the log after a crash finishes that; the names and the order are Apache Kafka's, so that each of
the two finishes what the other began.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.base.ports import Disk
from ottla.log.batch_scan import scan_headers
from ottla.log.producer_state import SNAPSHOT_SUFFIX
from ottla.log.segment import LOG_SUFFIX, SUFFIXES, LogSegment

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
OFFSET_DIGITS = 20


class SegmentSwap:
    """One cleaned segment takes the place of those it was made from. The calls are made in the order in which they stand here."""

    def __init__(self, log: "PartitionLog", bases: Sequence[int], size: int, *, now_ms: int) -> None:
        wanted = dict.fromkeys(bases)
        self._log = log
        self.old = [segment for segment in log.segments if segment.base_offset in wanted]
        self._is_whole = len(self.old) == len(bases)
        self._new = log.new_segment(bases[0], size, now_ms=now_ms)
        self._new.suffix = CLEANED_SUFFIX

    def begin(self) -> bool:
        """The files are renamed; False where the log has changed meanwhile. The directory is to be flushed before what follows."""
        if not self._is_whole:
            return False
        self._new.rename(SWAP_SUFFIX)
        return True

    def replace(self) -> bool:
        """From now on the new segment is read; False where the log has changed meanwhile, in which case nothing of this has happened."""
        if self._log.replace(self.old, self._new):
            return True
        self._new.rename(CLEANED_SUFFIX)  # so that whoever finds it does not take it for a replacement
        return False

    def mark_deleted(self, segments: Sequence[LogSegment]) -> None:
        """Old segments, some at a time: they do not count any more, and their files go later."""
        for segment in segments:
            mark_deleted(segment, keep_snapshot=segment.base_offset == self._new.base_offset)

    def finish(self) -> None:
        """Once all old segments are retired. The directory is to be flushed afterwards."""
        self._new.rename("")


def mark_deleted(segment: LogSegment, *, keep_snapshot: bool = False) -> None:
    """The files of a segment that left its log are marked as deleted, and with them the snapshot of the producers before it."""
    segment.rename(DELETED_SUFFIX)
    path = segment.stem + SNAPSHOT_SUFFIX
    if not keep_snapshot and segment.disk.exists(path):
        segment.disk.rename(path, path + DELETED_SUFFIX)


def remove_deleted_segments(segments: Sequence[LogSegment]) -> None:
    """Call it from a worker."""
    for segment in segments:
        segment.remove()
        path = segment.stem + SNAPSHOT_SUFFIX + DELETED_SUFFIX
        if segment.disk.exists(path):
            segment.disk.remove(path)


def remove_unfinished(disk: Disk, directory: str) -> None:
    """What a compaction that did not end has left. None of it may be there when a cleaned segment is renamed: see `finish_swaps`."""
    for name in disk.list(directory):
        if name.endswith(CLEANED_SUFFIX):
            disk.remove(f"{directory}/{name}")


def finish_swaps(disk: Disk, directory: str) -> None:
    """Finish, or undo, a replacement that was interrupted. Call it before anything else looks at the directory."""
    names = disk.list(directory)
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX) and name[:OFFSET_DIGITS].isdecimal()]
    if not swaps:
        return
    cleaned = [
        int(name[:OFFSET_DIGITS])
        for name in names
        if name.endswith(CLEANED_SUFFIX) and name[:OFFSET_DIGITS].isdecimal()
    ]
    undone_from = min(cleaned, default=None)
    kept = []
    for name in swaps:
        if undone_from is not None and int(name[:OFFSET_DIGITS]) >= undone_from:
            disk.remove(f"{directory}/{name}")  # not all of its files had got this far: the old segments still count
        else:
            kept.append(name)
    logs = [name for name in kept if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        _remove_replaced(disk, directory, names, logs)
    for name in (*logs, *(name for name in kept if name not in logs)):
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    disk.fsync_directory(directory)


def _remove_replaced(disk: Disk, directory: str, names: list[str], logs: list[str]) -> None:
    """The files of segments whose offsets the new ones hold."""
    first = min(int(name[:OFFSET_DIGITS]) for name in logs)
    behind = max(_end_of(disk, directory, name) for name in logs)
    for name in names:
        stem, _, suffix = name.partition(".")
        if "." + suffix in SUFFIXES and stem.isdecimal() and first <= int(stem) < behind:
            disk.remove(f"{directory}/{name}")


def _end_of(disk: Disk, directory: str, name: str) -> int:
    """The offset after the last batch of a segment; an empty one replaces at least what has its own name."""
    base_offset = int(name[:OFFSET_DIGITS])
    file = disk.open_read_only(f"{directory}/{name}")
    try:
        last = None
        for _, header in scan_headers(file, 0, file.size()):
            last = header
    finally:
        file.close()
    return base_offset + 1 if last is None else last.last_offset + 1
