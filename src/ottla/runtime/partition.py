"""A partition that this node leads: its log, its high watermark, and who waits for it."""

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
"""Beyond all offsets."""
ActiveProducer = tuple[int, int, int, int, int, int]
"""Id, epoch, last sequence, last timestamp, epoch of the coordinator, first offset of an open transaction."""


class Partition:
    """What the APIs see of a partition. With one replica all that is in the log is committed."""

    __slots__ = (
        "delayed_fetches",
        "flush_due_offset",
        "unflushed_bytes",
        "high_watermark",
        "index",
        "is_removed",
        "is_leader",
        "leader_epoch",
        "log",
        "on_flush_due",
        "topic",
        "topic_id",
        "commit_callbacks",
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
        """From this end on nothing is acked or readable before the log is on the disk; 0 while that is so, and a flush is on its way."""
        self.on_flush_due: Callable[[Partition], None] | None = None
        self.unflushed_bytes = 0
        self.commit_callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        """Who waits for the high watermark to reach an offset."""

    def become_leader(self, leader_epoch: int) -> None:
        """From here on records are of this epoch; the log knows of it before the first of them is there."""
        self.leader_epoch = leader_epoch
        self.is_leader = True
        self.log.epochs.assign(leader_epoch, self.log.log_end_offset)

    def become_follower(self, leader_epoch: int) -> None:
        """Another broker leads from this epoch on."""
        self.leader_epoch = leader_epoch
        self.is_leader = False

    def append(self, records: memoryview, now_ms: int, validated: ValidatedBatch | None = None) -> tuple[int, int]:
        """Base offset and log append time (-1 for create time). Raises BatchRejected."""
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
        """What was appended is shown to nobody before it is on the disk. The flush that is due now or on its way is not the last."""
        self.unflushed_bytes += size
        if self.flush_due_offset:
            self.flush_due_offset = 0
            assert self.on_flush_due is not None
            self.on_flush_due(self)

    def on_flushed(self) -> None:
        """More of the log is on the disk, or how much of it must be has changed."""
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
        """Configs of the topic or of the broker have changed."""
        self.log.config = config
        self.on_flushed()

    def advance_high_watermark(self, offset: int) -> None:
        """What is before this offset is committed."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            size, self.unflushed_bytes = max(self.unflushed_bytes, 1), 0
            if self.delayed_fetches:
                self._notify_delayed_fetches(size)
        while self.commit_callbacks and self.commit_callbacks[0][0] <= self.high_watermark:
            self.commit_callbacks.popleft()[1]()

    def call_when_committed(self, on_committed: Callable[[], None]) -> None:
        """Call back once all that is in the log now is committed, or the partition is gone."""
        self.commit_callbacks.append((self.log.log_end_offset, on_committed))

    def delete_before(self, offset: int) -> None:
        """Records before the offset are gone, or all up to the high watermark where it is -1. ApiError where that cannot be."""
        config = self.log.config
        if config.compacted and not config.deletes:
            raise ApiError(ErrorCode.POLICY_VIOLATION, "a topic that is only compacted keeps its records")
        wanted = self.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
        if not 0 <= wanted <= self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{offset} is not between 0 and the high watermark, {self.high_watermark}",
            )
        self.log.advance_start(wanted)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to the one asked for, and the offset at which it ends; (-1, -1) where that is not known.

        The leader's own epoch counts from when it took over, whether or not anything has been written in it.
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
        """The partition is no longer here: those who wait shall hear of it."""
        self.is_removed = True
        for fetch in list(self.delayed_fetches):
            fetch.wake()
        while self.commit_callbacks:
            self.commit_callbacks.popleft()[1]()


class InternalPartition(Partition):
    """A partition of an internal topic: what its shard decides is appended, and nothing that a client sends."""

    __slots__ = ("on_high_watermark",)

    def __init__(self, topic: str, topic_id: Uuid, index: int, leader_epoch: int, log: PartitionLog) -> None:
        super().__init__(topic, topic_id, index, leader_epoch, log)
        self.on_high_watermark: Callable[[], None] | None = None
        """Called when the high watermark moves without an append: the shard's answers wait for it."""

    def append(self, records: memoryview, now_ms: int, validated: ValidatedBatch | None = None) -> tuple[int, int]:
        """A client's batch: refused, which costs other partitions nothing."""
        raise BatchRejected(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{self.topic} is written by the cluster alone", has_log_start=False
        )

    def append_coordinator_batch(self, batch: bytearray, count: int, now_ms: int) -> int:
        """The shard's own batch, which needs no checks but must go on where the log ends; the offset after it is returned."""
        header = ValidatedBatch(len(batch), count, now_ms, batch[ATTRIBUTES_AT + 1], True, -1, -1, -1, None)
        super().append(memoryview(batch), now_ms, header)
        return self.log.log_end_offset

    def advance_high_watermark(self, offset: int) -> None:
        """As of any partition; the shard hears of it."""
        before = self.high_watermark
        super().advance_high_watermark(offset)
        if self.high_watermark != before and self.on_high_watermark is not None:
            self.on_high_watermark()
