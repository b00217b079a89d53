"""OffsetCommit (key 8), versions 2–10: commit the offsets of a group. Topics by id from version 10 on (KIP-848).

Topics and partitions that do not exist get an error here; the others are passed to the group's shard.
"""

import asyncio
from typing import Any

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.image import TopicImage
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

REQUEST = OffsetCommitRequest
TOPIC_IDS_MIN_VERSION = 10


def handle(broker: Broker, context: RequestContext, request: OffsetCommitRequest, version: int) -> ResponseOrFuture:
    image = broker.image
    errors: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        found: TopicImage | None
        if version >= TOPIC_IDS_MIN_VERSION:
            found = image.topics_by_id.get(topic.topic_id)
            if found is None:
                errors.append(_error(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            topic.name = found.name
        else:
            found = image.topics_by_name.get(topic.name)
            if found is None:
                errors.append(_error(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            topic.topic_id = found.topic_id
        for partition in topic.partitions:
            if partition.partition_index not in found.partitions:
                _keep_existing(topic, found, errors)
                break
        if topic.partitions:
            known.append(topic)
    if not known:
        return OffsetCommitResponse(topics=errors)
    request.topics = known
    response = broker.group_coordinator.dispatch(request.group_id, request, version, context)
    if not errors:
        return response
    return _merged_later(response, errors) if asyncio.isfuture(response) else _merged(response, errors)


def _keep_existing(topic: OffsetCommitRequestTopic, found: TopicImage, errors: list[OffsetCommitResponseTopic]) -> None:
    missing = [partition for partition in topic.partitions if partition.partition_index not in found.partitions]
    errors.append(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for partition in missing
            ],
        )
    )
    topic.partitions = [partition for partition in topic.partitions if partition.partition_index in found.partitions]


def _error(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[OffsetCommitResponsePartition(partition.partition_index, error) for partition in topic.partitions],
    )


def _merged(response: OffsetCommitResponse, errors: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    """Merge the topics of both, each topic once, with errors first."""
    topics = {(topic.name, topic.topic_id): topic for topic in errors}
    for topic in response.topics:
        before = topics.setdefault((topic.name, topic.topic_id), topic)
        if before is not topic:
            before.partitions += topic.partitions
    return OffsetCommitResponse(topics=list(topics.values()))


async def _merged_later(
    response: "asyncio.Future[Any]", errors: list[OffsetCommitResponseTopic]
) -> OffsetCommitResponse:
    return _merged(await response, errors)
