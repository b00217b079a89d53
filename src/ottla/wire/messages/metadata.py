"""Metadata: the brokers and topics of the cluster, with the leader of each partition."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, boolean, i16, i32, string, uuid


class MetadataRequestTopic(Message):
    topic_id: Uuid = uuid("10+", default=ZERO_UUID, ignorable=True)
    name: str | None = string("0+", nullable="10+", default="")


class MetadataRequest(Message):
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+", default=())
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10", default=False)
    include_topic_authorized_operations: bool = boolean("8+", default=False)


class MetadataResponseBroker(Message):
    node_id: int = i32("0+", default=0)
    host: str = string("0+", default="")
    port: int = i32("0+", default=0)
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Message):
    error_code: int = i16("0+", default=0)
    partition_index: int = i32("0+", default=0)
    leader_id: int = i32("0+", default=0)
    leader_epoch: int = i32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(i32, "0+", default=())
    isr_nodes: list[int] = array(i32, "0+", default=())
    offline_replicas: list[int] = array(i32, "5+", default=(), ignorable=True)


class MetadataResponseTopic(Message):
    error_code: int = i16("0+", default=0)
    name: str | None = string("0+", nullable="12+", default="")
    topic_id: Uuid = uuid("10+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = boolean("1+", default=False, ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition, "0+", default=())
    topic_authorized_operations: int = i32("8+", default=-2147483648)


class MetadataResponse(Message):
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9

    throttle_time_ms: int = i32("3+", default=0, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker, "0+", default=())
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = i32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic, "0+", default=())
    cluster_authorized_operations: int = i32("8-10", default=-2147483648)
    error_code: int = i16("13+", default=0, ignorable=True)
