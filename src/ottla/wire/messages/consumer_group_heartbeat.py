"""ConsumerGroupHeartbeat: join, stay in and leave a consumer group of KIP-848."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, i16, i32, string, struct, uuid


class TopicPartitions(Message):
    topic_id: Uuid = uuid("0+", default=ZERO_UUID)
    partitions: list[int] = array(i32, "0+", default=())


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY = 68
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0

    group_id: str = string("0+", default="")
    member_id: str = string("0+", default="")
    member_epoch: int = i32("0+", default=0)
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = i32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable="0+", default=None)


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+", default=())


class ConsumerGroupHeartbeatResponse(Message):
    API_KEY = 68
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = i32("0+", default=0)
    heartbeat_interval_ms: int = i32("0+", default=0)
    assignment: Assignment | None = struct(Assignment, "0+", nullable="0+", default=None)
