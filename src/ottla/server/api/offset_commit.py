"""OffsetCommit (key 8), versions 2–10: how far a group has come. Topics by id from version 10 on (KIP-848).

Topics and partitions that do not exist are answered here; what is left goes to the group's shard.
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
    refused: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        found: TopicImage | None
        if version >= TOPIC_IDS_MIN_VERSION:
            found = image.topics_by_id.get(topic.topic_id)
            if found is None:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            topic.name = found.name
        else:
            found = image.topics_by_name.get(topic.name)
            if found is None:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            topic.topic_id = found.topic_id
        for partition in topic.partitions:
            if partition.partition_index not in found.partitions:
                _keep_existing(topic, found, refused)
                break
        if topic.partitions:
            known.append(topic)
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known
    answer = broker.group_coordinator.dispatch(request.group_id, request, version, context)
    if not refused:
        return answer
    return _merged_later(answer, refused) if asyncio.isfuture(answer) else _merged(answer, refused)


def _keep_existing(
    topic: OffsetCommitRequestTopic, found: TopicImage, refused: list[OffsetCommitResponseTopic]
) -> None:
    missing = [partition for partition in topic.partitions if partition.partition_index not in found.partitions]
    refused.append(
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


def _refused(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[OffsetCommitResponsePartition(partition.partition_index, error) for partition in topic.partitions],
    )


def _merged(answer: OffsetCommitResponse, refused: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    """Each topic once, with what was refused before what was decided."""
    topics = {(topic.name, topic.topic_id): topic for topic in refused}
    for topic in answer.topics:
        before = topics.setdefault((topic.name, topic.topic_id), topic)
        if before is not topic:
            before.partitions += topic.partitions
    return OffsetCommitResponse(topics=list(topics.values()))


async def _merged_later(
    answer: "asyncio.Future[Any]", refused: list[OffsetCommitResponseTopic]
) -> OffsetCommitResponse:
    return _merged(await answer, refused)
