"""OffsetFetch (key 9), versions 1–10: the committed offsets of groups. Several groups from version 8 on (KIP-709),
topics by id from 10 on.

Each group is passed to its own shard. Unknown topic names are looked up, too: offsets may outlive their topic.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID
from ottla.metadata.image import ClusterImage
from ottla.runtime.broker import Broker
from ottla.runtime.group_coordinator import ResponseOrFuture, combine_responses
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

REQUEST = OffsetFetchRequest
GROUP_ERROR_MIN_VERSION = 2
GROUPS_MIN_VERSION = 8
TOPIC_IDS_MIN_VERSION = 10
NO_OFFSET = -1
NO_EPOCH = -1


def handle(broker: Broker, context: RequestContext, request: OffsetFetchRequest, version: int) -> ResponseOrFuture:
    if version >= GROUPS_MIN_VERSION:
        groups = request.groups
    else:
        topics = (
            None
            if request.topics is None
            else [
                OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
                for topic in request.topics
            ]
        )
        groups = [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]
    image = broker.image
    unknown = {}
    if version >= TOPIC_IDS_MIN_VERSION:
        unknown = {at: _take_unknown(image, group) for at, group in enumerate(groups)}
    pending = []
    for group in groups:
        requested = OffsetFetchRequest(groups=[group], require_stable=request.require_stable)
        pending.append(broker.group_coordinator.dispatch(group.group_id, requested, version, context))

    def combine(responses: list[OffsetFetchResponse]) -> OffsetFetchResponse:
        found = [response.groups[0] for response in responses]
        if version >= TOPIC_IDS_MIN_VERSION:
            for at, group in enumerate(found):
                group.topics = [topic for topic in group.topics if _has_id(image, topic)]
                if not group.error_code:
                    group.topics += unknown[at]
        return (
            OffsetFetchResponse(groups=found) if version >= GROUPS_MIN_VERSION else _older(found[0], groups[0], version)
        )

    return combine_responses(pending, combine)


def _take_unknown(image: ClusterImage, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Remove topics with unknown ids from the request, and return their errors; set the names of the others."""
    unknown, known = [], []
    for topic in group.topics or ():
        found = image.topics_by_id.get(topic.topic_id)
        if found is None:
            unknown.append(
                OffsetFetchResponseTopics(
                    topic_id=topic.topic_id,
                    partitions=[_no_offset(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes],
                )
            )
        else:
            topic.name = found.name
            known.append(topic)
    if group.topics is not None:
        group.topics = known
    return unknown


def _no_offset(index: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_EPOCH,
        metadata="",
        error_code=error,
    )


def _has_id(image: ClusterImage, topic: OffsetFetchResponseTopics) -> bool:
    """Set the topic's id. Return False for a deleted topic: it has no id, and cannot be in the response."""
    if topic.topic_id == ZERO_UUID:
        found = image.topics_by_name.get(topic.name)
        if found is None:
            return False
        topic.topic_id = found.topic_id
    return True


def _older(group: OffsetFetchResponseGroup, requested: OffsetFetchRequestGroup, version: int) -> OffsetFetchResponse:
    """Convert to a version with a single group. Versions below 2 have the group's error in each partition."""
    if group.error_code and version < GROUP_ERROR_MIN_VERSION:
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[_no_offset(index, ErrorCode(group.error_code)) for index in topic.partition_indexes],
            )
            for topic in requested.topics or ()
        ]
    else:
        topics = group.topics
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
