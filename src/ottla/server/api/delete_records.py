"""DeleteRecords (key 21), versions 0–2: move the log start offset to an offset, or (-1) to the high watermark.

The response is sent when the new log start offset is fsynced. Skipped: the timeout, as there are no followers to wait
for.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ApiError, ErrorCode
from ottla.metadata.topic_names import INTERNAL_TOPICS
from ottla.runtime.broker import Broker
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

REQUEST = DeleteRecordsRequest
NO_OFFSET = -1


async def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest, version: int
) -> DeleteRecordsResponse:
    requested: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for part in topic.partitions:
            requested.setdefault(topic.name, {})[part.partition_index] = (
                part.offset
            )  # the last one of a partition counts
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name, partitions=[await _delete(broker, name, index, offset) for index, offset in parts.items()]
            )
            for name, parts in requested.items()
        ]
    )


async def _delete(broker: Broker, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    partition = broker.partition(topic, index)
    if partition is None:
        return _failed(index, broker.missing_error(topic, index))
    if topic in INTERNAL_TOPICS:
        return _failed(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        start_offset = await broker.log_directories.delete_before(partition, offset)
    except ApiError as error:
        return _failed(index, error.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=start_offset)


def _failed(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_OFFSET, error_code=error)
