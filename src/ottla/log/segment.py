"""One segment: a `.log` file of complete batches, its offset index and its time index."""

from bisect import bisect_left
from collections.abc import Callable
from struct import Struct

from ottla.base.ports import Buffer, Disk, File
from ottla.log import offset_index, time_index, transaction_index
from ottla.log.batch_scan import scan_headers
from ottla.log.file_cache import FileCache
from ottla.log.offset_index import MappedOffsetIndex, MutableOffsetIndex, OffsetIndex
from ottla.log.time_index import MappedTimeIndex, MutableTimeIndex, TimeIndex
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batches import LENGTH_OVERHEAD, RECORDS_AT, BatchHeader, read_header

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LOG_SUFFIX)
"""The log is deleted last: files without a log are leftovers and are removed when the log is opened."""

SCAN_BYTES = 8192 + 64
"""Read size when searching from an index entry: entries are at least 4 kB apart, so twice that and one more header."""
SCAN_HEADER_BYTES = 27
scan = Struct(">qi11xi").unpack_from
"""Base offset, length and last offset delta of a batch."""

TAIL_LENGTH_MAX = 2 * 256
"""Up to 256 batches since the last index entry have known positions: reads at the log's end skip the index search."""
NO_TAIL = 1 << 63
NO_HINT = (-1, 0)


ReadAt = Callable[[int, int], bytes | None]


class NotCached(Exception):
    """The read would have to wait for the disk."""


