"""Consumers' subscriptions and assignments inside JoinGroup and SyncGroup, mostly opaque to brokers."""

from ottla.wire.schema import NEVER, Message, array, binary, i32, string


class TopicPartition(Message):
    topic: str = string("1+", default="")
    partitions: list[int] = array(i32, "1+", default=())


class ConsumerProtocolSubscription(Message):
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = NEVER

    topics: list[str] = array(string, "0+", default=())
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", default=(), ignorable=True)
    generation_id: int = i32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Message):
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = NEVER

    class TopicPartition(Message):
        topic: str = string("0+", default="")
        partitions: list[int] = array(i32, "0+", default=())

    assigned_partitions: list[TopicPartition] = array(TopicPartition, "0+", default=())
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
