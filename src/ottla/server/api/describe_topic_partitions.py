"""DescribeTopicPartitions (key 75), version 0: topics by name, with their partitions, in pages (KIP-966).

A page has at most as many partitions as the request allows, and `max.request.partition.size.limit`; the cursor is
where the next page starts. An empty list of names requests all topics.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.metadata.topic_names import INTERNAL_TOPICS, topic_name_error
from ottla.runtime.broker import Broker
from ottla.runtime.configs import config_value
from ottla.server.api.metadata import TOPIC_OPERATIONS
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.schema import SlicedWork

REQUEST = DescribeTopicPartitionsRequest
PAGE_LIMIT = "max.request.partition.size.limit"


def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest, version: int
) -> DescribeTopicPartitionsResponse | SlicedWork[DescribeTopicPartitionsResponse]:
    image, cursor = broker.image, request.cursor
    start = cursor.topic_name if cursor is not None else ""
    requested = {topic.name: None for topic in request.topics} or image.topics_by_name
    names = sorted(name for name in requested if name >= start)
    if cursor is not None and (cursor.partition_index < 0 or (request.topics and start not in requested)):
        return _rejected(request, ErrorCode.INVALID_REQUEST)
    if request.topics and "" in names:
        return _rejected(request, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, which fails on an empty name
    allowed = config_value(broker, PAGE_LIMIT)
    assert isinstance(allowed, int), allowed
    remaining = max(min(allowed, request.response_partition_limit), 1)
    return _page(broker, names, cursor, remaining)


def _page(
    broker: Broker, names: list[str], cursor: Cursor | None, remaining: int
) -> SlicedWork[DescribeTopicPartitionsResponse]:
    image = broker.image
    start = cursor.topic_name if cursor is not None else ""
    response = DescribeTopicPartitionsResponse()
    for name in names:
        first = cursor.partition_index if cursor is not None and name == start else 0
        if remaining <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        topic = image.topics_by_name.get(name)
        if topic is None:
            response.topics.append(_missing(name))
        else:
            indexes = [index for index in topic.partitions if index >= first]
            response.topics.append(_topic(image, topic, indexes[:remaining]))
            if len(indexes) > remaining:
                response.next_cursor = Cursor(topic_name=name, partition_index=indexes[remaining])
                break
            remaining -= len(indexes)
        yield
    return response


def _rejected(request: DescribeTopicPartitionsRequest, error: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=error, name=topic.name) for topic in request.topics]
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic_name_error(name) is None else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, is_internal=name in INTERNAL_TOPICS, topic_authorized_operations=TOPIC_OPERATIONS
    )


def _topic(image: ClusterImage, topic: TopicImage, indexes: list[int]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, topic.partitions[index]) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(image: ClusterImage, index: int, partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if partition.leader != NO_LEADER else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=image.offline_replicas(partition),
    )
