"""DescribeProducers: the producer state of partitions."""

from ottla.wire.schema import Message, array, i16, i32, i64, string


class TopicRequest(Message):
    name: str = string("0+", default="")
    partition_indexes: list[int] = array(i32, "0+", default=())


class DescribeProducersRequest(Message):
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    topics: list[TopicRequest] = array(TopicRequest, "0+", default=())


class ProducerState(Message):
    producer_id: int = i64("0+", default=0)
    producer_epoch: int = i32("0+", default=0)
    last_sequence: int = i32("0+", default=-1)
    last_timestamp: int = i64("0+", default=-1)
    coordinator_epoch: int = i32("0+", default=0)
    current_txn_start_offset: int = i64("0+", default=-1)


class PartitionResponse(Message):
    partition_index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState, "0+", default=())


class TopicResponse(Message):
    name: str = string("0+", default="")
    partitions: list[PartitionResponse] = array(PartitionResponse, "0+", default=())


class DescribeProducersResponse(Message):
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0)
    topics: list[TopicResponse] = array(TopicResponse, "0+", default=())
