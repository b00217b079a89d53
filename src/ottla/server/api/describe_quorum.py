"""DescribeQuorum (key 55), versions 0–2: the leader and voters of the metadata log: this node alone."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.base.ids import METADATA_TOPIC
from ottla.runtime.broker import Broker
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
)

REQUEST = DescribeQuorumRequest
NODES_MIN_VERSION = 2
TopicData = DescribeQuorumResponse.TopicData
PartitionData = TopicData.PartitionData


def handle(
    broker: Broker, context: RequestContext, request: DescribeQuorumRequest, version: int
) -> DescribeQuorumResponse:
    requested = [(topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in request.topics]
    if requested == [(METADATA_TOPIC, [0])]:
        return _described(broker, version)
    return DescribeQuorumResponse(
        topics=[
            TopicData(topic_name=name, partitions=[_unknown(index) for index in indexes]) for name, indexes in requested
        ]
    )


def _unknown(index: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=f"only partition 0 of {METADATA_TOPIC} can be described, and in a request of its own",
    )


def _described(broker: Broker, version: int) -> DescribeQuorumResponse:
    node_id, now_ms = broker.settings.node_id, broker.clock.now_ms()
    state = broker.controller.quorum()
    leader = ReplicaState(
        replica_id=node_id,
        log_end_offset=state.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = PartitionData(
        leader_id=node_id, leader_epoch=state.epoch, high_watermark=state.high_watermark, current_voters=[leader]
    )
    response = DescribeQuorumResponse(topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])
    if version < NODES_MIN_VERSION:
        return response
    registered = broker.image.controllers.get(node_id)
    listeners = [] if registered is None else [Listener(*endpoint[:3]) for endpoint in registered.endpoints.values()]
    response.nodes = [Node(node_id=node_id, listeners=listeners)]
    return response
