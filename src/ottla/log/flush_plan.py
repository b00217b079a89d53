"""What the loop leaves to a worker to put on the disk."""

from typing import NamedTuple, Protocol

from ottla.base.ports import Disk, File
from ottla.log.segment import LogSegment


class Flushable(Protocol):
    def flush(self) -> None: ...


class ClosedSegment:
    """A segment whose bytes and indexes are to be made durable."""

    __slots__ = ("_file", "segment")

    def __init__(self, segment: LogSegment) -> None:
        self.segment = segment
        self._file: File | None = None

    def open(self) -> None:
        """On the loop, as workers must not touch the table of open files."""
        self._file = self.segment.open_file()

    def flush(self) -> None:
        assert self._file is not None, "open it first"
        self.segment.flush(self._file)


class AtomicWrite(NamedTuple):
    """A small file, encoded on the loop and written by a worker. All names in its directory become durable, also that of a new segment."""

    disk: Disk
    path: str
    data: bytes

    def flush(self) -> None:
        self.disk.write_atomically(self.path, self.data)


class DirectorySync(NamedTuple):
    """The names in a directory, where no small file is written that would make them durable."""

    disk: Disk
    directory: str

    def flush(self) -> None:
        self.disk.fsync_directory(self.directory)


class FlushPlan(NamedTuple):
    """What a worker does so that a log is on the disk up to an offset: `run` it, then tell the log by `on_flushed`.

    One at a time for a log: a later plan leaves out what this one does, and is not done before it.
    """

    items: list[Flushable]
    active: File | None
    end_offset: int

    def run(self) -> None:
        for item in self.items:
            item.flush()
        if self.active is not None:
            self.active.fsync()
