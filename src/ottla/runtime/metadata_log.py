"""The metadata log `__cluster_metadata-0`. The node is its quorum's only voter, so a flushed record is committed."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, is_disk_full
from ottla.base.ids import METADATA_TOPIC
from ottla.base.ports import Clock, Disk, File, Workers
from ottla.log.config import LogConfig
from ottla.log.partition_log import Flushable, PartitionLog
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import METADATA_VERSION, ClusterImage
from ottla.metadata.record_versions import record_version
from ottla.runtime.metadata_log_loader import (
    CorruptMetadataLog,
    QuorumState,
    load_quorum_state,
    load_snapshot,
    open_log,
    write_quorum_state,
)
from ottla.runtime.snapshot_writer import BYTES_BETWEEN_MAX, INTERVAL_MAX_MS, SnapshotWriter
from ottla.runtime.snapshots import LEADER_CHANGE, Snapshot, SnapshotId, control_record
from ottla.wire.batches import (
    Record,
    build_batch,
    decode_records,
    has_valid_checksum,
    iterate_batches,
)
from ottla.wire.errors import MalformedMessage
from ottla.wire.records.control import LeaderChangeMessage, Voter
from ottla.wire.records.framing import decode_metadata_record, encode_metadata_record
from ottla.wire.records.metadata import FeatureLevelRecord

__all__ = ["DIRECTORY_NAME", "CommitListener", "MetadataLog", "CorruptMetadataLog", "MetadataLogFailed"]

DIRECTORY_NAME = f"{METADATA_TOPIC}-0"
READ_BYTES_MAX = 1 << 20

CommitListener = Callable[[int, Sequence[Any]], None]
"""Called with the first offset and the records of each committed append, in the order of the log."""


class MetadataLogFailed(Exception):
    """A write or flush failed: memory and disk may differ, and the node has to stop."""


@dataclass(slots=True)
class _Append:
    """An append that is not flushed yet."""

    first_offset: int
    records: Sequence[Any]
    committed: "asyncio.Future[int]"


class MetadataLog:
    """A log whose only writer is the controller. `append` returns a future for the commit; appends share flushes."""

    def __init__(
        self,
        clock: Clock,
        workers: Workers,
        log: PartitionLog,
        *,
        node_id: int,
        epoch: int,
        snapshot_id: SnapshotId | None,
        snapshot: Snapshot | None,
        snapshots: SnapshotWriter,
        on_failed: Callable[[MetadataLogFailed], None],
    ) -> None:
        self._clock = clock
        self._workers = workers
        self._log = log
        self._node_id = node_id
        self._epoch = epoch
        self._snapshot_id = snapshot_id
        self._snapshot = snapshot
        self._snapshots = snapshots
        self._on_failed = on_failed
        self._listener: CommitListener | None = None
        self._image_of: Callable[[], ClusterImage] | None = None
        self._last_commit_ms = 0
        self._metadata_version = 0
        self._waiting: list[_Append] = []
        self._newest: asyncio.Future[int] | None = None
        self._flush: asyncio.Future[None] | None = None
        self._failure: MetadataLogFailed | None = None
        self.high_watermark = log.log_end_offset

    @classmethod
    def open(
        cls,
        disk: Disk,
        clock: Clock,
        workers: Workers,
        directory: str,
        *,
        node_id: int,
        clean: bool,
        config: LogConfig,
        on_failed: Callable[[MetadataLogFailed], None],
        snapshot_bytes_max: int = BYTES_BETWEEN_MAX,
        snapshot_interval_max_ms: int = INTERVAL_MAX_MS,
    ) -> "MetadataLog":
        """Open the log and become leader in a new epoch. This commits all records of earlier epochs."""
        disk.make_directories(directory)
        disk.fsync_directory(directory.rpartition("/")[0])
        snapshot_id, snapshot = load_snapshot(disk, directory)
        state = load_quorum_state(disk, directory, node_id, snapshot)
        log = open_log(disk, directory, config, clock, clean, snapshot_id)
        epoch = max(state.leader_epoch, log.epochs.latest, snapshot_id.epoch if snapshot_id else 0, 0) + 1
        # The epoch is on disk before anything is written in it: a lost epoch could be led twice.
        write_quorum_state(disk, directory, QuorumState(node_id, epoch, state.version, (node_id,)))
        snapshots = SnapshotWriter(
            disk,
            clock,
            workers,
            directory,
            last=snapshot,
            bytes_between_max=snapshot_bytes_max,
            interval_max_ms=snapshot_interval_max_ms,
        )
        opened = cls(
            clock,
            workers,
            log,
            node_id=node_id,
            epoch=epoch,
            snapshot_id=snapshot_id,
            snapshot=snapshot,
            snapshots=snapshots,
            on_failed=on_failed,
        )
        opened._write_leader_change()
        return opened

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def end_offset(self) -> int:
        """The offset of the next record. Records below `high_watermark` are committed."""
        return self._log.log_end_offset

    def follow(self, listener: CommitListener, image_of: Callable[[], ClusterImage] | None = None) -> None:
        """Call `listener` with every append once it is committed, before its future is resolved.

        `image_of` returns the image that the listener maintains. It is written as a snapshot when one is due.
        """
        self._listener = listener
        self._image_of = image_of

    def load(self, cluster_id: str) -> ClusterImage:
        """Build the image from the snapshot and the log."""
        delta = ClusterDelta(ClusterImage(cluster_id))
        for offset, record in self.replay_all():
            delta.replay(offset, record)
        return delta.apply()

    def replay_all(self) -> Iterator[tuple[int, Any]]:
        """Yield all committed records with their offsets. Records of the snapshot have the last offset it contains."""
        start = self._log.log_start_offset
        if self._snapshot_id is not None and self._snapshot is not None:
            start = max(start, self._snapshot_id.end_offset)
            for record in self._snapshot.records:
                self._note_version(record)
                yield self._snapshot_id.end_offset - 1, record
            self._snapshot = None  # replayed: free the memory
        elif start > 0:
            raise CorruptMetadataLog(
                f"{self._log.directory} starts at offset {start}, but the snapshot of the records before it is missing"
            )
        for offset, value in self._read(start, self.high_watermark):
            record = decode_metadata_record(value)
            self._note_version(record)
            yield offset, record

    def append(self, records: Sequence[Any]) -> "asyncio.Future[int]":
        """Write the records as one atomic batch. The future is the last record's offset; futures resolve in order."""
        loop = asyncio.get_running_loop()
        committed: asyncio.Future[int] = loop.create_future()
        if self._failure is not None:
            committed.set_exception(self._failure)
            return committed
        assert records, "a batch has at least one record"
        now_ms = self._clock.now_ms()
        version_before = self._metadata_version
        try:
            values = []
            for record in records:
                self._note_version(record)
                values.append(encode_metadata_record(record, record_version(record, self._metadata_version)))
            first_offset = self._write(
                [Record(timestamp=now_ms, value=value) for value in values], now_ms, is_control=False
            )
        except OSError as error:
            self._metadata_version = version_before
            # Nothing was written or replayed. If the disk is full, reject this request only: smaller ones may succeed.
            committed.set_exception(
                ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"no space left for the metadata log: {error}")
                if is_disk_full(error)
                else self._fail(error)
            )
            return committed
        self._waiting.append(_Append(first_offset, records, committed))
        self._newest = committed
        if self._flush is None and len(self._waiting) == 1:
            loop.call_soon(self._maybe_flush)  # later, so that appends of the same event-loop iteration share the flush
        return committed

    async def wait_committed(self) -> None:
        """Return once all records appended so far are committed. Raises MetadataLogFailed if they never will be."""
        if self._newest is not None and not self._newest.done():
            await asyncio.wait([self._newest])
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Commit pending appends, write the indexes and close the files."""
        while self._failure is None and (self._waiting or self._flush is not None):
            self._maybe_flush()
            if self._flush is not None:
                await asyncio.wait([self._flush])
        if self._snapshots.running is not None:
            await asyncio.wait([self._snapshots.running])
        await self._workers.run(self._log.close if self._failure is None else self._log.release_files)

    def _note_version(self, record: Any) -> None:
        if type(record) is FeatureLevelRecord and record.name == METADATA_VERSION:
            self._metadata_version = record.feature_level

    def _write_leader_change(self) -> None:
        """Write the first record of the epoch. Its commit includes the records of earlier epochs."""
        now_ms = self._clock.now_ms()
        message = LeaderChangeMessage(0, self._node_id, [Voter(self._node_id)], [Voter(self._node_id)])
        self._write([control_record(LEADER_CHANGE, message, now_ms)], now_ms, is_control=True)
        self._log.flush()
        self.high_watermark = self._log.log_end_offset

    def _write(self, records: list[Record], now_ms: int, *, is_control: bool) -> int:
        first_offset = self._log.log_end_offset
        batch = build_batch(records, base_offset=first_offset, leader_epoch=self._epoch, is_control=is_control)
        self._log.append_preassigned(batch, now_ms=now_ms)
        if not is_control:
            self._snapshots.count(len(batch))
        return first_offset

    def _read(self, offset: int, limit: int) -> Iterator[tuple[int, bytes]]:
        """Yield offsets and values of the records from an offset on, without control records."""
        while offset < limit:
            found = self._log.read(offset, READ_BYTES_MAX, limit_offset=limit, min_one_message=True)
            if found is None:
                return
            data = memoryview(found.file.read_at(found.position, found.size))
            try:
                for position, header in iterate_batches(data):
                    batch = data[position : position + header.size]
                    if not has_valid_checksum(batch):
                        raise CorruptMetadataLog(
                            f"{self._log.directory}: wrong checksum of the batch at offset {header.base_offset}"
                        )
                    self._snapshots.count(header.size)
                    if not header.is_control:
                        for record in decode_records(batch):
                            if record.offset >= offset and record.value is not None:
                                yield record.offset, record.value
                    next_offset = header.last_offset + 1
            except MalformedMessage as error:
                raise CorruptMetadataLog(
                    f"{self._log.directory}: cannot read the log after offset {offset}: {error}"
                ) from error
            offset = next_offset

    def _maybe_flush(self) -> None:
        """Start a flush unless one is running. It commits all records appended before its start."""
        if self._flush is not None or not self._waiting or self._failure is not None:
            return
        flushed, self._waiting = self._waiting, []
        end = self._log.log_end_offset
        work = _Flush(self._log.drain_unflushed(), self._log.active_file())
        self._flush = self._workers.run(work.run)
        self._flush.add_done_callback(lambda done: self._on_flushed(done, flushed, end))

    def _on_flushed(self, done: "asyncio.Future[None]", flushed: list[_Append], end: int) -> None:
        self._flush = None
        if done.cancelled() or done.exception() is not None:
            self._waiting = flushed + self._waiting
            self._fail(done.exception() if not done.cancelled() else None)
            return
        self.high_watermark = end
        for position, append in enumerate(flushed):
            try:
                if self._listener is not None:
                    self._listener(append.first_offset, append.records)
            except Exception as error:
                # A broker that cannot apply committed records would serve outdated metadata.
                self._waiting = flushed[position:] + self._waiting
                self._fail(error)
                return
            if not append.committed.done():
                append.committed.set_result(append.first_offset + len(append.records) - 1)
        self._last_commit_ms = self._clock.now_ms()
        self._maybe_flush()
        self._maybe_snapshot()

    def _maybe_snapshot(self) -> None:
        if self._image_of is None or not self._snapshots.is_due:
            return
        image = self._image_of()
        if image.open_transaction is None:
            epoch = self._log.epoch_for(image.last_offset)
            self._snapshots.write(image, epoch, self._last_commit_ms, self._on_snapshot)

    def _on_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Start a new segment, so that the segments before it can be deleted when the log is next opened."""
        if self._failure is None and self._log.segments[-1].base_offset < snapshot_id.end_offset:
            self._log.roll(now_ms=self._clock.now_ms())

    def _fail(self, error: BaseException | None) -> MetadataLogFailed:
        """Stop accepting and committing appends: after a failed write or flush the state of the disk is unknown."""
        if self._failure is None:
            self._failure = MetadataLogFailed(f"the metadata log in {self._log.directory} failed: {error!r}")
            self._failure.__cause__ = error
            waiting, self._waiting = self._waiting, []
            for append in waiting:
                if not append.committed.done():
                    append.committed.set_exception(self._failure)
            self._on_failed(self._failure)
        return self._failure


@dataclass(frozen=True, slots=True)
class _Flush:
    """A flush that runs in a worker: first the segments closed since the last flush, then the active one.

    The small files of a closed segment are written atomically, which also fsyncs the new segment's directory entry.
    """

    closed: list[Flushable]
    active: File

    def run(self) -> None:
        for item in self.closed:
            item.flush()
        self.active.fsync()
