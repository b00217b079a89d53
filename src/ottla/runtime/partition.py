"""A partition on this node: its log, its high watermark, and the requests that wait for it."""

from collections import deque
from collections.abc import Callable

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import Uuid
from ottla.log.config import LONG_MAX, LogConfig
from ottla.log.partition_log import INLINE_COMPRESSED_BYTES_MAX, ColdRead, LogSlice, PartitionLog
from ottla.log.segment_read import CACHED_READ_BYTES_MAX
from ottla.runtime.delayed_fetch import DelayedFetch
from ottla.wire.batch_validation import BatchRejected, ValidatedBatch
from ottla.wire.batches import ATTRIBUTES_AT

__all__ = [
    "INLINE_COMPRESSED_BYTES_MAX",
    "CACHED_READ_BYTES_MAX",
    "ColdRead",
    "InternalPartition",
    "LogSlice",
    "Partition",
    "PartitionLog",
]

UP_TO_HIGH_WATERMARK = -1
NEVER = 1 << 63
"""Greater than every offset."""
ActiveProducer = tuple[int, int, int, int, int, int]
"""Producer id, epoch, last sequence, last timestamp, coordinator epoch, first offset of an open transaction."""


class Partition:
    """A partition as API handlers use it. With one replica, a record is committed once it is in the log."""

    __slots__ = (
        "commit_callbacks",
        "delayed_fetches",
        "flush_due_offset",
        "high_watermark",
        "index",
        "is_leader",
        "is_removed",
        "leader_epoch",
        "log",
        "on_flush_due",
        "topic",
        "topic_id",
        "unflushed_bytes",
    )

    def __init__(self, topic: str, topic_id: Uuid, index: int, leader_epoch: int, log: PartitionLog) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader_epoch = leader_epoch
        self.log = log
        self.high_watermark = log.log_end_offset
        self.delayed_fetches: dict[DelayedFetch, None] = {}
        self.is_removed = False
        self.is_leader = False
        self.flush_due_offset = NEVER
        """Log end offset from which records must be fsynced (`flush.messages`) before they are acked or readable.

        0 while a flush is due or in progress.
        """
        self.on_flush_due: Callable[[Partition], None] | None = None
        self.unflushed_bytes = 0
        self.commit_callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        """Callbacks for when the high watermark reaches an offset, in order of offsets."""

    def become_leader(self, leader_epoch: int) -> None:
        """Use this epoch for new records. It is in the leader epoch cache before the first of them is appended."""
        self.leader_epoch = leader_epoch
        self.is_leader = True
        self.log.epochs.assign(leader_epoch, self.log.log_end_offset)

    def become_follower(self, leader_epoch: int) -> None:
        """Stop leading: another broker is the leader in this epoch."""
        self.leader_epoch = leader_epoch
        self.is_leader = False

    def append(self, records: memoryview, now_ms: int, validated: ValidatedBatch | None = None) -> tuple[int, int]:
        """Append a batch; return its base offset and log append time (-1 for create time). Raises BatchRejected."""
        log = self.log
        appended = log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms, validated=validated)
        end = log.log_end_offset
        if end >= self.flush_due_offset:
            self._await_flush(len(records))
        elif self.high_watermark != end:  # equal after a duplicate, which adds nothing
            self.high_watermark = end
            if self.delayed_fetches:
                self._notify_delayed_fetches(len(records))
        return appended

    def _await_flush(self, size: int) -> None:
        """Hold back the high watermark until this append is fsynced.

        Requests a flush unless one is pending; `on_flushed` requests another if more records arrived.
        """
        self.unflushed_bytes += size
        if self.flush_due_offset:
            self.flush_due_offset = 0
            assert self.on_flush_due is not None
            self.on_flush_due(self)

    def on_flushed(self) -> None:
        """Advance the high watermark after a flush, or after `flush.messages` changed."""
        log = self.log
        flushed, end, messages_max = log.recovery_point, log.log_end_offset, log.config.flush_messages
        if self.on_flush_due is None or end - flushed < messages_max:
            self.flush_due_offset = NEVER if messages_max == LONG_MAX else flushed + messages_max
            self.advance_high_watermark(end)
        else:
            self.flush_due_offset = 0
            self.on_flush_due(self)
            self.advance_high_watermark(flushed)

    def set_config(self, config: LogConfig) -> None:
        """Apply changed configs of the topic or the broker."""
        self.log.config = config
        self.on_flushed()

    def advance_high_watermark(self, offset: int) -> None:
        """Mark records before this offset as committed; notify delayed fetches and run commit callbacks."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            size, self.unflushed_bytes = max(self.unflushed_bytes, 1), 0
            if self.delayed_fetches:
                self._notify_delayed_fetches(size)
        while self.commit_callbacks and self.commit_callbacks[0][0] <= self.high_watermark:
            self.commit_callbacks.popleft()[1]()

    def call_when_committed(self, on_committed: Callable[[], None]) -> None:
        """Call back once all records now in the log are committed, or the partition is removed."""
        self.commit_callbacks.append((self.log.log_end_offset, on_committed))

    def delete_before(self, offset: int) -> None:
        """Delete records before the offset; -1 means the high watermark. Raises ApiError."""
        config = self.log.config
        if config.compacted and not config.deletes:
            raise ApiError(ErrorCode.POLICY_VIOLATION, "cannot delete records: cleanup.policy does not include delete")
        start = self.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
        if not 0 <= start <= self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"cannot delete records before offset {offset}: it is not between 0 and the high watermark "
                f"{self.high_watermark}",
            )
        self.log.advance_start(start)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to the requested one and its end offset, or (-1, -1) if unknown.

        The current leader epoch is included even if no records have been written in it.
        """
        return self.log.epochs.end_offset_for(epoch, self.log.log_end_offset, self.leader_epoch)

    def active_producers(self) -> list[ActiveProducer]:
        return [
            (
                producer_id,
                producer.epoch,
                producer.batches[-1][1] if producer.batches else -1,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
            for producer_id, producer in self.log.producers.items()
        ]

    def _notify_delayed_fetches(self, size: int) -> None:
        for fetch in list(self.delayed_fetches):
            fetch.on_appended(size)

    def on_removed(self) -> None:
        """Mark the partition as removed from this node and complete the requests that wait for it."""
        self.is_removed = True
        for fetch in list(self.delayed_fetches):
            fetch.wake()
        while self.commit_callbacks:
            self.commit_callbacks.popleft()[1]()


class InternalPartition(Partition):
    """A partition of an internal topic: only its coordinator shard appends to it."""

    __slots__ = ("on_high_watermark",)

    def __init__(self, topic: str, topic_id: Uuid, index: int, leader_epoch: int, log: PartitionLog) -> None:
        super().__init__(topic, topic_id, index, leader_epoch, log)
        self.on_high_watermark: Callable[[], None] | None = None
        """Called when the high watermark moves without an append: the shard's responses wait for it."""

    def append(self, records: memoryview, now_ms: int, validated: ValidatedBatch | None = None) -> tuple[int, int]:
        """Reject a client's batch, as an error of this partition only."""
        raise BatchRejected(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"cannot produce to internal topic {self.topic}",
            has_log_start=False,
        )

    def append_coordinator_batch(self, batch: bytearray, count: int, now_ms: int) -> int:
        """Append the shard's batch without validation and return the offset after it."""
        header = ValidatedBatch(len(batch), count, now_ms, batch[ATTRIBUTES_AT + 1], True, -1, -1, -1, None)
        super().append(memoryview(batch), now_ms, header)
        return self.log.log_end_offset

    def advance_high_watermark(self, offset: int) -> None:
        """Advance the high watermark and notify the shard."""
        before = self.high_watermark
        super().advance_high_watermark(offset)
        if self.high_watermark != before and self.on_high_watermark is not None:
            self.on_high_watermark()
