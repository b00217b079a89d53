"""OffsetForLeaderEpoch (key 23), versions 2–4: the end offset of a leader epoch, by which clients detect truncation."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.slice_scheduler import in_pieces
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.wire.schema import SlicedWork

REQUEST = OffsetForLeaderEpochRequest
NO_EPOCH = -1


def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest, version: int
) -> SlicedWork[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        result = OffsetForLeaderTopicResult(topic=topic.topic)
        for some in in_pieces(topic.partitions):
            result.partitions += [_result(broker, topic.topic, part) for part in some]
            yield
        response.topics.append(result)
    return response


def _result(broker: Broker, topic: str, part: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = broker.partition(topic, part.partition)
    if partition is None:
        return EpochEndOffset(error_code=broker.missing_error(topic, part.partition), partition=part.partition)
    if part.current_leader_epoch not in (NO_EPOCH, partition.leader_epoch):
        is_stale = part.current_leader_epoch < partition.leader_epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if is_stale else ErrorCode.UNKNOWN_LEADER_EPOCH
        return EpochEndOffset(error_code=error, partition=part.partition)
    epoch, end_offset = partition.end_of_epoch(part.leader_epoch)
    return EpochEndOffset(partition=part.partition, leader_epoch=epoch, end_offset=end_offset)
