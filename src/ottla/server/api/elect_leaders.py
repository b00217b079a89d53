"""ElectLeaders (key 43), versions 0–2: the preferred leader, or from version 1 on any that is left.

A node alone leads what it has, so nothing is elected: partitions are told that no election was needed. No names ask for all topics,
of which only those partitions are told about that needed one.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.image import NO_LEADER, ClusterImage
from ottla.runtime.broker import Broker
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

REQUEST = ElectLeadersRequest
PREFERRED, UNCLEAN = 0, 1
ERROR_FROM = 1


def handle(broker: Broker, context: RequestContext, request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
    image = broker.image
    if request.election_type not in (PREFERRED, UNCLEAN):
        message = f"there is no election of type {request.election_type}: 0 is for the preferred leader, 1 is unclean"
        return _refused(request, version, ErrorCode.INVALID_REQUEST, message)
    if request.timeout_ms <= 0:
        return _refused(request, version, ErrorCode.REQUEST_TIMED_OUT, None)
    if request.topic_partitions is None:
        results = [
            ReplicaElectionResult(
                topic=name,
                partition_result=[
                    result
                    for index in topic.partitions
                    if (result := _result(image, name, index, request.election_type)).error_code
                    != ErrorCode.ELECTION_NOT_NEEDED
                ],
            )
            for name, topic in image.topics_by_name.items()
        ]
    else:
        results = [
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    _result(image, topic.topic, index, request.election_type) for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions
        ]
    return ElectLeadersResponse(replica_election_results=results)


def _result(image: ClusterImage, name: str, index: int, election_type: int) -> PartitionResult:
    topic = image.topics_by_name.get(name)
    partition = None if topic is None else topic.partitions.get(index)
    if partition is None:
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
    if partition.leader == NO_LEADER and election_type == UNCLEAN:
        return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "none of its replicas is there")
    if election_type == PREFERRED and partition.leader != partition.replicas[0]:
        return PartitionResult(
            index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"broker {partition.replicas[0]} cannot lead it now"
        )
    return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader} leads it already")


def _refused(request: ElectLeadersRequest, version: int, error: ErrorCode, message: str | None) -> ElectLeadersResponse:
    response = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[PartitionResult(index, error, message) for index in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ]
    )
    if version >= ERROR_FROM:
        response.error_code = error
    return response
