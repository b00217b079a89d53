"""ListOffsets (key 2), versions 1–11: the offset of a timestamp, the log's start or end, or the largest timestamp.

Special timestamps: -1 latest, -2 earliest, -3 largest timestamp (from version 7, KIP-734), -4 earliest local (8,
KIP-405), -5 latest tiered (9), -6 earliest pending upload (11). Without tiered storage -4 is the log start offset, and
-5 and -6 find nothing.
"""

from collections.abc import Coroutine
from functools import partial
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition
from ottla.runtime.slice_scheduler import in_pieces
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.schema import SlicedWork

REQUEST = ListOffsetsRequest
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
MIN_VERSION_OF = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
LEADER_EPOCH_MIN_VERSION = 4
NO_LEADER_EPOCH = -1
ISOLATION_LEVELS = (0, 1)

Search = tuple[ListOffsetsPartitionResponse, Partition, int]
"""A timestamp to look up, and the response that waits for its offset."""


def handle(
    broker: Broker, context: RequestContext, request: ListOffsetsRequest, version: int
) -> ListOffsetsResponse | SlicedWork[ListOffsetsResponse] | Coroutine[Any, Any, ListOffsetsResponse]:
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
    searches: list[Search] = []
    work = _look_up(broker, request, version, searches)
    if any(_needs_search(part.timestamp) for topic in request.topics for part in topic.partitions):
        return _look_up_and_search(broker, work, searches, version)
    return work


def _needs_search(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == MAX_TIMESTAMP


def _look_up(
    broker: Broker, request: ListOffsetsRequest, version: int, searches: list[Search]
) -> SlicedWork[ListOffsetsResponse]:
    """Return offsets that are in memory, and add the others to `searches`."""
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        responses = topics.setdefault(topic.name, {})
        for some in in_pieces(topic.partitions):
            for part in some:
                index = part.partition_index
                if index in responses:
                    responses[index] = _failed(part, ErrorCode.INVALID_REQUEST)  # a duplicate
                else:
                    responses[index] = response = _find(broker, topic.name, part, version, searches)
                    if version < LEADER_EPOCH_MIN_VERSION:
                        response.leader_epoch = NO_LEADER_EPOCH
            yield
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(responses.values()))
            for name, responses in topics.items()
        ]
    )


async def _look_up_and_search(
    broker: Broker, work: SlicedWork[ListOffsetsResponse], searches: list[Search], version: int
) -> ListOffsetsResponse:
    """Look up timestamps in workers: the batch that has the record may have to be read and decompressed."""
    listed = await broker.scheduler.run(work)
    for response, partition, timestamp in searches:
        try:
            found = await broker.workers.run(partial(_search, partition, timestamp))
        except OSError as error:
            broker.log_directories.on_partition_failure(partition, error)
            response.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            continue
        if partition.is_removed:
            response.error_code = broker.missing_error(partition.topic, partition.index)
        elif found is not None:
            response.timestamp, response.offset, leader_epoch = found
            response.leader_epoch = leader_epoch if version >= LEADER_EPOCH_MIN_VERSION else NO_LEADER_EPOCH
    return listed


def _find(
    broker: Broker, topic: str, part: ListOffsetsPartition, version: int, searches: list[Search]
) -> ListOffsetsPartitionResponse:
    partition = broker.partition(topic, part.partition_index)
    timestamp = part.timestamp
    if timestamp < 0 and version < MIN_VERSION_OF.get(timestamp, 1 << 15):
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
    response = _found(part, -1, -1, -1)
    if _needs_search(timestamp):
        searches.append((response, partition, timestamp))
    return response


def _search(partition: Partition, timestamp: int) -> tuple[int, int, int] | None:
    """Runs in a worker."""
    log = partition.log
    if timestamp != MAX_TIMESTAMP:
        return log.offset_for_timestamp(timestamp)
    found = log.offset_of_max_timestamp()
    if found is None and log.log_end_offset > log.log_start_offset:
        return (
            -1,
            log.log_start_offset,
            log.epoch_for(log.log_start_offset),
        )  # no record has a timestamp: return the first one
    return found


def _found(part: ListOffsetsPartition, timestamp: int, offset: int, leader_epoch: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _failed(part: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=error)
