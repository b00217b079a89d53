"""OffsetFetch: fetch the committed offsets of groups."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, boolean, i16, i32, i64, string, uuid


class OffsetFetchRequestTopic(Message):
    name: str = string("0-7", default="")
    partition_indexes: list[int] = array(i32, "0-7", default=())


class OffsetFetchRequestTopics(Message):
    name: str = string("8-9", default="", ignorable=True)
    topic_id: Uuid = uuid("10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: list[int] = array(i32, "8+", default=())


class OffsetFetchRequestGroup(Message):
    group_id: str = string("8+", default="")
    member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = i32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, "8+", nullable="8+", default=())


class OffsetFetchRequest(Message):
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_FROM = 6

    group_id: str = string("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7", default=())
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+", default=())
    require_stable: bool = boolean("7+", default=False)


class OffsetFetchResponsePartition(Message):
    partition_index: int = i32("0-7", default=0)
    committed_offset: int = i64("0-7", default=0)
    committed_leader_epoch: int = i32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable="0-7", default="")
    error_code: int = i16("0-7", default=0)


class OffsetFetchResponseTopic(Message):
    name: str = string("0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, "0-7", default=())


class OffsetFetchResponsePartitions(Message):
    partition_index: int = i32("8+", default=0)
    committed_offset: int = i64("8+", default=0)
    committed_leader_epoch: int = i32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="8+", default="")
    error_code: int = i16("8+", default=0)


class OffsetFetchResponseTopics(Message):
    name: str = string("8-9", default="", ignorable=True)
    topic_id: Uuid = uuid("10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, "8+", default=())


class OffsetFetchResponseGroup(Message):
    group_id: str = string("8+", default="")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, "8+", default=())
    error_code: int = i16("8+", default=0)


class OffsetFetchResponse(Message):
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_FROM = 6

    throttle_time_ms: int = i32("3+", default=0, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7", default=())
    error_code: int = i16("2-7", default=0, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+", default=())
