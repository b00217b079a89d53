"""OffsetDelete (key 47), version 0: offsets of a group are forgotten, of topics that it does not read any more (KIP-496)."""

import asyncio
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

REQUEST = OffsetDeleteRequest


def handle(broker: Broker, context: RequestContext, request: OffsetDeleteRequest, version: int) -> ResponseOrFuture:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    refused: list[OffsetDeleteResponseTopic] = []
    known = [topic for topic in request.topics if _keep_existing(broker, topic, refused)]
    answer = broker.group_coordinator.dispatch(
        request.group_id, OffsetDeleteRequest(group_id=request.group_id, topics=known), version, context
    )
    if not refused:
        return answer
    return _merged_later(answer, refused) if asyncio.isfuture(answer) else _merged(answer, refused)


def _keep_existing(broker: Broker, topic: OffsetDeleteRequestTopic, refused: list[OffsetDeleteResponseTopic]) -> bool:
    """Whether anything is left of the topic without the partitions that do not exist."""
    image = broker.image.topics_by_name.get(topic.name)
    existing = () if image is None else image.partitions
    missing = [partition for partition in topic.partitions if partition.partition_index not in existing]
    if missing:
        refused.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for partition in missing
                ],
            )
        )
        topic.partitions = [partition for partition in topic.partitions if partition.partition_index in existing]
    return bool(topic.partitions)


def _merged(answer: OffsetDeleteResponse, refused: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    """Each topic once; where the group is refused as a whole, nothing is said of topics."""
    if answer.error_code:
        return answer
    topics = {topic.name: topic for topic in refused}
    for topic in answer.topics:
        before = topics.setdefault(topic.name, topic)
        if before is not topic:
            before.partitions += topic.partitions
    return OffsetDeleteResponse(topics=list(topics.values()))


async def _merged_later(
    answer: "asyncio.Future[Any]", refused: list[OffsetDeleteResponseTopic]
) -> OffsetDeleteResponse:
    return _merged(await answer, refused)
