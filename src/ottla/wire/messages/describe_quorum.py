"""DescribeQuorum: the voters and observers of the metadata log, with their progress."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, i16, i32, i64, string, u16, uuid


class PartitionData(Message):
    partition_index: int = i32("0+", default=0)


class TopicData(Message):
    topic_name: str = string("0+", default="")
    partitions: list[PartitionData] = array(PartitionData, "0+", default=())


class DescribeQuorumRequest(Message):
    API_KEY = 55
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    topics: list[TopicData] = array(TopicData, "0+", default=())


class ReplicaState(Message):
    replica_id: int = i32("0+", default=0)
    replica_directory_id: Uuid = uuid("2+", default=ZERO_UUID)
    log_end_offset: int = i64("0+", default=0)
    last_fetch_timestamp: int = i64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = i64("1+", default=-1, ignorable=True)


class Listener(Message):
    name: str = string("2+", default="")
    host: str = string("2+", default="")
    port: int = u16("2+", default=0)


class Node(Message):
    node_id: int = i32("2+", default=0)
    listeners: list[Listener] = array(Listener, "2+", default=())


class DescribeQuorumResponse(Message):
    API_KEY = 55
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    class TopicData(Message):
        class PartitionData(Message):
            partition_index: int = i32("0+", default=0)
            error_code: int = i16("0+", default=0)
            error_message: str | None = string("2+", nullable="2+", default="", ignorable=True)
            leader_id: int = i32("0+", default=0)
            leader_epoch: int = i32("0+", default=0)
            high_watermark: int = i64("0+", default=0)
            current_voters: list[ReplicaState] = array(ReplicaState, "0+", default=())
            observers: list[ReplicaState] = array(ReplicaState, "0+", default=())

        topic_name: str = string("0+", default="")
        partitions: list[PartitionData] = array(PartitionData, "0+", default=())

    error_code: int = i16("0+", default=0)
    error_message: str | None = string("2+", nullable="2+", default="", ignorable=True)
    topics: list[TopicData] = array(TopicData, "0+", default=())
    nodes: list[Node] = array(Node, "2+", default=())
