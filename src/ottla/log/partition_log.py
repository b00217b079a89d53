"""The log of one partition: batches are appended at its end, and read from anywhere."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid, uuid_text
from ottla.base.ports import Disk, File
from ottla.log import leader_epoch_cache as leader_epochs
from ottla.log import log_loader, partition_directory, time_search
from ottla.log.beginning import apply_log_start_offset
from ottla.log.config import LogConfig
from ottla.log.file_cache import FileCache
from ottla.log.flush_plan import AtomicWrite, ClosedSegment, DirectorySync, Flushable, FlushPlan
from ottla.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.log.producer_state import snapshot_path
from ottla.log.segment import LogSegment, NotCached
from ottla.log.segment_read import read_cached
from ottla.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from ottla.wire.batch_validation import LOOP_BUDGET, BatchRejected, ValidatedBatch, validate_batch
from ottla.wire.batches import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    KNOWN_ATTRIBUTES,
    LEADER_EPOCH_AT,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP_AT,
    read_header,
    write_checksum,
)
from ottla.wire.errors import MalformedMessage

__all__ = ["BatchRejected", "ColdRead", "Flushable", "LogSlice", "PartitionLog", "TopicIdMismatch"]

OFFSETS_PER_SEGMENT_MAX = log_loader.OFFSETS_PER_SEGMENT_MAX
INLINE_COMPRESSED_BYTES_MAX = 16 << 10
"""Larger batches are decompressed by a worker at once. To hand one over and back costs as much as to decompress 100 kB."""
ASK_ALWAYS = -(1 << 63)
"""A roll timestamp that every batch exceeds."""

_pack_i64 = Struct(">q").pack_into
_pack_i32 = Struct(">i").pack_into
_pack_i16 = Struct(">h").pack_into


class LogSlice(NamedTuple):
    """Bytes of a segment, to be read or sent as they are. While it is held its file stays open."""

    file: File
    position: int
    size: int


class TopicIdMismatch(ValueError):
    """The directory holds the records of another topic."""


class ColdRead(Exception):
    """The disk must be waited for to find an offset: call `retry` in a worker, it returns what `read` would have."""

    def __init__(self, retry: Callable[[], LogSlice | None]) -> None:
        super().__init__()
        self.retry = retry


def create_partition_directories(disk: Disk, wanted: Sequence[tuple[str, Uuid]]) -> None:
    """Put the directories of new logs on the disk, each with the id of its topic. It waits for the disk: call it from a worker."""
    for directory, topic_id in wanted:
        disk.make_directories(directory)
        if partition_directory.read_topic_id(disk, directory) is None:
            partition_directory.write_topic_id(
                disk, directory, topic_id
            )  # which makes the names in the directory durable too
    for parent in sorted({directory.rpartition("/")[0] for directory, _ in wanted}):
        disk.fsync_directory(parent)


class PartitionLog:
    """One writer; offsets are given here. Calls come from the loop's thread unless a line says otherwise."""

    __slots__ = (
        "_active",
        "_bases",
        "_config",
        "_files",
        "_has_new_names",
        "_index_interval_bytes",
        "_replacements",
        "_roll_offset",
        "_roll_size",
        "_roll_timestamp",
        "_rules",
        "_stored_end",
        "_unflushed",
        "truncated_bytes",
        "directory",
        "disk",
        "epochs",
        "flushed_ms",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
        "topic_id",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        config: LogConfig,
        topic_id: Uuid,
        loaded: log_loader.LoadedLog,
        files: FileCache,
        start_offset: int = 0,
        recovery_point: int = 0,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.topic_id = topic_id
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.log_start_offset = max(start_offset, loaded.segments[0].base_offset)
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = min(recovery_point, loaded.log_end_offset)
        """What lies before is on the disk, and need not be looked at after a crash."""
        self.flushed_ms = loaded.segments[-1].created_ms
        """When it was, last, or when the log was opened."""
        self.truncated_bytes = loaded.truncated_bytes
        """What was not whole batches when the log was opened."""
        self._stored_end = loaded.log_end_offset if loaded.is_as_stored else -1
        self._has_new_names = True
        self._replacements = 0
        """How often segments left: whoever looks at them in a worker looks again then."""
        self._files = files
        for segment in loaded.segments:
            segment.move_to(files)
        self._bases = [segment.base_offset for segment in self.segments]
        self._active = self.segments[-1]
        # Closed segments beyond the recovery point may be in the page cache only, left there by a process that was killed.
        self._unflushed: list[Flushable] = [
            ClosedSegment(segment)
            for segment, end in zip(self.segments, self._bases[1:], strict=False)
            if end > self.recovery_point
        ]
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
    def open(
        cls,
        disk: Disk,
        directory: str,
        *,
        config: LogConfig,
        topic_id: Uuid,
        now_ms: int,
        clean: bool,
        recovery_point: int | None = None,
        files: FileCache | None = None,
        start_offset: int = 0,
        progress: log_loader.Progress | None = None,
    ) -> "PartitionLog":
        """Open the log of a directory, which is made if it is not there. `clean` says that it was closed when it was last used.

        Records before `start_offset` have been deleted, even where they are still in a file. May be called in a worker.

        Without a clean end the last segment is read through, and earlier ones that reach beyond `recovery_point`, if that is known.
        """
        files = FileCache(disk) if files is None else files
        found_id = partition_directory.read_topic_id(disk, directory)
        if found_id is None:
            create_partition_directories(disk, [(directory, topic_id)])
        elif found_id != topic_id:
            raise TopicIdMismatch(f"{directory} belongs to topic {uuid_text(found_id)}, not {uuid_text(topic_id)}")
        loaded = log_loader.load(
            disk, directory, config=config, now_ms=now_ms, clean=clean, recovery_point=recovery_point, progress=progress
        )
        apply_log_start_offset(loaded, start_offset, disk, directory, now_ms=now_ms)
        # After a crash the point stays where it was, as what was found may be in the page cache only.
        point = loaded.log_end_offset if loaded.is_flushed else recovery_point or 0
        return cls(
            disk,
            directory,
            config=config,
            topic_id=topic_id,
            loaded=loaded,
            files=files,
            start_offset=start_offset,
            recovery_point=point,
        )

    def append(
        self, records: memoryview, *, leader_epoch: int, now_ms: int, validated: ValidatedBatch | None = None
    ) -> tuple[int, int]:
        """Check a client's batch, give it offsets and write it; returns its base offset and, where the log stamps records, the time.

        A retry of a batch that is remembered is not written again: it gets the old offset, and the highest timestamp of that batch.
        BudgetExceeded where it is a worker that should validate_batch the batch, though it looked simple.
        """
        if validated is None:
            validated = validate_batch(records, self._rules, now_ms, LOOP_BUDGET)
        (
            size,
            count,
            max_timestamp,
            attributes,
            is_header_right,
            producer_id,
            producer_epoch,
            base_sequence,
            replacement,
        ) = validated
        if producer_id >= 0:
            retried = self.producers.check(producer_id, producer_epoch, base_sequence, count)
            if retried is not None:
                return retried[2], retried[4]
        if replacement is not None:
            records = memoryview(replacement)
        elif size != len(records):
            records = records[:size]
        append_time = -1
        if self._rules.log_append_time:
            append_time = max_timestamp = now_ms
            attributes |= LOG_APPEND_TIME_BIT
            is_header_right = False
        base_offset = self.log_end_offset
        last_offset = base_offset + count - 1
        segment = self._active
        if (
            segment.size > self._roll_size - size
            or max_timestamp > self._roll_timestamp
            or last_offset > self._roll_offset
        ):
            segment = self._maybe_roll(size, last_offset, max_timestamp, now_ms)
        _pack_i64(records, 0, base_offset)
        _pack_i32(records, LEADER_EPOCH_AT, leader_epoch)
        if not is_header_right:
            _pack_i16(
                records, ATTRIBUTES_AT, attributes & KNOWN_ATTRIBUTES | (LOG_APPEND_TIME_BIT if append_time >= 0 else 0)
            )
            _pack_i64(records, MAX_TIMESTAMP_AT, max_timestamp)
            write_checksum(records)
        segment.append(records, last_offset, max_timestamp, self._index_interval_bytes)
        self.log_end_offset = last_offset + 1
        if self._roll_timestamp == ASK_ALWAYS:
            self._set_roll_limits()
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if producer_id >= 0:
            self.producers.remember(producer_id, producer_epoch, base_sequence, count, base_offset, max_timestamp)
        return base_offset, append_time

    def append_preassigned(self, batch: bytearray | memoryview, *, now_ms: int) -> None:
        """Write one batch whose offsets, epoch and checksum its maker has set; it must go on where the log ends."""
        header = read_header(batch)
        assert (header.base_offset, header.size) == (self.log_end_offset, len(batch)), (
            header,
            self.log_end_offset,
            len(batch),
        )
        segment = self._maybe_roll(header.size, header.last_offset, header.max_timestamp, now_ms)
        segment.append(batch, header.last_offset, header.max_timestamp, self._index_interval_bytes)
        self.log_end_offset = header.last_offset + 1
        self._set_roll_limits()
        self.epochs.assign(header.leader_epoch, header.base_offset)
        aborted = self.producers.on_batch(header, batch)
        if aborted is not None:
            segment.on_aborted(aborted)

    def needs_worker_validation(self, records: memoryview) -> bool:
        """Whether the records should be looked at off the loop, as they must be decompressed first, or compressed anew."""
        if len(records) <= INLINE_COMPRESSED_BYTES_MAX:
            return False
        codec = records[ATTRIBUTES_AT + 1] & CODEC_MASK
        return codec != 0 or self._rules.target_codec not in (None, codec)

    def read(
        self, offset: int, max_bytes: int, *, limit_offset: int, min_one_message: bool, may_wait: bool = True
    ) -> LogSlice | None:
        """Bytes from the batch that holds an offset on, of one segment, up to a limit; None where there are none.

        The end is cut by bytes, not by batches. The first batch is whole: where it is too large it is there with `min_one_message`, and else
        there are no bytes. With `may_wait` false ColdRead is raised instead of waiting for the disk.
        """
        if offset >= limit_offset:
            return None
        index = (
            len(self._bases) - 1
            if offset >= self._active.base_offset
            else max(bisect_right(self._bases, offset) - 1, 0)
        )
        while True:
            segment = self.segments[index]
            index += 1
            file = segment.open_file()
            is_limited = limit_offset < self.log_end_offset and (
                index == len(self._bases) or limit_offset < self._bases[index]
            )
            limit, end = (
                limit_offset if is_limited else None,
                segment.size,
            )  # by the time that a worker looks it may have grown
            try:
                found = _slice(segment, file, offset, max_bytes, limit, end, min_one_message, may_wait)
            except NotCached:
                raise ColdRead(
                    partial(_slice, segment, file, offset, max_bytes, limit, end, min_one_message, True)
                ) from None
            if found is not None or index == len(self._bases):
                return found

    def read_cached(self, offset: int, max_bytes: int, *, limit_offset: int) -> memoryview | None:
        """What `read` would find, where that is at hand, perhaps without a batch that is not whole; the memory is used again, by the next
        call for any log. None where `read` is to be asked."""
        if not offset < limit_offset == self.log_end_offset:
            return None
        is_active = offset >= self._active.base_offset
        return read_cached(
            self._active if is_active else self.segments[max(bisect_right(self._bases, offset) - 1, 0)],
            offset,
            max_bytes,
        )

    def offset_for_timestamp(self, timestamp_ms: int) -> time_search.Found | None:
        """Timestamp, offset and leader epoch of the first record that is not older. May be called in a worker."""
        return self._search(
            lambda segments: time_search.first_at_or_after(segments, timestamp_ms, self.log_start_offset)
        )

    def offset_of_max_timestamp(self) -> time_search.Found | None:
        """Timestamp, offset and leader epoch of the first record of those with the highest timestamp. May be called in a worker."""
        return self._search(time_search.latest)

    def _search(self, search: Callable[[Sequence[LogSegment]], time_search.Found | None]) -> time_search.Found | None:
        """In a worker, while segments may be replaced or removed: what was found among those that are no longer there does not count."""
        while True:
            replacements = self._replacements
            try:
                found = search(tuple(self.segments))
            except (OSError, MalformedMessage):
                if replacements == self._replacements:
                    raise
            else:
                if replacements == self._replacements:
                    return found

    def advance_start(self, offset: int) -> None:
        """Records before the offset are deleted: they cannot be read any more. A start does not go back."""
        assert offset <= self.log_end_offset, (offset, self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def detach_below_start(self) -> list[LogSegment]:
        """The segments that end before the start leave the log. Their files may still be read; the caller removes them later."""
        count = max(bisect_right(self._bases, self.log_start_offset) - 1, 0)
        return self._replace(0, count, [])

    def new_segment(self, base_offset: int, size: int, *, now_ms: int) -> LogSegment:
        """A closed one, whose files are there and which is not yet in the log."""
        segment = LogSegment(self.disk, self._files, self.directory, base_offset, created_ms=now_ms)
        segment.size = size
        return segment

    def replace(self, taken: Sequence[LogSegment], segment: LogSegment) -> bool:
        """A segment takes the place of others that follow one another; False where they are not all in the log any more."""
        first = bisect_left(self._bases, taken[0].base_offset)
        if self.segments[first : first + len(taken)] != list(taken):
            return False
        self._replace(first, len(taken), [segment])
        return True

    def _replace(self, first: int, count: int, new: list[LogSegment]) -> list[LogSegment]:
        behind = first + count
        assert behind < len(self.segments), (first, count, len(self.segments))
        taken = self.segments[first:behind]
        if count:
            self._replacements += 1
            self.segments[first:behind] = new
            self._bases[first:behind] = [segment.base_offset for segment in new]
        for segment in taken:
            segment.release()
        self._unflushed = [
            item for item in self._unflushed if not (isinstance(item, ClosedSegment) and item.segment in taken)
        ]
        return taken

    def epoch_for(self, offset: int) -> int:
        """The epoch of the leader that wrote an offset; -1 where that is not known."""
        return self.epochs.epoch_for(offset)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def _set_roll_limits(self) -> None:
        """Three comparisons in `append` are enough to see that nothing is due; `_maybe_roll` decides exactly."""
        config = self._config
        active = self._active
        entries_max = (
            config.segment_index_bytes // TIME_ENTRY_BYTES - 1
        )  # which is reached before that of the offset index
        self._roll_size = min(config.segment_bytes, entries_max * config.index_interval_bytes)
        self._roll_offset = active.base_offset + OFFSETS_PER_SEGMENT_MAX
        first = active.first_timestamp
        self._roll_timestamp = ASK_ALWAYS if first is None or first < 0 else first + config.segment_age_max_ms

    def _maybe_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> LogSegment:
        config = self._config
        if size > config.segment_bytes:
            raise BatchRejected(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}",
                has_log_start=False,
            )
        active = self._active
        offset_entries, time_entries = len(active.offsets()), len(active.times())
        if (
            active.size > config.segment_bytes - size
            or (active.size > 0 and self._waited_ms(max_timestamp, now_ms) > config.segment_age_max_ms)
            or offset_entries >= config.segment_index_bytes // OFFSET_ENTRY_BYTES
            or time_entries >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
            or last_offset > self._roll_offset
        ):
            self.roll(now_ms=now_ms)
        return self._active

    def _waited_ms(self, timestamp: int, now_ms: int) -> int:
        """How old the active segment is, by the clock of its records if they have one."""
        first = self._active.first_timestamp
        return timestamp - first if first is not None and first >= 0 else now_ms - self._active.created_ms

    def roll(self, *, now_ms: int) -> None:
        """Close the active segment and start another at the end of the log. What the closed one needs on the disk is left to a worker."""
        closed = self._active
        if closed.size == 0:
            return  # it would have the same name
        segment = LogSegment(self.disk, self._files, self.directory, self.log_end_offset, created_ms=now_ms)
        segment.create()
        closed.finish_indexes()
        closed.is_writable = False
        self._unflushed.append(ClosedSegment(closed))
        self._unflushed.append(
            AtomicWrite(self.disk, snapshot_path(self.directory, self.log_end_offset), self.producers.encode())
        )
        self._take_epochs()
        self.segments.append(segment)
        self._bases.append(segment.base_offset)
        self._active = segment
        self._set_roll_limits()

    def _take_epochs(self) -> None:
        if self.epochs.is_dirty:
            self.epochs.is_dirty = False
            self._unflushed.append(
                AtomicWrite(self.disk, f"{self.directory}/{leader_epochs.FILE_NAME}", self.epochs.encode())
            )

    def plan_flush(self, *, to_end: bool) -> FlushPlan | None:
        """What puts the log on the disk, to its end or to that of its last closed segment; None where nothing is to be done."""
        end = self.log_end_offset if to_end else self._active.base_offset
        if end <= self.recovery_point and not self._unflushed and not self.epochs.is_dirty:
            return None
        return FlushPlan(
            self.drain_unflushed(), self._active.open_file() if end > self._active.base_offset else None, end
        )

    def on_flushed(self, plan: FlushPlan) -> None:
        """A worker has done what was planned."""
        self.recovery_point = max(self.recovery_point, min(plan.end_offset, self.log_end_offset))

    def drain_unflushed(self) -> list[Flushable]:
        """What a worker should put on the disk by calling `flush` of each, in order: closed segments and small files."""
        if self._has_new_names:
            self._has_new_names = False
            self._unflushed.insert(
                0, DirectorySync(self.disk, self.directory)
            )  # bytes that are durable are of no use without a name
        self._take_epochs()
        taken, self._unflushed = self._unflushed, []
        for item in taken:
            if isinstance(item, ClosedSegment):
                item.open()
        return taken

    def put_back_unflushed(self, items: Sequence[Flushable]) -> None:
        """What was taken and could not be put on the disk yet: it comes first the next time."""
        self._unflushed[:0] = items

    @property
    def has_unflushed(self) -> bool:
        """Whether there is something to put on the disk besides the end of the active segment."""
        return bool(self._unflushed) or self.epochs.is_dirty

    def active_file(self) -> File:
        """The file that is appended to. What was appended is durable once all of `drain_unflushed` and then this file are flushed."""
        return self._active.open_file()

    def flush(self) -> None:
        """Return once all that was appended is on the disk. In a worker this is right only while nothing is appended."""
        plan = self.plan_flush(to_end=True)
        if plan is not None:
            plan.run()
            self.on_flushed(plan)

    def close(self) -> None:
        """Write the indexes and the producers' state, flush, and let the files go. The log is not used afterwards.

        May be called in a worker: it uses files of its own. A log that is as it was found after a clean stop has nothing to write.
        """
        files = FileCache(self.disk, open_files_max=log_loader.OPEN_FILES_MAX)
        for segment in self.segments:
            segment.move_to(files)
        if self.log_end_offset == self._stored_end and not self.has_unflushed:
            return
        self._active.finish_indexes()
        self._active.write_indexes()
        self.disk.write_atomically(snapshot_path(self.directory, self.log_end_offset), self.producers.encode())
        self.flush()
        self.release_files()

    def move_to(self, directory: str, files: FileCache) -> None:
        """Its directory has been renamed, and its files are of another table from now on."""
        self._unflushed = [
            item._replace(path=directory + item.path[len(self.directory) :]) if isinstance(item, AtomicWrite) else item
            for item in self._unflushed
            if not isinstance(item, DirectorySync)
        ]
        self.directory = directory
        self._files = files
        self._has_new_names = True
        for segment in self.segments:
            segment.move_to(files)
            segment.stem = f"{directory}/{segment.base_offset:020d}"

    def release_files(self) -> None:
        """Let the files go without writing anything: the directory is about to be removed."""
        self._unflushed.clear()
        for segment in self.segments:
            segment.release()


def _slice(
    segment: LogSegment,
    file: File,
    offset: int,
    max_bytes: int,
    limit_offset: int | None,
    end: int,
    min_one_message: bool,
    may_wait: bool,
) -> LogSlice | None:
    """What `read` finds in one segment before a position. Touches nothing that the loop changes, so that a worker may do it too."""
    read_at = file.read_at if may_wait else file.read_at_if_cached
    found = segment.locate(offset, read_at)
    if found is None:
        return None
    position, size = found
    if limit_offset is not None:
        limit = segment.locate(limit_offset, read_at)
        if limit is not None:
            end = limit[0]
    room = end - position
    if room <= 0:
        return None
    if max_bytes < room:
        room = max_bytes if max_bytes >= size else size if min_one_message else 0
    return LogSlice(file, position, room)
