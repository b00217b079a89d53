"""ListOffsets (key 2), versions 1–11: the offset of a timestamp, of the beginning, the end or the largest timestamp.

Special timestamps: -1 latest, -2 earliest, -3 largest timestamp (from version 7, KIP-734), -4 earliest local (8, KIP-405), -5 latest
tiered (9), -6 earliest pending upload (11). Without tiered storage -4 is the beginning, and -5 and -6 find nothing.
"""

from functools import partial

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

REQUEST = ListOffsetsRequest
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
FIRST_VERSION_OF = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
LEADER_EPOCH_FROM = 4
NO_LEADER_EPOCH = -1
ISOLATION_LEVELS = (0, 1)
FOUND_AT_ONCE_MAX = 250


async def handle(
    broker: Broker, context: RequestContext, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse:
    if request.isolation_level not in ISOLATION_LEVELS:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name, partitions=[_failed(part, error) for part in topic.partitions]
                )
                for topic in request.topics
            ]
        )
    found = 0
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        for part in topic.partitions:
            found += 1
            if found % FOUND_AT_ONCE_MAX == 0:
                await broker.scheduler.next_slice()  # others have their turn: a partition takes 2 µs
            if part.partition_index in answers:  # named twice
                answers[part.partition_index] = _failed(part, ErrorCode.INVALID_REQUEST)
            else:
                answers[part.partition_index] = answer = await _find(broker, topic.name, part, version)
                if version < LEADER_EPOCH_FROM:
                    answer.leader_epoch = NO_LEADER_EPOCH
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(answers.values())) for name, answers in topics.items()
        ]
    )


async def _find(broker: Broker, topic: str, part: ListOffsetsPartition, version: int) -> ListOffsetsPartitionResponse:
    partition = broker.partition(topic, part.partition_index)
    timestamp = part.timestamp
    if timestamp < 0 and version < FIRST_VERSION_OF.get(timestamp, 1 << 15):
        return _failed(part, ErrorCode.UNSUPPORTED_VERSION)
    if partition is None:
        return _failed(part, broker.missing_error(topic, part.partition_index))
    if part.current_leader_epoch != NO_LEADER_EPOCH and part.current_leader_epoch != partition.leader_epoch:
        stale = part.current_leader_epoch < partition.leader_epoch
        return _failed(part, ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH)
    log = partition.log
    if timestamp == LATEST:
        return _found(part, -1, partition.high_watermark, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _found(part, -1, log.log_start_offset, log.epoch_for(log.log_start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _found(part, -1, -1, -1)
    try:
        found = await broker.workers.run(partial(_search, partition, timestamp))
    except OSError as error:
        broker.log_directories.on_partition_failure(partition, error)
        return _failed(part, ErrorCode.KAFKA_STORAGE_ERROR)
    return _found(part, -1, -1, -1) if found is None else _found(part, *found)


def _search(partition: Partition, timestamp: int) -> tuple[int, int, int] | None:
    """Runs in a worker: the batch that holds the record may have to be read and decompressed."""
    log = partition.log
    if timestamp != MAX_TIMESTAMP:
        return log.offset_for_timestamp(timestamp)
    found = log.offset_of_max_timestamp()
    if found is None and log.log_end_offset > log.log_start_offset:
        return (
            -1,
            log.log_start_offset,
            log.epoch_for(log.log_start_offset),
        )  # no record has a time: the first is as late as any
    return found


def _found(part: ListOffsetsPartition, timestamp: int, offset: int, leader_epoch: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _failed(part: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=error)
