"""DescribeProducers (key 61), version 0: the active producers of partitions (KIP-664)."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.topic_names import topic_name_error
from ottla.runtime.broker import Broker
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.wire.schema import SlicedWork

REQUEST = DescribeProducersRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest, version: int
) -> SlicedWork[DescribeProducersResponse]:
    response = DescribeProducersResponse()
    for topic in request.topics:
        described = TopicResponse(name=topic.name)
        for index in topic.partition_indexes:
            described.partitions.append(_described(broker, topic.name, index))
            yield
        response.topics.append(described)
    return response


def _described(broker: Broker, topic: str, index: int) -> PartitionResponse:
    name_error = topic_name_error(topic)
    if name_error is not None:
        return PartitionResponse(
            partition_index=index, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=name_error
        )
    partition = broker.partition(topic, index)
    if partition is None:
        message = None if topic in broker.image.topics_by_name else f"unknown topic {topic!r}"
        return PartitionResponse(
            partition_index=index, error_code=broker.missing_error(topic, index), error_message=message
        )
    active = partition.active_producers()
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=epoch,
                last_sequence=last_sequence,
                last_timestamp=last_timestamp,
                coordinator_epoch=coordinator_epoch,
                current_txn_start_offset=txn_start,
            )
            for producer_id, epoch, last_sequence, last_timestamp, coordinator_epoch, txn_start in active
        ],
    )
