"""OffsetForLeaderEpoch (key 23), versions 2–4: the end offset of a leader epoch, by which clients detect truncation."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

REQUEST = OffsetForLeaderEpochRequest
NO_EPOCH = -1


def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest, version: int
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_result(broker, topic.topic, part) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


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
