"""The log of one partition: a list of segments. Batches are appended to the last one and read from any."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Disk, File
from ottla.log import leader_epoch_cache, log_loader, time_search
from ottla.log.config import LogConfig
from ottla.log.file_cache import FileCache
from ottla.log.flush_plan import Flushable, FlushPlan, FlushQueue
from ottla.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from ottla.log.partition_directory import ensure_partition_directory
from ottla.log.producer_state import snapshot_path
from ottla.log.segment import LogSegment, NotCached
from ottla.log.segment_read import LogSlice, read_cached, read_slice
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

__all__ = ["BatchRejected", "ColdRead", "Flushable", "LogSlice", "PartitionLog"]

OFFSETS_PER_SEGMENT_MAX = log_loader.OFFSETS_PER_SEGMENT_MAX
INLINE_COMPRESSED_BYTES_MAX = 16 << 10
"""Larger compressed batches go to a worker. Handing one over costs as much as decompressing 100 kB."""
CHECK_EVERY_BATCH = -(1 << 63)
"""A roll timestamp that every batch exceeds."""

_pack_i64 = Struct(">q").pack_into
_pack_i32 = Struct(">i").pack_into
_pack_i16 = Struct(">h").pack_into


class ColdRead(Exception):
    """Finding an offset needs the disk. Call `retry` in a worker: it returns what `read` would have returned."""

    def __init__(self, retry: Callable[[], LogSlice | None]) -> None:
        super().__init__()
        self.retry = retry


class PartitionLog:
    """Has one writer and assigns offsets. Call its methods on the loop unless their docstring allows a worker."""

    __slots__ = (
        "_active",
        "_base_offsets",
        "_config",
        "_files",
        "_flush_queue",
        "_index_interval_bytes",
        "_removals",
        "_roll_offset",
        "_roll_size",
        "_roll_timestamp",
        "_rules",
        "_saved_end_offset",
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
        "truncated_bytes",
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
        """Offsets before it are on the disk and need no check after a crash."""
        self.flushed_ms = loaded.segments[-1].created_ms
        """Time of the last flush, or when the log was opened."""
        self.truncated_bytes = loaded.truncated_bytes
        """Bytes of incomplete or invalid batches that were removed when the log was opened."""
        self._saved_end_offset = loaded.log_end_offset if loaded.is_saved else -1
        self._removals = 0
        """Counts changes that took segments out of the list: a search in a worker that overlaps one is repeated."""
        self._files = files
        for segment in loaded.segments:
            segment.move_to(files)
        self._base_offsets = [segment.base_offset for segment in self.segments]
        self._active = self.segments[-1]
        self._flush_queue = FlushQueue(disk, directory)
        # Closed segments after the recovery point may be in the page cache only, left there by a process that was
        # killed.
        for segment, end in zip(self.segments, self._base_offsets[1:], strict=False):
            if end > self.recovery_point:
                self._flush_queue.add_segment(segment)
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
        progress: log_loader.ScanProgress | None = None,
    ) -> "PartitionLog":
        """Open the log in a directory, which is created if missing. `clean` tells whether it was closed cleanly. May be
        called in a worker.

        Records before `start_offset` count as deleted, even if they are still in a file. After an unclean stop, the
        segments from `recovery_point` on are recovered; without a recovery point, the last segment.
        """
        files = FileCache(disk) if files is None else files
        ensure_partition_directory(disk, directory, topic_id)
        loaded = log_loader.load(
            disk, directory, config=config, now_ms=now_ms, clean=clean, recovery_point=recovery_point, progress=progress
        )
        log_loader.apply_log_start_offset(loaded, start_offset, disk, directory, now_ms=now_ms)
        # After a crash the recovery point stays: recovered records may be in the page cache only.
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
        """Validate a client's batch, assign offsets and write it. Return its base offset, and LogAppendTime or -1.

        A duplicate is not written: return the old batch's offset and its highest timestamp. Raises BudgetExceeded if
        validation takes too long for the loop; then a worker should do it.
        """
        if validated is None:
            validated = validate_batch(records, self._rules, now_ms, LOOP_BUDGET)
        size, count, max_timestamp, attributes, is_header_valid, producer_id, epoch, sequence, replacement = validated
        if producer_id >= 0:
            duplicate = self.producers.check(producer_id, epoch, sequence, count)
            if duplicate is not None:
                return duplicate[2], duplicate[4]
        if replacement is not None:
            records = memoryview(replacement)
        elif size != len(records):
            records = records[:size]
        append_time = -1
        if self._rules.log_append_time:
            append_time = max_timestamp = now_ms
            attributes |= LOG_APPEND_TIME_BIT
            is_header_valid = False
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
        if not is_header_valid:
            _pack_i16(
                records, ATTRIBUTES_AT, attributes & KNOWN_ATTRIBUTES | (LOG_APPEND_TIME_BIT if append_time >= 0 else 0)
            )
            _pack_i64(records, MAX_TIMESTAMP_AT, max_timestamp)
            write_checksum(records)
        segment.append(records, last_offset, max_timestamp, self._index_interval_bytes)
        self.log_end_offset = last_offset + 1
        if self._roll_timestamp == CHECK_EVERY_BATCH:
            self._set_roll_limits()
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if producer_id >= 0:
            self.producers.add_batch(producer_id, epoch, sequence, count, base_offset, max_timestamp)
        return base_offset, append_time

    def append_preassigned(self, batch: bytearray | memoryview, *, now_ms: int) -> None:
        """Write one batch whose offsets, epoch and checksum are set. It must start at the log end offset."""
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
        """Whether to validate the batch in a worker because it must be decompressed or recompressed."""
        if len(records) <= INLINE_COMPRESSED_BYTES_MAX:
            return False
        codec = records[ATTRIBUTES_AT + 1] & CODEC_MASK
        return codec != 0 or self._rules.target_codec not in (None, codec)

    def read(
        self, offset: int, max_bytes: int, *, limit_offset: int, min_one_message: bool, may_wait: bool = True
    ) -> LogSlice | None:
        """Return bytes of one segment, from the batch that holds `offset` up to a limit, or None if there are none.

        The last batch may be incomplete. The first batch is always complete: if it exceeds `max_bytes`, the slice is
        that batch with `min_one_message` and empty without. With `may_wait` false, raises ColdRead instead of waiting
        for the disk.
        """
        if offset >= limit_offset:
            return None
        index = (
            len(self._base_offsets) - 1
            if offset >= self._active.base_offset
            else max(bisect_right(self._base_offsets, offset) - 1, 0)
        )
        while True:
            segment = self.segments[index]
            index += 1
            file = segment.open_file()
            is_limited = limit_offset < self.log_end_offset and (
                index == len(self._base_offsets) or limit_offset < self._base_offsets[index]
            )
            # The size is taken now: the segment may have grown by the time a worker reads it.
            limit, end = limit_offset if is_limited else None, segment.size
            try:
                found = read_slice(segment, file, offset, max_bytes, limit, end, min_one_message, may_wait)
            except NotCached:
                raise ColdRead(
                    partial(read_slice, segment, file, offset, max_bytes, limit, end, min_one_message, True)
                ) from None
            if found is not None or index == len(self._base_offsets):
                return found

    def read_cached(self, offset: int, max_bytes: int, *, limit_offset: int) -> memoryview | None:
        """Return what `read` would find, perhaps without a last incomplete batch, in a buffer that the next call for
        any log reuses.

        None means that the caller has to use `read`.
        """
        if not offset < limit_offset == self.log_end_offset:
            return None
        is_active = offset >= self._active.base_offset
        return read_cached(
            self._active if is_active else self.segments[max(bisect_right(self._base_offsets, offset) - 1, 0)],
            offset,
            max_bytes,
        )

    def offset_for_timestamp(self, timestamp_ms: int) -> time_search.Found | None:
        """Return timestamp, offset and epoch of the first record at or after a time. May be called in a worker."""
        return self._search(
            lambda segments: time_search.first_at_or_after(segments, timestamp_ms, self.log_start_offset)
        )

    def offset_of_max_timestamp(self) -> time_search.Found | None:
        """Return timestamp, offset and epoch of the first record with the highest time. May be called in a worker."""
        return self._search(time_search.latest)

    def _search(self, search: Callable[[Sequence[LogSegment]], time_search.Found | None]) -> time_search.Found | None:
        """Repeat a search until no segment was replaced or removed meanwhile. May be called in a worker."""
        while True:
            removals = self._removals
            try:
                found = search(tuple(self.segments))
            except (OSError, MalformedMessage):
                if removals == self._removals:
                    raise
            else:
                if removals == self._removals:
                    return found

    def advance_start(self, offset: int) -> None:
        """Delete the records before an offset. The log start offset never decreases."""
        assert offset <= self.log_end_offset, (offset, self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def detach_below_start(self) -> list[LogSegment]:
        """Remove segments that end before the log start offset from the log. The caller deletes their files."""
        count = max(bisect_right(self._base_offsets, self.log_start_offset) - 1, 0)
        return self._replace(0, count, [])

    def new_segment(self, base_offset: int, size: int, *, now_ms: int) -> LogSegment:
        """Return a closed segment for existing files, which is not yet part of the log."""
        segment = LogSegment(self.disk, self._files, self.directory, base_offset, created_ms=now_ms)
        segment.size = size
        return segment

    def replace(self, old: Sequence[LogSegment], segment: LogSegment) -> bool:
        """Replace adjacent segments by one. Return False if they are no longer all in the log."""
        first = bisect_left(self._base_offsets, old[0].base_offset)
        if self.segments[first : first + len(old)] != list(old):
            return False
        self._replace(first, len(old), [segment])
        return True

    def _replace(self, first: int, count: int, new: list[LogSegment]) -> list[LogSegment]:
        after = first + count
        assert after < len(self.segments), (first, count, len(self.segments))
        old = self.segments[first:after]
        if count:
            self._removals += 1
            self.segments[first:after] = new
            self._base_offsets[first:after] = [segment.base_offset for segment in new]
        for segment in old:
            segment.release()
        self._flush_queue.remove_segments(old)
        return old

    def epoch_for(self, offset: int) -> int:
        """Return the epoch of the leader that wrote an offset, or -1 if unknown."""
        return self.epochs.epoch_for(offset)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def _set_roll_limits(self) -> None:
        """Precompute three limits, so that `append` needs three comparisons. `_maybe_roll` decides exactly."""
        config = self._config
        active = self._active
        entries_max = config.segment_index_bytes // TIME_ENTRY_BYTES - 1  # the offset index holds more
        self._roll_size = min(config.segment_bytes, entries_max * config.index_interval_bytes)
        self._roll_offset = active.base_offset + OFFSETS_PER_SEGMENT_MAX
        first = active.first_timestamp
        self._roll_timestamp = CHECK_EVERY_BATCH if first is None or first < 0 else first + config.segment_age_max_ms

    def _maybe_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> LogSegment:
        config = self._config
        if size > config.segment_bytes:
            raise BatchRejected(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"batch of {size} bytes exceeds segment.bytes ({config.segment_bytes})",
                has_log_start=False,
            )
        active = self._active
        offset_entries, time_entries = len(active.offsets()), len(active.times())
        if (
            active.size > config.segment_bytes - size
            or (active.size > 0 and self._active_age_ms(max_timestamp, now_ms) > config.segment_age_max_ms)
            or offset_entries >= config.segment_index_bytes // OFFSET_ENTRY_BYTES
            or time_entries >= config.segment_index_bytes // TIME_ENTRY_BYTES - 1
            or last_offset > self._roll_offset
        ):
            self.roll(now_ms=now_ms)
        return self._active

    def _active_age_ms(self, timestamp: int, now_ms: int) -> int:
        """Age of the active segment, by the timestamps of its records if they have any."""
        first = self._active.first_timestamp
        return timestamp - first if first is not None and first >= 0 else now_ms - self._active.created_ms

    def roll(self, *, now_ms: int) -> None:
        """Close the active segment and start a new one at the log end offset. A worker writes the indexes later."""
        closed = self._active
        if closed.size == 0:
            return  # the new one would have the same name
        segment = LogSegment(self.disk, self._files, self.directory, self.log_end_offset, created_ms=now_ms)
        segment.create()
        closed.finish_indexes()
        closed.is_writable = False
        self._flush_queue.add_segment(closed)
        self._flush_queue.add_file(snapshot_path(self.directory, self.log_end_offset), self.producers.encode())
        self._queue_epochs()
        self.segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self._active = segment
        self._set_roll_limits()

    def _queue_epochs(self) -> None:
        if self.epochs.is_dirty:
            self.epochs.is_dirty = False
            self._flush_queue.add_file(f"{self.directory}/{leader_epoch_cache.FILE_NAME}", self.epochs.encode())

    def plan_flush(self, *, to_end: bool) -> FlushPlan | None:
        """Plan a flush up to the log end offset, or of the closed segments only. None if there is nothing to do."""
        end = self.log_end_offset if to_end else self._active.base_offset
        if end <= self.recovery_point and not self.has_unflushed:
            return None
        items = self.drain_unflushed()
        return FlushPlan(items, self._active.open_file() if end > self._active.base_offset else None, end)

    def on_flushed(self, plan: FlushPlan) -> None:
        self.recovery_point = max(self.recovery_point, min(plan.end_offset, self.log_end_offset))

    def drain_unflushed(self) -> list[Flushable]:
        """Return the closed segments and small files that a worker should flush, in order."""
        self._queue_epochs()
        return self._flush_queue.drain()

    def put_back_unflushed(self, items: Sequence[Flushable]) -> None:
        """Return drained items that could not be flushed; they come first next time."""
        self._flush_queue.put_back(items)

    @property
    def has_unflushed(self) -> bool:
        """Whether anything but the end of the active segment needs a flush."""
        return bool(self._flush_queue) or self.epochs.is_dirty

    def active_file(self) -> File:
        """The file of the active segment. Flush the items of `drain_unflushed` before this file."""
        return self._active.open_file()

    def flush(self) -> None:
        """Flush everything. May be called in a worker if nothing is appended meanwhile."""
        plan = self.plan_flush(to_end=True)
        if plan is not None:
            plan.run()
            self.on_flushed(plan)

    def close(self) -> None:
        """Write indexes and producer state, flush, and close the files. The log cannot be used afterwards.

        May be called in a worker, as it opens its own files. A log that has not changed since a clean stop writes
        nothing.
        """
        files = FileCache(self.disk, open_files_max=log_loader.OPEN_FILES_MAX)
        for segment in self.segments:
            segment.move_to(files)
        if self.log_end_offset == self._saved_end_offset and not self.has_unflushed:
            return
        self._active.finish_indexes()
        self._active.write_indexes()
        self.disk.write_atomically(snapshot_path(self.directory, self.log_end_offset), self.producers.encode())
        self.flush()
        self.release_files()

    def move_to(self, directory: str, files: FileCache) -> None:
        """Follow a rename of the directory, and use another file cache."""
        self._flush_queue.move_to(directory)
        self.directory = directory
        self._files = files
        for segment in self.segments:
            segment.move_to(files)
            segment.stem = f"{directory}/{segment.base_offset:020d}"

    def release_files(self) -> None:
        """Close the files without flushing: the directory is about to be removed."""
        self._flush_queue.clear()
        for segment in self.segments:
            segment.release()
