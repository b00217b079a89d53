"""DescribeTopicPartitions: topics with their partitions and eligible leaders, page by page."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, boolean, i16, i32, string, struct, uuid


class TopicRequest(Message):
    name: str = string("0+", default="")


class Cursor(Message):
    topic_name: str = string("0+", default="")
    partition_index: int = i32("0+", default=0)


class DescribeTopicPartitionsRequest(Message):
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    topics: list[TopicRequest] = array(TopicRequest, "0+", default=())
    response_partition_limit: int = i32("0+", default=2000)
    cursor: Cursor | None = struct(Cursor, "0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int = i16("0+", default=0)
    partition_index: int = i32("0+", default=0)
    leader_id: int = i32("0+", default=0)
    leader_epoch: int = i32("0+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(i32, "0+", default=())
    isr_nodes: list[int] = array(i32, "0+", default=())
    eligible_leader_replicas: list[int] | None = array(i32, "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = array(i32, "0+", nullable="0+", default=None)
    offline_replicas: list[int] = array(i32, "0+", default=(), ignorable=True)


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int = i16("0+", default=0)
    name: str | None = string("0+", nullable="0+", default="")
    topic_id: Uuid = uuid("0+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = boolean("0+", default=False, ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition, "0+", default=()
    )
    topic_authorized_operations: int = i32("0+", default=-2147483648)


class DescribeTopicPartitionsResponse(Message):
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0, ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic, "0+", default=())
    next_cursor: Cursor | None = struct(Cursor, "0+", nullable="0+", default=None)