class LogSegment:
    """The active segment keeps its indexes in memory; a closed one maps their files when they are first needed.

    A worker writes the index files when the segment is closed (see `flush`). Writing an entry for every 4 kB of records
    would cost more than it saves, since the last segment is scanned after a crash anyway.
    """

    __slots__ = (
        "aborted",
        "base_offset",
        "created_ms",
        "disk",
        "file",
        "files",
        "first_timestamp",
        "is_writable",
        "last_entry_position",
        "max_timestamp",
        "max_timestamp_offset",
        "next_read_hint",
        "offset_index",
        "size",
        "stem",
        "suffix",
        "tail",
        "tail_offset",
        "time_index",
        "was_used",
    )

    def __init__(self, disk: Disk, files: FileCache, directory: str, base_offset: int, *, created_ms: int) -> None:
        self.disk = disk
        self.files = files
        self.stem = f"{directory}/{base_offset:020d}"
        self.suffix = ""
        """Suffix of all its file names during a swap (`.cleaned`, `.swap`) and once deleted (`.deleted`)."""
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size = 0
        self.file: File | None = None
        self.is_writable = False
        self.was_used = False
        self.offset_index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        self.aborted: list[AbortedTransaction] | None = None
        """Transactions whose markers are in this active segment. Those of a closed segment are in its index."""
        self.last_entry_position = 0
        """Position of the batch with the last index entry."""
        self.first_timestamp: int | None = None
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.next_read_hint = NO_HINT
        """The offset that the last reader will request next, and the position of its batch."""
        self.tail_offset = NO_TAIL
        self.tail: list[int] = []
        """Last offset and position of each batch from `tail_offset` on, flattened into one list: with a thousand logs,
        the CPU caches hold one list each but not two."""

    @property
    def log_path(self) -> str:
        return self.stem + LOG_SUFFIX + self.suffix

    def open_file(self) -> File:
        self.was_used = True
        file = self.file
        if file is None:
            file = self.file = self.files.open(self)
        return file

    def create(self) -> None:
        """Create the file of a new segment, and empty indexes in memory."""
        self.is_writable = True
        self.file = self.files.open(self, create=True)
        self.file.truncate(0)  # a leftover of an earlier run
        self.start_indexes()

    def start_indexes(self) -> None:
        self.offset_index = MutableOffsetIndex(self.base_offset)
        self.time_index = MutableTimeIndex(self.base_offset)
        self.aborted = []
        self.last_entry_position = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self.next_read_hint = NO_HINT
        self.reset_tail(self.base_offset)

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Write one batch at the end. If that raises, the segment is unchanged."""
        file = self.file
        if file is None:
            file = self.open_file()
        self.was_used = True
        self.on_batch(file.append((batch,)), last_offset, max_timestamp, index_interval_bytes)

    def on_batch(self, end: int, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Index the batch that was written at the current size and ends at `end`.

        With a thousand logs appended to in turn, none of this is in a CPU cache, so every attribute access and number
        counts.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        position = self.size
        tail = self.tail
        if position - self.last_entry_position > index_interval_bytes:
            self.add_entry(last_offset)
        elif len(tail) == TAIL_LENGTH_MAX:
            self.reset_tail(tail[-2] + 1)
        if not position:
            self.first_timestamp = max_timestamp
        tail += last_offset, position
        self.size = end

    def add_entry(self, last_offset: int) -> None:
        """Add an entry to both indexes for the batch at the current end."""
        assert isinstance(self.offset_index, MutableOffsetIndex), self.stem
        assert isinstance(self.time_index, MutableTimeIndex), self.stem
        self.offset_index.append(last_offset, self.size)
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.last_entry_position = self.size
        if self.tail:
            self.reset_tail(self.tail[-2] + 1)

    def reset_tail(self, offset: int) -> None:
        """Empty the tail. The next batch, at this offset, becomes the first in it."""
        self.tail_offset = offset
        self.tail.clear()

    def on_aborted(self, transaction: AbortedTransaction) -> None:
        """Record that the marker of an aborted transaction was written."""
        assert self.aborted is not None, self.stem
        self.aborted.append(transaction)

    def aborted_transactions(self) -> list[AbortedTransaction]:
        """Return them in the order of their markers. Raises ValueError if the file is corrupt."""
        if self.aborted is not None:
            return self.aborted
        path = self.stem + TRANSACTION_INDEX_SUFFIX + self.suffix
        return transaction_index.decode(self.disk.read(path), path) if self.disk.exists(path) else []

    def offsets(self) -> OffsetIndex:
        index = self.offset_index
        if index is None:
            index = self.offset_index = MappedOffsetIndex(self.base_offset, self.map_index(OFFSET_INDEX_SUFFIX))
        return index

    def times(self) -> TimeIndex:
        index = self.time_index
        if index is None:
            index = self.time_index = MappedTimeIndex(self.base_offset, self.map_index(TIME_INDEX_SUFFIX))
        return index

    def index_bytes(self) -> int:
        """Return the size of the larger index."""
        return max(len(self.offsets()) * offset_index.ENTRY_BYTES, len(self.times()) * time_index.ENTRY_BYTES)

    def latest(self) -> tuple[int, int]:
        """Return the highest timestamp and the last offset of its batch; the timestamp is -1 if no record has one."""
        if self.max_timestamp < 0 and not isinstance(self.time_index, MutableTimeIndex):
            # Cache the result and release the mapping: callers query all segments, which may be more than there can be
            # mappings.
            times = MappedTimeIndex(self.base_offset, self.map_index(TIME_INDEX_SUFFIX))
            timestamp, self.max_timestamp_offset = times.last() or (-1, self.base_offset)
            self.max_timestamp = timestamp  # set last: a worker may read it meanwhile
        return self.max_timestamp, self.max_timestamp_offset

    def map_index(self, suffix: str) -> memoryview:
        file = self.disk.open_read_only(self.stem + suffix + self.suffix)
        try:
            return file.map()
        finally:
            file.close()

    def locate(self, offset: int, read_at: ReadAt) -> tuple[int, int] | None:
        """Return position and size of the batch that holds an offset, or of the next; None after the end."""
        if offset >= self.tail_offset:
            return self.locate_in_tail(offset)
        position = self.offsets().position_of(offset)
        end = self.size
        while position < end:
            data = read_at(position, SCAN_BYTES)
            if data is None:
                raise NotCached
            at = 0
            last = min(len(data), end - position) - SCAN_HEADER_BYTES
            while at <= last:
                base, length, delta = scan(data, at)
                if base + delta >= offset:
                    return position + at, length + LENGTH_OVERHEAD
                at += length + LENGTH_OVERHEAD
            position += at
        return None

    def locate_in_tail(self, offset: int) -> tuple[int, int] | None:
        """Like `locate`, for an offset at or after `tail_offset`."""
        tail = self.tail
        at = 2 * bisect_left(tail[::2], offset)
        if at == len(tail):
            return None
        position = tail[at + 1]
        return position, (tail[at + 3] if at + 2 < len(tail) else self.size) - position

    def first_header(self) -> BatchHeader | None:
        return read_header(self.open_file().read_at(0, RECORDS_AT)) if self.size >= RECORDS_AT else None

    def last_header(self) -> BatchHeader | None:
        """Return the header of a closed segment's last batch. Its indexes must be valid."""
        last = None
        for _, header in scan_headers(self.open_file(), self.offsets().last_position(), self.size):
            last = header
        return last

    def finish_indexes(self) -> None:
        """Add the segment's highest timestamp to the time index. Call when no more batches will follow."""
        self.reset_tail(NO_TAIL)
        if isinstance(self.time_index, MutableTimeIndex):
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def flush(self, file: File) -> None:
        """Write the indexes of a closed segment and fsync it. Call from a worker with a file opened on the loop."""
        self.write_indexes()
        self.use_index_files()
        file.fsync()

    def use_index_files(self) -> None:
        """Free the indexes in memory, and map the files from now on."""
        self.offset_index = self.time_index = self.aborted = None

    def write_indexes(self) -> None:
        """Write the time index before the offset index: opening the log takes the extent of both from the latter."""
        offsets, times, aborted = self.offset_index, self.time_index, self.aborted
        path = self.stem + TRANSACTION_INDEX_SUFFIX
        if aborted:
            self.disk.write_atomically(path, transaction_index.encode(aborted))
        elif aborted is not None and self.disk.exists(path):
            self.disk.remove(path)
        if isinstance(times, MutableTimeIndex):
            self.disk.write_atomically(self.stem + TIME_INDEX_SUFFIX, times.encode())
        if isinstance(offsets, MutableOffsetIndex):
            self.disk.write_atomically(self.stem + OFFSET_INDEX_SUFFIX, offsets.encode())

    def evict(self) -> None:
        """Release the file and the mappings because other segments need them."""
        self.file = None
        if isinstance(self.offset_index, MappedOffsetIndex):
            self.offset_index = None
        if isinstance(self.time_index, MappedTimeIndex):
            self.time_index = None

    def release(self) -> None:
        """Release the file. Using the segment again reopens it."""
        self.files.remove(self)
        self.file = None

    def move_to(self, files: FileCache) -> None:
        """Release the file and use another file cache from now on."""
        self.release()
        self.files = files

    def rename(self, suffix: str) -> None:
        """Change the suffix of its files; open files stay usable. The log is first, as the others belong to it."""
        for extension in reversed(SUFFIXES):
            if self.disk.exists(self.stem + extension + self.suffix):
                self.disk.rename(self.stem + extension + self.suffix, self.stem + extension + suffix)
        self.suffix = suffix

    def remove(self) -> None:
        """Delete all its files."""
        self.release()
        for extension in SUFFIXES:
            if self.disk.exists(self.stem + extension + self.suffix):
                self.disk.remove(self.stem + extension + self.suffix)

    def has_index_files(self) -> bool:
        return self.disk.exists(self.stem + OFFSET_INDEX_SUFFIX) and self.disk.exists(self.stem + TIME_INDEX_SUFFIX)

    def is_transaction_index_valid(self) -> bool:
        """Whether the transaction index can be read. Without a file there are no aborted transactions."""
        try:
            self.aborted_transactions()
        except ValueError:
            return False
        return True

    def are_indexes_valid(self, index_interval_bytes: int) -> bool:
        """Whether both files consist of complete entries that fit the log and cover all of it.

        A segment that was active at a clean stop and closed afterwards may still have the shorter files of that stop.
        """
        if not self.has_index_files():
            return False
        offsets, times = self.map_index(OFFSET_INDEX_SUFFIX), self.map_index(TIME_INDEX_SUFFIX)
        if not offset_index.is_valid_index(offsets, self.size) or not time_index.is_valid_index(times):
            return False
        latest, _ = MappedTimeIndex(self.base_offset, times).last() or (-1, 0)
        bytes_since_entry = 0
        for _, header in scan_headers(
            self.open_file(), MappedOffsetIndex(self.base_offset, offsets).last_position(), self.size
        ):
            if bytes_since_entry > index_interval_bytes or header.max_timestamp > latest:
                return False
            bytes_since_entry += header.size
        return True
