"""OffsetCommit: commit a group's offsets."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, i16, i32, i64, string, uuid


class OffsetCommitRequestPartition(Message):
    partition_index: int = i32("0+", default=0)
    committed_offset: int = i64("0+", default=0)
    committed_leader_epoch: int = i32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+", default="")


class OffsetCommitRequestTopic(Message):
    name: str = string("0-9", default="", ignorable=True)
    topic_id: Uuid = uuid("10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, "0+", default=())


class OffsetCommitRequest(Message):
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_FROM = 8

    group_id: str = string("0+", default="")
    generation_id_or_member_epoch: int = i32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", default="", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = i64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic, "0+", default=())


class OffsetCommitResponsePartition(Message):
    partition_index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)


class OffsetCommitResponseTopic(Message):
    name: str = string("0-9", default="", ignorable=True)
    topic_id: Uuid = uuid("10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, "0+", default=())


class OffsetCommitResponse(Message):
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_FROM = 8

    throttle_time_ms: int = i32("3+", default=0, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic, "0+", default=())
