"""Limit on open files and mapped indexes: segments open files here, and those not used for a while are evicted."""

from typing import TYPE_CHECKING

from ottla.base.ports import Disk, File

if TYPE_CHECKING:
    from ottla.log.segment import LogSegment


class FileCache:
    """Open files of all logs on a disk. Evicts by second chance: the hot path only sets a flag on use.

    Evicted files are dereferenced, not closed: a fetch that is being sent may still read from one, which then closes
    itself.
    """

    def __init__(self, disk: Disk, *, open_files_max: int | None = None) -> None:
        self._disk = disk
        self._open_files_max = disk.open_files_max() if open_files_max is None else open_files_max
        self._segments: dict[LogSegment, None] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def open(self, segment: "LogSegment", *, create: bool = False) -> File:
        while len(self._segments) >= self._open_files_max:
            self._evict_one()
        file = (
            self._disk.open(segment.log_path, create=create)
            if segment.is_writable
            else self._disk.open_read_only(segment.log_path)
        )
        self._segments[segment] = None
        return file

    def remove(self, segment: "LogSegment") -> None:
        self._segments.pop(segment, None)

    def _evict_one(self) -> None:
        while True:
            segment = next(iter(self._segments))
            del self._segments[segment]
            if segment.was_used:
                segment.was_used = False
                self._segments[segment] = None
            else:
                segment.evict()
                return
