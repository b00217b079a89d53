"""ElectLeaders (key 43), versions 0–2: elect the preferred leader, or from version 1 on any replica that is left.

A single node leads all of its partitions, so they get ELECTION_NOT_NEEDED. Null requests all partitions, and returns
those that need an election.
"""

from collections.abc import Iterable, Sequence

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.metadata.image import NO_LEADER, ClusterImage
from ottla.runtime.broker import Broker
from ottla.runtime.slice_scheduler import in_pieces
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.schema import SlicedWork

REQUEST = ElectLeadersRequest
PREFERRED, UNCLEAN = 0, 1
ERROR_MIN_VERSION = 1


def handle(
    broker: Broker, context: RequestContext, request: ElectLeadersRequest, version: int
) -> ElectLeadersResponse | SlicedWork[ElectLeadersResponse]:
    if request.election_type not in (PREFERRED, UNCLEAN):
        message = f"unsupported election type {request.election_type}; supported are 0 (preferred) and 1 (unclean)"
        return _rejected(request, version, ErrorCode.INVALID_REQUEST, message)
    if request.timeout_ms <= 0:
        return _rejected(request, version, ErrorCode.REQUEST_TIMED_OUT, None)
    return _elect(broker.image, request)


def _elect(image: ClusterImage, request: ElectLeadersRequest) -> SlicedWork[ElectLeadersResponse]:
    requested: Iterable[tuple[str, Sequence[int]]]
    if request.topic_partitions is None:
        requested = [(name, list(topic.partitions)) for name, topic in image.topics_by_name.items()]
    else:
        requested = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    response = ElectLeadersResponse()
    for name, indexes in requested:
        elected = ReplicaElectionResult(topic=name)
        for some in in_pieces(indexes):
            results = [_result(image, name, index, request.election_type) for index in some]
            if request.topic_partitions is None:
                results = [result for result in results if result.error_code != ErrorCode.ELECTION_NOT_NEEDED]
            elected.partition_result += results
            yield
        response.replica_election_results.append(elected)
    return response


def _result(image: ClusterImage, name: str, index: int, election_type: int) -> PartitionResult:
    topic = image.topics_by_name.get(name)
    partition = None if topic is None else topic.partitions.get(index)
    if partition is None:
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"unknown partition {name}-{index}")
    if partition.leader == NO_LEADER and election_type == UNCLEAN:
        return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is online")
    if election_type == PREFERRED and partition.leader != partition.replicas[0]:
        return PartitionResult(
            index,
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"preferred leader {partition.replicas[0]} is not available",
        )
    return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, f"broker {partition.leader} is the leader already")


def _rejected(
    request: ElectLeadersRequest, version: int, error: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    response = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[PartitionResult(index, error, message) for index in topic.partitions],
            )
            for topic in request.topic_partitions or ()
        ]
    )
    if version >= ERROR_MIN_VERSION:
        response.error_code = error
    return response
