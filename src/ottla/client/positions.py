"""Assigned partitions and the position in each, without I/O."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from ottla.client.records import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1
NO_REPLICA = -1


class PartitionState:
    """State of an assigned partition.

    `offset` is the user's position; `fetch_offset` is ahead of it by the buffered records. `seek_id` changes with every
    seek, so that results fetched for an earlier position are recognized. It is unique, also if a partition is removed
    and added again.
    """

    __slots__ = (
        "_seek_ids",
        "epoch",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "is_awaiting_validation",
        "is_paused",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "replica",
        "replica_until_ms",
        "reset_at",
        "retry_at_ms",
        "seek_id",
    )

    def __init__(self, seek_ids: Iterator[int]) -> None:
        self.offset: int | None = None
        self.epoch = NO_EPOCH
        """Leader epoch of the record before `offset`, for validation against a new leader."""
        self.fetch_offset = 0
        self.fetch_epoch = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        """Leader epoch of the known leader. When it changes, the position is validated."""
        self.reset_at: int | None = None
        """Timestamp (or special ListOffsets timestamp) whose offset becomes the position."""
        self.is_awaiting_validation = False
        """The leader changed: check that its log contains what was read."""
        self.is_paused = False
        self._seek_ids = seek_ids
        self.seek_id = next(seek_ids)
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.replica = NO_REPLICA
        """Preferred read replica named by the leader."""
        self.replica_until_ms = 0.0
        self.retry_at_ms = 0.0
        """Do not fetch the partition before this time, after an error."""

    @property
    def is_fetchable(self) -> bool:
        return (
            self.offset is not None and self.reset_at is None and not self.is_awaiting_validation and not self.is_paused
        )

    def on_leader_epoch(self, leader_epoch: int) -> bool:
        """Update the leader epoch. Returns True if the position needs validation."""
        is_new = 0 <= self.leader_epoch < leader_epoch or (self.leader_epoch == NO_EPOCH and self.epoch != leader_epoch)
        self.leader_epoch = max(leader_epoch, self.leader_epoch)
        if not is_new or self.offset is None or self.epoch == NO_EPOCH or self.is_awaiting_validation:
            return False
        self.request_validation()
        return True

    def seek(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Move to an offset. Fetches in flight for the old position are dropped."""
        self.offset = self.fetch_offset = offset
        self.epoch = self.fetch_epoch = epoch
        self.reset_at = None
        self.is_awaiting_validation = False
        self.seek_id = next(self._seek_ids)

    def request_reset(self, timestamp: int) -> None:
        """Move to the offset of a timestamp, once it is looked up."""
        self.offset = None
        self.reset_at = timestamp
        self.replica = NO_REPLICA
        self.seek_id = next(self._seek_ids)

    def request_validation(self) -> None:
        """Validate the position. Buffered records are fetched again: a truncation may have removed them."""
        assert self.offset is not None
        self.fetch_offset, self.fetch_epoch = self.offset, self.epoch
        self.is_awaiting_validation = True
        self.seek_id = next(self._seek_ids)

    def rewind(self) -> None:
        """Fetch the records after the position again."""
        if self.offset is not None:
            self.fetch_offset, self.fetch_epoch = self.offset, self.epoch
            self.seek_id = next(self._seek_ids)

    def lag(self, *, read_committed: bool) -> int | None:
        """Return the number of offsets between position and end, or None if unknown."""
        end = self.last_stable_offset if read_committed else self.high_watermark
        return None if self.offset is None or end < 0 else max(end - self.offset, 0)


class Positions:
    """States of the assigned partitions, in the order of assignment."""

    def __init__(self) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        """Always the same dict object: callers keep it across awaits."""
        self._seek_ids = count(1)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self.states

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions. Those already assigned keep their state."""
        assigned = {partition: self.states.get(partition) or PartitionState(self._seek_ids) for partition in partitions}
        self.states.clear()
        self.states.update(assigned)

    def require(self, partition: TopicPartition) -> PartitionState:
        state = self.states.get(partition)
        if state is None:
            raise ValueError(f"partition {partition} is not assigned to this consumer")
        return state

    def without_position(self) -> list[TopicPartition]:
        """Return partitions without an offset and without a pending reset."""
        return [
            partition for partition, state in self.states.items() if state.offset is None and state.reset_at is None
        ]

    def awaiting_reset(self) -> dict[TopicPartition, int]:
        return {partition: state.reset_at for partition, state in self.states.items() if state.reset_at is not None}

    def awaiting_validation(self) -> list[TopicPartition]:
        return [
            partition
            for partition, state in self.states.items()
            if state.is_awaiting_validation and state.offset is not None
        ]

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit."""
        return {
            partition: OffsetAndMetadata(state.offset, "", state.epoch)
            for partition, state in self.states.items()
            if state.offset is not None
        }

    def advance(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """Move the position: all records before `offset` were returned."""
        state = self.states.get(partition)
        if state is not None and state.offset is not None:
            state.offset = offset
            state.epoch = epoch

    def lags(self, *, read_committed: bool) -> dict[TopicPartition, int]:
        found = {partition: state.lag(read_committed=read_committed) for partition, state in self.states.items()}
        return {partition: lag for partition, lag in found.items() if lag is not None}


def by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    """Return sorted partition numbers by topic."""
    found: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        found.setdefault(partition.topic, []).append(partition.partition)
    return found
