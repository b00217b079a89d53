"""Data that a worker fsyncs for the loop: closed segments, small files, directories, and the active segment."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.base.ports import Disk, File
from ottla.log.segment import LogSegment


class Flushable(Protocol):
    def flush(self) -> None: ...


class ClosedSegment:
    """A closed segment whose records and indexes are not yet on the disk."""

    __slots__ = ("_file", "segment")

    def __init__(self, segment: LogSegment) -> None:
        self.segment = segment
        self._file: File | None = None

    def open(self) -> None:
        """Call on the loop: workers must not touch the file cache."""
        self._file = self.segment.open_file()

    def flush(self) -> None:
        assert self._file is not None, "open it first"
        self.segment.flush(self._file)


class AtomicWrite(NamedTuple):
    """A small file, encoded on the loop and written by a worker, which fsyncs its directory too."""

    disk: Disk
    path: str
    data: bytes

    def flush(self) -> None:
        self.disk.write_atomically(self.path, self.data)


class DirectorySync(NamedTuple):
    """An fsync of a directory, for new names that no AtomicWrite makes durable."""

    disk: Disk
    directory: str

    def flush(self) -> None:
        self.disk.fsync_directory(self.directory)


class FlushPlan(NamedTuple):
    """Work that makes a log durable up to an offset: `run` it in a worker, then pass it to `on_flushed` of the log.

    Run one plan per log at a time: a later plan leaves out what an earlier one covers.
    """

    items: list[Flushable]
    active: File | None
    end_offset: int

    def run(self) -> None:
        for item in self.items:
            item.flush()
        if self.active is not None:
            self.active.fsync()


class FlushQueue:
    """Items to be flushed before the active segment of a log, in order."""

    __slots__ = ("_directory", "_disk", "_items", "_needs_directory_sync")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._items: list[Flushable] = []
        self._needs_directory_sync = True

    def __bool__(self) -> bool:
        return bool(self._items)

    def add_segment(self, segment: LogSegment) -> None:
        self._items.append(ClosedSegment(segment))

    def add_file(self, path: str, data: bytes) -> None:
        self._items.append(AtomicWrite(self._disk, path, data))

    def drain(self) -> list[Flushable]:
        """Empty the queue; return the items, ready to be flushed in a worker."""
        if self._needs_directory_sync:
            self._needs_directory_sync = False
            self._items.insert(0, DirectorySync(self._disk, self._directory))  # durable bytes are lost without a name
        items, self._items = self._items, []
        for item in items:
            if isinstance(item, ClosedSegment):
                item.open()
        return items

    def put_back(self, items: Sequence[Flushable]) -> None:
        self._items[:0] = items

    def remove_segments(self, segments: Sequence[LogSegment]) -> None:
        self._items = [
            item for item in self._items if not (isinstance(item, ClosedSegment) and item.segment in segments)
        ]

    def clear(self) -> None:
        self._items.clear()

    def move_to(self, directory: str) -> None:
        """Follow a rename of the directory."""
        self._items = [
            item._replace(path=directory + item.path[len(self._directory) :]) if isinstance(item, AtomicWrite) else item
            for item in self._items
            if not isinstance(item, DirectorySync)
        ]
        self._directory = directory
        self._needs_directory_sync = True
