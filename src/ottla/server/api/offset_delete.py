"""OffsetDelete (key 47), version 0: delete a group's offsets of topics that it does not consume any more (KIP-496)."""

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
    errors: list[OffsetDeleteResponseTopic] = []
    known = [topic for topic in request.topics if _keep_existing(broker, topic, errors)]
    response = broker.group_coordinator.dispatch(
        request.group_id, OffsetDeleteRequest(group_id=request.group_id, topics=known), version, context
    )
    if not errors:
        return response
    return _merged_later(response, errors) if asyncio.isfuture(response) else _merged(response, errors)


def _keep_existing(broker: Broker, topic: OffsetDeleteRequestTopic, errors: list[OffsetDeleteResponseTopic]) -> bool:
    """Move partitions that do not exist to `errors`. Return whether there are others."""
    image = broker.image.topics_by_name.get(topic.name)
    existing = () if image is None else image.partitions
    missing = [partition for partition in topic.partitions if partition.partition_index not in existing]
    if missing:
        errors.append(
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


def _merged(response: OffsetDeleteResponse, errors: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    """Merge the topics of both, each topic once. An error of the group is returned without topics."""
    if response.error_code:
        return response
    topics = {topic.name: topic for topic in errors}
    for topic in response.topics:
        before = topics.setdefault(topic.name, topic)
        if before is not topic:
            before.partitions += topic.partitions
    return OffsetDeleteResponse(topics=list(topics.values()))


async def _merged_later(
    response: "asyncio.Future[Any]", errors: list[OffsetDeleteResponseTopic]
) -> OffsetDeleteResponse:
    return _merged(await response, errors)
