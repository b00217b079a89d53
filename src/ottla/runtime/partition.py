"""A partition that this node leads: its log, its high watermark, and who waits for it."""

from collections.abc import Callable
from functools import partial

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import Uuid
from ottla.log.partition_log import INLINE_COMPRESSED_BYTES_MAX, ColdRead, LogSlice, PartitionLog
from ottla.runtime.waiting import ParkedFetch
from ottla.wire.batches import ATTRIBUTES_AT
from ottla.wire.inspection import BatchRejected, Effort, Inspection, inspect

__all__ = ["INLINE_COMPRESSED_BYTES_MAX", "ColdRead", "InternalPartition", "LogSlice", "Partition"]

UP_TO_HIGH_WATERMARK = -1
ActiveProducer = tuple[int, int, int, int, int, int]
"""Id, epoch, last sequence, last timestamp, epoch of the coordinator, first offset of an open transaction."""


class Partition:
    """What the APIs see of a partition. With one replica all that is in the log is committed."""

    __slots__ = ("high_watermark", "index", "is_gone", "is_leader", "leader_epoch", "log", "parked", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: Uuid, index: int, leader_epoch: int, log: PartitionLog) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader_epoch = leader_epoch
        self.log = log
        self.high_watermark = log.log_end_offset
        self.parked: dict[ParkedFetch, None] = {}
        self.is_gone = False
        self.is_leader = False

    def lead(self, leader_epoch: int) -> None:
        """From here on records are of this epoch; the log knows of it before the first of them is there."""
        self.leader_epoch = leader_epoch
        self.is_leader = True
        self.log.epochs.assign(leader_epoch, self.log.log_end_offset)

    def resign(self, leader_epoch: int) -> None:
        """Another broker leads from this epoch on."""
        self.leader_epoch = leader_epoch
        self.is_leader = False

    def append(self, records: memoryview, now_ms: int, inspection: Inspection | None = None) -> tuple[int, int]:
        """Base offset and log append time (-1 for create time). Raises BatchRejected."""
        log = self.log
        appended = log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms, inspection=inspection)
        if self.high_watermark != log.log_end_offset:            # equal after a duplicate, which adds nothing
            self.high_watermark = log.log_end_offset
            if self.parked:
                self._tell_parked(len(records))
        return appended

    def delete_before(self, offset: int) -> None:
        """Records before the offset are gone, or all up to the high watermark where it is -1. ApiError where that cannot be."""
        config = self.log.config
        if config.compacted and not config.deletes:
            raise ApiError(ErrorCode.POLICY_VIOLATION, "a topic that is only compacted keeps its records")
        wanted = self.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
        if not 0 <= wanted <= self.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is not between 0 and the high watermark, {self.high_watermark}")
        self.log.advance_start(wanted)

    def inspection_of(self, records: memoryview, now_ms: int, effort: Effort) -> Callable[[], Inspection]:
        """The work of inspecting a batch, for a worker; it raises BatchRejected, and TooMuchEffort where that is not enough."""
        return partial(inspect, records, self.log.config.rules(), now_ms, effort)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to the one asked for, and the offset at which it ends; (-1, -1) where that is not known.

        The leader's own epoch counts from when it took over, whether or not anything has been written in it.
        """
        return self.log.epochs.end_offset_for(epoch, self.log.log_end_offset, self.leader_epoch)

    def active_producers(self) -> list[ActiveProducer]:
        return [(producer_id, producer.epoch, producer.batches[-1][1] if producer.batches else -1, producer.last_timestamp,
                 producer.coordinator_epoch, producer.transaction_first_offset)
                for producer_id, producer in self.log.producers.items()]

    def _tell_parked(self, size: int) -> None:
        for fetch in list(self.parked):
            fetch.on_appended(size)

    def on_gone(self) -> None:
        """The partition is no longer here: those who wait shall hear of it."""
        self.is_gone = True
        for fetch in list(self.parked):
            fetch.wake()


class InternalPartition(Partition):
    """A partition of an internal topic: what its shard decides is appended, and nothing that a client sends."""

    __slots__ = ("on_high_watermark",)

    def __init__(self, topic: str, topic_id: Uuid, index: int, leader_epoch: int, log: PartitionLog) -> None:
        super().__init__(topic, topic_id, index, leader_epoch, log)
        self.on_high_watermark: Callable[[], None] | None = None
        """Called when the high watermark moves without an append: the shard's answers wait for it."""

    def append(self, records: memoryview, now_ms: int, inspection: Inspection | None = None) -> tuple[int, int]:
        """A client's batch: refused, which costs other partitions nothing."""
        raise BatchRejected(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{self.topic} is written by the cluster alone", has_log_start=False)

    def append_own(self, batch: bytearray, count: int, now_ms: int) -> int:
        """The shard's own batch, which needs no checks but must go on where the log ends; the offset after it is returned."""
        header = Inspection(len(batch), count, now_ms, batch[ATTRIBUTES_AT + 1], True, -1, -1, -1, None)
        super().append(memoryview(batch), now_ms, header)
        return self.log.log_end_offset

    def advance_high_watermark(self, offset: int) -> None:
        """Followers have what is before this offset."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            if self.parked:
                self._tell_parked(1)
            if self.on_high_watermark is not None:
                self.on_high_watermark()
