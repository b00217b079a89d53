"""One segment: a `.log` file of whole batches, and the two indexes over it."""

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
"""The log last: without it the others mean nothing, and are removed when they are found."""

SCAN_BYTES = 8192 + 64
"""One read of the search from an index entry on: two entries are 4 kB apart, and the batch that ends behind that."""
SCAN_HEADER_BYTES = 27
scan = Struct(">qi11xi").unpack_from
"""Base offset, length and last offset delta of a batch."""

TAIL_WORDS_MAX = 2 * 256
"""Of 256 batches since the last index entry the positions are known: those who read at the end of the log need no search."""
NO_TAIL = 1 << 63
NO_HINT = (-1, 0)


ReadAt = Callable[[int, int], bytes | None]


class NotCached(Exception):
    """The disk would have to be waited for."""


class LogSegment:
    """The active segment grows and keeps its indexes in memory; a closed one has them in files, mapped when they are first needed.

    Index files are written when the segment is closed (from a worker, see `flush`), not as they grow: an entry is due every 4 kB, and a
    write for each would cost more than the index is worth, as the last segment is read through after a crash anyway.
    """

    __slots__ = (
        "aborted",
        "base_offset",
        "next_read_hint",
        "created_ms",
        "disk",
        "entry_position",
        "file",
        "files",
        "first_timestamp",
        "is_writable",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "size",
        "stem",
        "suffix",
        "tail",
        "tail_from",
        "time_index",
        "was_used",
    )

    def __init__(self, disk: Disk, files: FileCache, directory: str, base_offset: int, *, created_ms: int) -> None:
        self.disk = disk
        self.files = files
        self.stem = f"{directory}/{base_offset:020d}"
        self.suffix = ""
        """At the end of all names of its files, while it takes the place of others, and after it has been replaced itself."""
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size = 0
        self.file: File | None = None
        self.is_writable = False
        self.was_used = False
        self.offset_index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        self.aborted: list[AbortedTransaction] | None = None
        """Those whose markers are here, while the segment grows; afterwards they stand in their file."""
        self.entry_position = 0
        """Where the batch starts that got the last entry in the indexes."""
        self.first_timestamp: int | None = None
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.next_read_hint = NO_HINT
        """The offset that whoever read last will ask for next, and the position of its batch."""
        self.tail_from = NO_TAIL
        self.tail: list[int] = []
        """The last offset and the position of each batch there, by turns: of a thousand logs one list each stays in the caches."""

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
        """Make the file of a new segment, and indexes that grow."""
        self.is_writable = True
        self.file = self.files.open(self, create=True)
        self.file.truncate(0)  # what an earlier run left beyond its end
        self.start_growing()

    def start_growing(self) -> None:
        self.offset_index = MutableOffsetIndex(self.base_offset)
        self.time_index = MutableTimeIndex(self.base_offset)
        self.aborted = []
        self.entry_position = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self.next_read_hint = NO_HINT
        self.start_tail(self.base_offset)

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Write one batch at the end. If that raises, nothing has changed."""
        file = self.file
        if file is None:
            file = self.open_file()
        self.was_used = True
        self.on_batch(file.append((batch,)), last_offset, max_timestamp, index_interval_bytes)

    def on_batch(self, end: int, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """A batch stands at the end of what is indexed, and reaches to this end.

        Of a thousand logs in turn what is looked at here is in no cache: each field, and each number in one, counts.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        position = self.size
        tail = self.tail
        if position - self.entry_position > index_interval_bytes:
            self.add_entry(last_offset)
        elif len(tail) == TAIL_WORDS_MAX:
            self.start_tail(tail[-2] + 1)
        if not position:
            self.first_timestamp = max_timestamp
        tail += last_offset, position
        self.size = end

    def add_entry(self, last_offset: int) -> None:
        """The batch at the current end gets an entry in both indexes."""
        assert isinstance(self.offset_index, MutableOffsetIndex), self.stem
        assert isinstance(self.time_index, MutableTimeIndex), self.stem
        self.offset_index.append(last_offset, self.size)
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.entry_position = self.size
        if self.tail:
            self.start_tail(self.tail[-2] + 1)

    def start_tail(self, offset: int) -> None:
        """The next batch, at this offset, is the first whose position is known without a search."""
        self.tail_from = offset
        self.tail.clear()

    def on_aborted(self, transaction: AbortedTransaction) -> None:
        """The marker of an aborted transaction was written."""
        assert self.aborted is not None, self.stem
        self.aborted.append(transaction)

    def aborted_transactions(self) -> list[AbortedTransaction]:
        """In the order of their markers; ValueError where the file is damaged."""
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
        """Of the larger index."""
        return max(len(self.offsets()) * offset_index.ENTRY_BYTES, len(self.times()) * time_index.ENTRY_BYTES)

    def latest(self) -> tuple[int, int]:
        """The highest timestamp and the last offset of the batch that has it; the timestamp is -1 where no record has one."""
        if self.max_timestamp < 0 and not isinstance(self.time_index, MutableTimeIndex):
            # Remembered, and the file let go: whoever asks asks of all segments, and there may be more of them than mappings.
            times = MappedTimeIndex(self.base_offset, self.map_index(TIME_INDEX_SUFFIX))
            timestamp, self.max_timestamp_offset = times.last() or (-1, self.base_offset)
            self.max_timestamp = timestamp  # last, as a worker may look at it meanwhile
        return self.max_timestamp, self.max_timestamp_offset

    def map_index(self, suffix: str) -> memoryview:
        file = self.disk.open_read_only(self.stem + suffix + self.suffix)
        try:
            return file.map()
        finally:
            file.close()

    def locate(self, offset: int, read_at: ReadAt) -> tuple[int, int] | None:
        """Position and size of the batch that holds an offset, or of the next one if none does; None where the segment ends before."""
        if offset >= self.tail_from:
            return self.in_tail(offset)
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

    def in_tail(self, offset: int) -> tuple[int, int] | None:
        """The same, of an offset that is not before `tail_from`."""
        tail = self.tail
        at = 2 * bisect_left(tail[::2], offset)
        if at == len(tail):
            return None
        position = tail[at + 1]
        return position, (tail[at + 3] if at + 2 < len(tail) else self.size) - position

    def first_header(self) -> BatchHeader | None:
        return read_header(self.open_file().read_at(0, RECORDS_AT)) if self.size >= RECORDS_AT else None

    def last_header(self) -> BatchHeader | None:
        """Of a closed segment whose indexes are sound."""
        last = None
        for _, header in scan_headers(self.open_file(), self.offsets().last_position(), self.size):
            last = header
        return last

    def finish_indexes(self) -> None:
        """The last entry of the time index says what the highest timestamp of the whole segment is. No batch will follow."""
        self.start_tail(NO_TAIL)
        if isinstance(self.time_index, MutableTimeIndex):
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)

    def flush(self, file: File) -> None:
        """Put a closed segment and its indexes on the disk: from a worker, with its file opened on the loop. Then the index files serve."""
        self.write_indexes()
        self.use_index_files()
        file.fsync()

    def use_index_files(self) -> None:
        """They say what memory did, which is let go."""
        self.offset_index = self.time_index = self.aborted = None

    def write_indexes(self) -> None:
        """The time index first: the other one tells, when the log is opened, how far both go."""
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
        """Not used for a while: the file and what is mapped are let go, for others."""
        self.file = None
        if isinstance(self.offset_index, MappedOffsetIndex):
            self.offset_index = None
        if isinstance(self.time_index, MappedTimeIndex):
            self.time_index = None

    def release(self) -> None:
        """Let the file go; the segment may be used again, which opens it."""
        self.files.forget(self)
        self.file = None

    def move_to(self, files: FileCache) -> None:
        """From now on the segment's file is one of these."""
        self.release()
        self.files = files

    def rename(self, suffix: str) -> None:
        """Its files get another suffix. Those who have them open do not notice. The log comes first: it says whose the others are."""
        for kind in reversed(SUFFIXES):
            if self.disk.exists(self.stem + kind + self.suffix):
                self.disk.rename(self.stem + kind + self.suffix, self.stem + kind + suffix)
        self.suffix = suffix

    def remove(self) -> None:
        """Delete all its files."""
        self.release()
        for kind in SUFFIXES:
            if self.disk.exists(self.stem + kind + self.suffix):
                self.disk.remove(self.stem + kind + self.suffix)

    def has_index_files(self) -> bool:
        return self.disk.exists(self.stem + OFFSET_INDEX_SUFFIX) and self.disk.exists(self.stem + TIME_INDEX_SUFFIX)

    def is_transaction_index_valid(self) -> bool:
        """Whether its file, if it has one, can be read. Without one there are no aborted transaction_index."""
        try:
            self.aborted_transactions()
        except ValueError:
            return False
        return True

    def are_indexes_valid(self, index_interval_bytes: int) -> bool:
        """Whether the two files can be believed: of whole entries that fit the log, and as far as the log goes.

        The latter, as a segment that was active at a clean stop and closed after it may still have the files of that stop.
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
