"""The log of one partition: batches are appended at its end, and read from anywhere."""

from bisect import bisect_right
from struct import Struct
from typing import NamedTuple, Protocol

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid, uuid_text
from ottla.base.ports import Disk, File
from ottla.log import epochs as leader_epochs
from ottla.log import partition_metadata, recovery, time_search
from ottla.log.config import LogConfig
from ottla.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.log.open_files import OpenFiles
from ottla.log.producer_state import snapshot_path
from ottla.log.segment import Segment
from ottla.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.wire.batches import ATTRIBUTES_AT, CODEC_MASK, LEADER_EPOCH_AT, MAX_TIMESTAMP_AT, read_header, write_checksum
from ottla.wire.inspection import BatchRejected, Inspection, inspect

OFFSETS_PER_SEGMENT_MAX = 0x7FFF_FFFF
INLINE_COMPRESSED_MAX = 4096
ASK_ALWAYS = -(1 << 63)
"""A roll timestamp that every batch exceeds."""

_pack_i64 = Struct(">q").pack_into
_pack_i32 = Struct(">i").pack_into


class LogSlice(NamedTuple):
    """Bytes of a segment, to be read or sent as they are."""

    file: File
    position: int
    size: int


class Flushable(Protocol):
    def flush(self) -> None: ...


class TopicIdMismatch(ValueError):
    """The directory holds the records of another topic."""


class ClosedSegment:
    """A segment whose bytes and indexes are to be put on the disk."""

    __slots__ = ("_file", "_segment")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._file: File | None = None

    def open(self) -> None:
        """On the loop, as workers must not touch the table of open files."""
        self._file = self._segment.opened()

    def flush(self) -> None:
        assert self._file is not None, "open it first"
        self._segment.flush(self._file)


class AtomicWrite(NamedTuple):
    """A small file, encoded on the loop and written by a worker."""

    disk: Disk
    path: str
    data: bytes

    def flush(self) -> None:
        self.disk.write_atomically(self.path, self.data)


