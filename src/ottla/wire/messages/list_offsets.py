"""ListOffsets: look up offsets by timestamp, or the first or last one of a partition."""

from ottla.wire.schema import Message, array, i8, i16, i32, i64, string


class ListOffsetsPartition(Message):
    partition_index: int = i32("0+", default=0)
    current_leader_epoch: int = i32("4+", default=-1, ignorable=True)
    timestamp: int = i64("0+", default=0)


class ListOffsetsTopic(Message):
    name: str = string("0+", default="")
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition, "0+", default=())


class ListOffsetsRequest(Message):
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_FROM = 6

    replica_id: int = i32("0+", default=0)
    isolation_level: int = i8("2+", default=0)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic, "0+", default=())
    timeout_ms: int = i32("10+", default=0, ignorable=True)


class ListOffsetsPartitionResponse(Message):
    partition_index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    timestamp: int = i64("1+", default=-1)
    offset: int = i64("1+", default=-1)
    leader_epoch: int = i32("4+", default=-1)


class ListOffsetsTopicResponse(Message):
    name: str = string("0+", default="")
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse, "0+", default=())


class ListOffsetsResponse(Message):
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_FROM = 6

    throttle_time_ms: int = i32("2+", default=0, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse, "0+", default=())
