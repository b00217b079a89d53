"""A partition that this node leads: its log, its high watermark, and who waits for it."""

from collections.abc import Callable
from functools import partial

from ottla.base.ids import Uuid
from ottla.log.partition_log import LogSlice, PartitionLog
from ottla.runtime.waiting import ParkedFetch
from ottla.wire.inspection import Inspection, inspect

__all__ = ["LogSlice", "Partition"]


class Partition:
    """What the APIs see of a partition. With one replica all that is in the log is committed."""

    __slots__ = ("high_watermark", "index", "is_gone", "leader_epoch", "log", "parked", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: Uuid, index: int, leader_epoch: int, log: PartitionLog) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader_epoch = leader_epoch
        self.log = log
        self.high_watermark = log.log_end_offset
        self.parked: dict[ParkedFetch, None] = {}
        self.is_gone = False

    def append(self, records: memoryview, now_ms: int, inspection: Inspection | None = None) -> tuple[int, int]:
        """Base offset and log append time (-1 for create time). Raises BatchRejected."""
        log = self.log
        appended = log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms, inspection=inspection)
        if self.high_watermark != log.log_end_offset:            # equal after a duplicate, which adds nothing
            self.high_watermark = log.log_end_offset
            if self.parked:
                self._tell_parked(len(records))
        return appended

    def inspection_of(self, records: memoryview, now_ms: int) -> Callable[[], Inspection]:
        """The work of inspecting a batch, for a worker; it raises BatchRejected."""
        return partial(inspect, records, self.log.config.rules(), now_ms)

    def _tell_parked(self, size: int) -> None:
        for fetch in list(self.parked):
            fetch.on_appended(size)

    def on_gone(self) -> None:
        """The partition is no longer here: those who wait shall hear of it."""
        self.is_gone = True
        for fetch in list(self.parked):
            fetch.wake()
