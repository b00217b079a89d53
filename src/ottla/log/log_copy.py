"""Copying a log into another directory while it is appended to: its segments first, then newer batches."""

from typing import NamedTuple

from ottla.base.ports import Disk
from ottla.log import leader_epoch_cache, partition_directory
from ottla.log.partition_log import LogSlice, PartitionLog
from ottla.log.producer_state import SNAPSHOT_SUFFIX
from ottla.log.segment import LOG_SUFFIX, LogSegment
from ottla.wire.batches import iterate_batches

SLICE_BYTES = 4 << 20
TRANSACTION_INDEX_SUFFIX = ".txnindex"


class SourceLogChanged(Exception):
    """Segments of the source were replaced or removed while they were copied. Start over."""


class SegmentCopy(NamedTuple):
    """A segment and its size when the copy started."""

    segment: LogSegment
    size: int


class LogCopy:
    """Create it on the loop; call `start`, `copy` and `finish` from a worker. The new log has no other user."""

    def __init__(self, disk: Disk, source: PartitionLog, directory: str) -> None:
        self._disk = disk
        self.source = source
        self.directory = directory
        self.segments = [SegmentCopy(segment, segment.size) for segment in source.segments]
        self._end_offset = source.log_end_offset
        self._start_offset = source.log_start_offset
        self._epochs = source.epochs.encode()

    @property
    def size(self) -> int:
        return sum(copy.size for copy in self.segments)

    def check(self) -> None:
        """Raises SourceLogChanged unless the source still starts with the copied segments. Call on the loop."""
        if self.source.segments[: len(self.segments)] != [copy.segment for copy in self.segments]:
            raise SourceLogChanged

    def start(self) -> None:
        """Create the directory and its small files, without indexes: opening the copy rebuilds them."""
        disk = self._disk
        if disk.exists(self.directory):
            disk.remove_tree(self.directory)
        disk.make_directories(self.directory)
        partition_directory.write_topic_id(disk, self.directory, self.source.topic_id)
        disk.write_atomically(f"{self.directory}/{leader_epoch_cache.FILE_NAME}", self._epochs)
        for name in disk.list(self.source.directory):
            is_snapshot = name.endswith(SNAPSHOT_SUFFIX) and int(name[:20]) <= self.segments[-1].segment.base_offset
            if is_snapshot or name.endswith(TRANSACTION_INDEX_SUFFIX):
                disk.write_atomically(f"{self.directory}/{name}", disk.read(f"{self.source.directory}/{name}"))

    def copy(self, number: int, position: int) -> int:
        """Copy the next bytes of a segment and return their number. A complete segment is fsynced."""
        segment, size = self.segments[number]
        source = self._disk.open_read_only(segment.log_path)
        try:
            data = source.read_at(position, min(SLICE_BYTES, size - position))
        finally:
            source.close()
        if not data and size > position:
            raise SourceLogChanged
        target = self._disk.open(f"{self.directory}/{segment.base_offset:020d}{LOG_SUFFIX}", create=True)
        try:
            target.append([data])
            if position + len(data) == size:
                target.fsync()
        finally:
            target.close()
        return len(data)

    def finish(self, *, now_ms: int) -> PartitionLog:
        """Open the copy, which rebuilds its indexes and scans its last segment, as after a crash."""
        opened = PartitionLog.open(
            self._disk,
            self.directory,
            config=self.source.config,
            topic_id=self.source.topic_id,
            now_ms=now_ms,
            clean=False,
            recovery_point=self.segments[-1].segment.base_offset,
            start_offset=self._start_offset,
        )
        if opened.log_end_offset != self._end_offset:
            raise SourceLogChanged
        return opened


def append_slice(target: PartitionLog, found: LogSlice, *, now_ms: int) -> int:
    """Append the complete batches of a slice to the log and return their size in bytes."""
    data = memoryview(bytearray(found.file.read_at(found.position, found.size)))
    appended = 0
    for position, header in iterate_batches(data):
        if header.last_offset < target.log_end_offset:
            continue
        if header.base_offset != target.log_end_offset or position + header.size > len(data):
            raise SourceLogChanged
        target.append_preassigned(data[position : position + header.size], now_ms=now_ms)
        appended += header.size
    return appended
