"""OffsetDelete: delete a group's offsets of some partitions."""

from ottla.wire.schema import NEVER, Message, array, i16, i32, string


class OffsetDeleteRequestPartition(Message):
    partition_index: int = i32("0+", default=0)


class OffsetDeleteRequestTopic(Message):
    name: str = string("0+", default="")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, "0+", default=())


class OffsetDeleteRequest(Message):
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    group_id: str = string("0+", default="")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, "0+", default=())


class OffsetDeleteResponsePartition(Message):
    partition_index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)


class OffsetDeleteResponseTopic(Message):
    name: str = string("0+", default="")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, "0+", default=())


class OffsetDeleteResponse(Message):
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    error_code: int = i16("0+", default=0)
    throttle_time_ms: int = i32("0+", default=0, ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, "0+", default=())
