"""Produce: append record batches to partitions."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.base.ports import Buffer
from ottla.wire.schema import Message, array, batches, i16, i32, i64, string, struct, uuid


class PartitionProduceData(Message):
    index: int = i32("0+", default=0)
    records: Buffer | None = batches("0+", nullable="0+", default=None)


class TopicProduceData(Message):
    name: str = string("0-12", default="", ignorable=True)
    topic_id: Uuid = uuid("13+", default=ZERO_UUID, ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData, "0+", default=())


class ProduceRequest(Message):
    API_KEY = 0
    MIN_VERSION = 3
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = i16("0+", default=0)
    timeout_ms: int = i32("0+", default=0)
    topic_data: list[TopicProduceData] = array(TopicProduceData, "0+", default=())


class BatchIndexAndErrorMessage(Message):
    batch_index: int = i32("8+", default=0)
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Message):
    leader_id: int = i32("10+", default=-1)
    leader_epoch: int = i32("10+", default=-1)


class PartitionProduceResponse(Message):
    index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    base_offset: int = i64("0+", default=0)
    log_append_time_ms: int = i64("2+", default=-1, ignorable=True)
    log_start_offset: int = i64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, "8+", default=(), ignorable=True)
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", factory=LeaderIdAndEpoch, tag=0)


class TopicProduceResponse(Message):
    name: str = string("0-12", default="", ignorable=True)
    topic_id: Uuid = uuid("13+", default=ZERO_UUID, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse, "0+", default=())


class NodeEndpoint(Message):
    node_id: int = i32("10+", default=0)
    host: str = string("10+", default="")
    port: int = i32("10+", default=0)
    rack: str | None = string("10+", nullable="10+", default=None)


class ProduceResponse(Message):
    API_KEY = 0
    MIN_VERSION = 3
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9

    responses: list[TopicProduceResponse] = array(TopicProduceResponse, "0+", default=())
    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", default=(), tag=0)
