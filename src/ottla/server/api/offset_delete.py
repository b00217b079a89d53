"""OffsetDelete (key 47), version 0: offsets of a group are forgotten, of topics that it does not read any more (KIP-496)."""

import asyncio
from typing import Any

from ottla.base.context import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.groups import Answer
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

REQUEST = OffsetDeleteRequest


def handle(broker: Broker, context: RequestContext, request: OffsetDeleteRequest, version: int) -> Answer:
    known = [topic for topic in request.topics if topic.name in broker.image.topics_by_name]
    refused = [_refused(topic) for topic in request.topics if topic.name not in broker.image.topics_by_name]
    if not known:
        return OffsetDeleteResponse(topics=refused)
    answer = broker.groups.ask(request.group_id, OffsetDeleteRequest(group_id=request.group_id, topics=known), version, context)
    if not refused:
        return answer
    return _merged_later(answer, refused) if asyncio.isfuture(answer) else _merged(answer, refused)


def _refused(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(name=topic.name, partitions=[
        OffsetDeleteResponsePartition(partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for partition in topic.partitions])


def _merged(answer: OffsetDeleteResponse, refused: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    """Where the group is refused as a whole, nothing is said of topics."""
    return answer if answer.error_code else OffsetDeleteResponse(topics=[*refused, *answer.topics])


async def _merged_later(answer: "asyncio.Future[Any]", refused: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    return _merged(await answer, refused)
