"""The segment that a group of segments becomes, written beside them under names that end in `.cleaned`."""

from collections.abc import Sequence

from ottla.base.ports import Buffer, Disk
from ottla.log import transaction_index
from ottla.log.compaction_swap import CLEANED_SUFFIX
from ottla.log.offset_index import MutableOffsetIndex
from ottla.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX
from ottla.log.time_index import MutableTimeIndex
from ottla.log.transaction_index import AbortedTransaction

HELD_BYTES_MAX = 1 << 20
SIZE_MAX = (1 << 31) - 1
"""Positions have 31 bits."""


class SegmentTooLarge(Exception):
    """New timestamps made the records longer than a segment may be."""


class CleanedSegment:
    """Batches are held until there are enough for a write."""

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
        self._held_bytes = 0
        self._file = disk.open(self._path(LOG_SUFFIX), create=True)
        self._file.truncate(0)

    def _path(self, suffix: str) -> str:
        return self._stem + suffix + CLEANED_SUFFIX

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """One batch; its memory is taken over until it is written."""
        size = len(batch)
        if self.size + size > SIZE_MAX:
            raise SegmentTooLarge(f"{self._stem} would have more than {SIZE_MAX} bytes")
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = max_timestamp, last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            self._offsets.append(last_offset, self.size)
            self._times.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size
        self.size += size
        self._parts.append(batch)
        self._held_bytes += size
        if self._held_bytes >= HELD_BYTES_MAX:
            self.write()

    def write(self) -> None:
        """What is held goes to the file: the memory that it was in may be used again."""
        if self._parts:
            self._file.append((b"".join(self._parts),))
            self._parts.clear()
            self._held_bytes = 0

    def finish(self, aborted: Sequence[AbortedTransaction]) -> None:
        """All of it is on the disk when this returns; the names are made durable by whoever gives them their next ones."""
        self.write()
        self._file.fsync()
        self._file.close()
        self._times.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self._put(OFFSET_INDEX_SUFFIX, self._offsets.encode())
        self._put(TIME_INDEX_SUFFIX, self._times.encode())
        if aborted:
            self._put(TRANSACTION_INDEX_SUFFIX, transaction_index.encode(aborted))

    def _put(self, suffix: str, data: bytes) -> None:
        file = self._disk.open(self._path(suffix), create=True)
        file.truncate(0)
        file.write_at(0, data)
        file.fsync()
        file.close()
