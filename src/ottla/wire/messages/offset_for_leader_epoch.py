"""OffsetForLeaderEpoch: the end offset of a leader epoch, to find where two logs diverge."""

from ottla.wire.schema import Message, array, i16, i32, i64, string


class OffsetForLeaderPartition(Message):
    partition: int = i32("0+", default=0)
    current_leader_epoch: int = i32("2+", default=-1, ignorable=True)
    leader_epoch: int = i32("0+", default=0)


class OffsetForLeaderTopic(Message):
    topic: str = string("0+", default="")
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition, "0+", default=())


class OffsetForLeaderEpochRequest(Message):
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    replica_id: int = i32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic, "0+", default=())


class EpochEndOffset(Message):
    error_code: int = i16("0+", default=0)
    partition: int = i32("0+", default=0)
    leader_epoch: int = i32("1+", default=-1, ignorable=True)
    end_offset: int = i64("0+", default=-1)


class OffsetForLeaderTopicResult(Message):
    topic: str = string("0+", default="")
    partitions: list[EpochEndOffset] = array(EpochEndOffset, "0+", default=())


class OffsetForLeaderEpochResponse(Message):
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = i32("2+", default=0, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult, "0+", default=())
