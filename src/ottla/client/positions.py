"""Which partitions a consumer reads, and how far it has come in each: values and rules, without I/O."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from ottla.client.records import OffsetAndMetadata, TopicPartition

NO_EPOCH = -1
NO_REPLICA = -1


class PartitionState:
    """One partition that is read.

    `offset` is what the user has come to; `fetch_offset` runs ahead of it, as responses wait to be handed out. `seek_id` changes with every
    seek, so that what was fetched for a place that nobody reads any more is known for that; no two places have the same one, also where a
    partition goes and comes back.
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
        """Of the record before `offset`: a leader that is not of this line may have other records there."""
        self.fetch_offset = 0
        self.fetch_epoch = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        """Of the leader that was last known: when it changes, what was read is compared with what the new one has."""
        self.reset_at: int | None = None
        """The timestamp (or one of ListOffsets' numbers) whose offset is to be looked up."""
        self.is_awaiting_validation = False
        """The leader changed: whether its log is the one that was read is to be asked."""
        self.is_paused = False
        self._seek_ids = seek_ids
        self.seek_id = next(seek_ids)
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.replica = NO_REPLICA
        """A nearer replica that the leader named."""
        self.replica_until_ms = 0.0
        self.retry_at_ms = 0.0
        """After an error the partition is left alone for a moment."""

    @property
    def is_fetchable(self) -> bool:
        return (
            self.offset is not None and self.reset_at is None and not self.is_awaiting_validation and not self.is_paused
        )

    def on_leader_epoch(self, leader_epoch: int) -> bool:
        """A leader is known. True where it is another than before, and the place has to be looked at."""
        is_new = 0 <= self.leader_epoch < leader_epoch or (self.leader_epoch == NO_EPOCH and self.epoch != leader_epoch)
        self.leader_epoch = max(leader_epoch, self.leader_epoch)
        if not is_new or self.offset is None or self.epoch == NO_EPOCH or self.is_awaiting_validation:
            return False
        self.request_validation()
        return True

    def seek(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Go on elsewhere. What is under way for the old place is dropped."""
        self.offset = self.fetch_offset = offset
        self.epoch = self.fetch_epoch = epoch
        self.reset_at = None
        self.is_awaiting_validation = False
        self.seek_id = next(self._seek_ids)

    def request_reset(self, timestamp: int) -> None:
        """Go where a lookup will say."""
        self.offset = None
        self.reset_at = timestamp
        self.replica = NO_REPLICA
        self.seek_id = next(self._seek_ids)

    def request_validation(self) -> None:
        """CompletedFetch but not handed out: it may be of a log that is no more."""
        assert self.offset is not None
        self.fetch_offset, self.fetch_epoch = self.offset, self.epoch
        self.is_awaiting_validation = True
        self.seek_id = next(self._seek_ids)

    def rewind(self) -> None:
        """Fetch again what was not handed out."""
        if self.offset is not None:
            self.fetch_offset, self.fetch_epoch = self.offset, self.epoch
            self.seek_id = next(self._seek_ids)

    def lag(self, *, read_committed: bool) -> int | None:
        """How many offsets are between the position and the end; None where nothing is known yet."""
        end = self.last_stable_offset if read_committed else self.high_watermark
        return None if self.offset is None or end < 0 else max(end - self.offset, 0)


class Positions:
    """The partitions that are assigned, by name, in the order in which they came."""

    def __init__(self) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        """Always the same dictionary: whoever waits for a response looks into it afterwards."""
        self._seek_ids = count(1)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self.states

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """From now on these and no others; those that stay keep their place."""
        wanted = {partition: self.states.get(partition) or PartitionState(self._seek_ids) for partition in partitions}
        self.states.clear()
        self.states.update(wanted)

    def require(self, partition: TopicPartition) -> PartitionState:
        state = self.states.get(partition)
        if state is None:
            raise ValueError(f"partition {partition} is not assigned to this consumer")
        return state

    def without_position(self) -> list[TopicPartition]:
        """Those of which neither an offset nor where to look it up is known."""
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
        """What there is to commit."""
        return {
            partition: OffsetAndMetadata(state.offset, "", state.epoch)
            for partition, state in self.states.items()
            if state.offset is not None
        }

    def advance(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        """The user was given everything before an offset."""
        state = self.states.get(partition)
        if state is not None and state.offset is not None:
            state.offset = offset
            state.epoch = epoch

    def lags(self, *, read_committed: bool) -> dict[TopicPartition, int]:
        found = {partition: state.lag(read_committed=read_committed) for partition, state in self.states.items()}
        return {partition: lag for partition, lag in found.items() if lag is not None}


def by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, in order."""
    found: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        found.setdefault(partition.topic, []).append(partition.partition)
    return found
