"""What goes wrong with consumers only."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode
from ottla.client.errors import ClientError
from ottla.client.partitions import TopicPartition


class NoOffsetForPartitionError(ClientError):
    """Partitions without a committed offset, and `auto.offset.reset=none`."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = tuple(partitions)
        names = ", ".join(map(str, partitions))
        super().__init__(
            f"No offset is committed for {names}, and auto.offset.reset is none.",
            advice="Seek to where reading shall begin.",
        )


class OffsetOutOfRangeError(ClientError):
    """The position is not in the log, and `auto.offset.reset=none`."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partition: TopicPartition, offset: int | None) -> None:
        self.partition, self.offset = partition, offset
        super().__init__(
            f"Partition {partition} has no offset {offset}, and auto.offset.reset is none.",
            advice="Seek to an offset between the beginning and the end.",
        )


class LogTruncationError(ClientError):
    """Records that were read are no longer in the log: it was cut back after a change of leader."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, partition: TopicPartition, offset: int, end_offset: int) -> None:
        self.partition, self.offset, self.end_offset = partition, offset, end_offset
        super().__init__(
            f"Partition {partition} was read up to offset {offset}, but its new leader's log parts from that at {end_offset}.",
            advice="Seek to where the logs part, and read from there again.",
        )


class WakeupError(ClientError):
    """`wakeup()` was called from another thread."""

    def __init__(self) -> None:
        super().__init__("The consumer was woken up.", advice="")


class FencedInstanceIdError(ClientError):
    """Another consumer with the same `group.instance.id` has taken this one's place."""

    default_code = ErrorCode.FENCED_INSTANCE_ID

    def __init__(self, instance_id: str | None) -> None:
        super().__init__(
            f"Another consumer with group.instance.id {instance_id!r} has taken this one's place.",
            advice="Close this one, and give each consumer an instance id of its own.",
        )


class CommitFailedError(ClientError):
    """The group has gone on without this member: its partitions are another's by now."""

    default_code = ErrorCode.UNKNOWN_MEMBER_ID

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(
            "The offsets were not committed: the group has rebalanced without this consumer.",
            code=code,
            advice="Poll more often or raise max.poll.interval.ms, or take fewer records at once with max.poll.records.",
        )
