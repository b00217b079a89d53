"""DeleteRecords: delete the records of partitions before an offset."""

from ottla.wire.schema import Message, array, i16, i32, i64, string


class DeleteRecordsPartition(Message):
    partition_index: int = i32("0+", default=0)
    offset: int = i64("0+", default=0)


class DeleteRecordsTopic(Message):
    name: str = string("0+", default="")
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition, "0+", default=())


class DeleteRecordsRequest(Message):
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic, "0+", default=())
    timeout_ms: int = i32("0+", default=0)


class DeleteRecordsPartitionResult(Message):
    partition_index: int = i32("0+", default=0)
    low_watermark: int = i64("0+", default=0)
    error_code: int = i16("0+", default=0)


class DeleteRecordsTopicResult(Message):
    name: str = string("0+", default="")
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult, "0+", default=())


class DeleteRecordsResponse(Message):
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult, "0+", default=())