class PartitionLog:
    """One writer; offsets are given here. All calls come from the loop's thread."""

    def __init__(self, disk: Disk, directory: str, *, config: LogConfig, topic_id: Uuid, loaded: recovery.LoadedLog,
                 files: OpenFiles) -> None:
        self.disk = disk
        self.directory = directory
        self.topic_id = topic_id
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.log_start_offset = loaded.segments[0].base_offset
        self.log_end_offset = loaded.log_end_offset
        self._files = files
        self._bases = [segment.base_offset for segment in self.segments]
        self._active = self.segments[-1]
        self._unflushed: list[Flushable] = []
        self.config = config

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._rules = config.rules()
        self._index_interval_bytes = config.index_interval_bytes
        self._set_roll_limits()

    @classmethod
    def open(cls, disk: Disk, directory: str, *, config: LogConfig, topic_id: Uuid, now_ms: int, clean: bool,
             recovery_point: int | None = None, files: OpenFiles | None = None) -> "PartitionLog":
        """Open the log of a directory, which is made if it is not there. `clean` says that it was closed when it was last used."""
        files = files or OpenFiles(disk)
        disk.make_directories(directory)
        found_id = partition_metadata.read_topic_id(disk, directory)
        if found_id is None:
            partition_metadata.write_topic_id(disk, directory, topic_id)
        elif found_id != topic_id:
            raise TopicIdMismatch(f"{directory} belongs to topic {uuid_text(found_id)}, not {uuid_text(topic_id)}")
        loaded = recovery.load(disk, directory, config=config, files=files, now_ms=now_ms, clean=clean, recovery_point=recovery_point)
        return cls(disk, directory, config=config, topic_id=topic_id, loaded=loaded, files=files)

    def append(self, records: memoryview, *, leader_epoch: int, now_ms: int, inspection: Inspection | None = None) -> tuple[int, int]:
        """Check a client's batch, give it offsets and write it; returns its base offset and, where the log stamps records, the time."""
        if inspection is None:
            inspection = inspect(records, self._rules, now_ms)
        size, count, _, stored_max_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, replacement = inspection
        if replacement is not None:
            records = memoryview(replacement)
        elif size != len(records):
            records = records[:size]
        if producer_id >= 0:
            retried = self.producers.check(producer_id, producer_epoch, base_sequence, count)
            if retried is not None:
                return retried[2], retried[4]
        base_offset = self.log_end_offset
        last_offset = base_offset + count - 1
        segment = self._active
        if segment.size > self._roll_size - size or max_timestamp > self._roll_timestamp or last_offset > self._roll_offset:
            segment = self._maybe_roll(size, last_offset, max_timestamp, now_ms)
        _pack_i64(records, 0, base_offset)
        _pack_i32(records, LEADER_EPOCH_AT, leader_epoch)
        if stored_max_timestamp != max_timestamp:
            _pack_i64(records, MAX_TIMESTAMP_AT, max_timestamp)
            write_checksum(records)
        segment.append(records, size, last_offset, max_timestamp, self._index_interval_bytes)
        self.log_end_offset = last_offset + 1
        if self._roll_timestamp == ASK_ALWAYS:
            self._set_roll_limits()
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if producer_id >= 0:
            self.producers.remember(producer_id, producer_epoch, base_sequence, count, base_offset, max_timestamp)
        return base_offset, -1

    def inspection_wants_worker(self, records: memoryview) -> bool:
        """Whether the records should be looked at off the loop, as they must be decompressed first."""
        return len(records) > INLINE_COMPRESSED_MAX and records[ATTRIBUTES_AT + 1] & CODEC_MASK != 0

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, at_least_one: bool) -> LogSlice | None:
        """Bytes from the batch that holds an offset on, of one segment, up to a limit; None where there are none."""
        if offset >= limit_offset:
            return None
        index = len(self._bases) - 1 if offset >= self._active.base_offset else bisect_right(self._bases, offset) - 1
        found = None
        while found is None:
            segment = self.segments[index]
            found = segment.locate(offset)
            index += 1
        position, batch_size = found
        end = segment.size
        if limit_offset < self.log_end_offset and (index == len(self._bases) or limit_offset < self._bases[index]):
            limit = segment.locate(limit_offset)
            end = limit[0] if limit else end
        size = min(max_bytes, end - position)
        if size < batch_size and at_least_one:
            size = batch_size
        return LogSlice(segment.opened(), position, size) if size > 0 else None

    def append_as_is(self, batch: bytearray | memoryview, *, now_ms: int) -> None:
        """Write one batch whose offsets, epoch and checksum its maker has set; it must go on where the log ends."""
        header = read_header(batch)
        assert header.base_offset == self.log_end_offset and header.size == len(batch), (header, self.log_end_offset, len(batch))
        segment = self._maybe_roll(header.size, header.last_offset, header.max_timestamp, now_ms)
        segment.append(batch, header.size, header.last_offset, header.max_timestamp, self._index_interval_bytes)
        self.log_end_offset = header.last_offset + 1
        self.epochs.assign(header.leader_epoch, header.base_offset)
        self.producers.on_batch(header)

    def offset_for_timestamp(self, timestamp_ms: int) -> time_search.Found | None:
        """Timestamp, offset and leader epoch of the first record that is not older. May be called in a worker."""
        return time_search.first_at_or_after(tuple(self.segments), timestamp_ms, self.log_start_offset)

    def latest_of_max_timestamp(self) -> time_search.Found | None:
        """Timestamp, offset and leader epoch of the first record of those with the highest timestamp. May be called in a worker."""
        return time_search.latest(tuple(self.segments))

    def roll_due(self, now_ms: int) -> bool:
        """Whether the active segment has been open for long enough, by the broker's clock."""
        waited = self._waited_ms(now_ms, now_ms)
        return self._active.size > 0 and waited > self._config.segment_ms - self._config.segment_jitter_ms

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def epoch_for(self, offset: int) -> int:
        return self.epochs.epoch_for(offset)

    def _set_roll_limits(self) -> None:
        """Three comparisons in `append` are enough to see that nothing is due; `_maybe_roll` decides exactly."""
        config = self._config
        active = self._active
        entries_max = config.segment_index_bytes // OFFSET_ENTRY_BYTES
        self._roll_size = min(config.segment_bytes, entries_max * config.index_interval_bytes // 2)
        self._roll_offset = active.base_offset + OFFSETS_PER_SEGMENT_MAX
        first = active.first_timestamp
        self._roll_timestamp = ASK_ALWAYS if first is None or first < 0 else first + config.segment_ms - config.segment_jitter_ms

    def _maybe_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        config = self._config
        if size > config.segment_bytes:
            raise BatchRejected(ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}")
        active = self._active
        offsets, times = active.offsets(), active.times()
        if (active.size > config.segment_bytes - size
                or (active.size > 0 and self._waited_ms(max_timestamp, now_ms) > config.segment_ms - config.segment_jitter_ms)
                or len(offsets) >= config.segment_index_bytes // OFFSET_ENTRY_BYTES
                or len(times) >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
                or last_offset > self._roll_offset):
            self.roll(now_ms=now_ms)
        return self._active

    def _waited_ms(self, timestamp: int, now_ms: int) -> int:
        """How old the active segment is, by the clock of its records if they have one."""
        first = self._active.first_timestamp
        return timestamp - first if first is not None and first >= 0 else now_ms - self._active.created_ms

    def roll(self, *, now_ms: int) -> None:
        """Close the active segment and start another at the end of the log. What the closed one needs on the disk is left to a worker."""
        closed = self._active
        segment = Segment(self.disk, self._files, self.directory, self.log_end_offset, created_ms=now_ms)
        segment.create()
        closed.finish_indexes()
        self._unflushed.append(ClosedSegment(closed))
        self._unflushed.append(
            AtomicWrite(self.disk, snapshot_path(self.directory, self.log_end_offset), self.producers.encode()))
        self._take_epochs()
        self.segments.append(segment)
        self._bases.append(segment.base_offset)
        self._active = segment
        self._set_roll_limits()

    def _take_epochs(self) -> None:
        if self.epochs.is_dirty:
            self.epochs.is_dirty = False
            self._unflushed.append(AtomicWrite(self.disk, f"{self.directory}/{leader_epochs.FILE_NAME}", self.epochs.encode()))

    def take_unflushed(self) -> list[Flushable]:
        """What a worker should put on the disk by calling `flush` of each, in order: closed segments and small files."""
        taken, self._unflushed = self._unflushed, []
        for item in taken:
            if isinstance(item, ClosedSegment):
                item.open()
        return taken

    def flush(self) -> None:
        """Return once all that was appended is on the disk."""
        self._take_epochs()
        for item in self.take_unflushed():
            item.flush()
        self._active.opened().flush()

    def close(self) -> None:
        """Write the indexes and the producers' state, flush, and let the files go."""
        self._active.finish_indexes()
        self._active.write_indexes()
        self.disk.write_atomically(snapshot_path(self.directory, self.log_end_offset), self.producers.encode())
        self.flush()
        self.delete()

    def delete(self) -> None:
        """Let the files go without writing anything: the directory is about to be removed."""
        self._unflushed.clear()
        for segment in self.segments:
            segment.release()
