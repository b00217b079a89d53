"""CreatePartitions, and records of new partitions for manual or automatic replica assignments."""

from collections.abc import Sequence
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Rng
from ottla.controller.placement import default_directory, place_replicas
from ottla.controller.settings import RECORDS_PER_REQUEST_MAX, ControllerSettings
from ottla.metadata.image import ClusterImage, LeaderRecovery
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.records.metadata import PartitionRecord


def place_new_partitions(
    image: ClusterImage, topic_id: Uuid, first: int, count: int, factor: int, rng: Rng
) -> list[PartitionRecord]:
    """Return records of new partitions on brokers chosen by the placement."""
    placements = place_replicas(image.brokers.values(), count, factor, rng)
    return [
        new_partition_record(image, topic_id, first + number, replicas) for number, replicas in enumerate(placements)
    ]


def new_partition_record(image: ClusterImage, topic_id: Uuid, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """Return the record of a new partition. All active replicas are in the ISR, since the log is empty."""
    isr = [broker_id for broker_id in replicas if image.brokers[broker_id].active]
    if not isr:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "all chosen brokers are fenced or shutting down")
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_recovery_state=LeaderRecovery.RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
        directories=[default_directory(image.brokers[broker_id]) for broker_id in replicas],
    )


def check_assignment(image: ClusterImage, index: int, replicas: Sequence[int], factor: int | None) -> None:
    """Raise ApiError unless the brokers are registered, distinct, `factor` in number, and one is active."""

    def invalid(reason: str) -> ApiError:
        return ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"invalid replica assignment for partition {index}: {reason}"
        )

    if not replicas:
        raise invalid("no brokers")
    before = None
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise invalid(f"broker {broker_id} is not registered")
        if broker_id == before:
            raise invalid(f"broker {broker_id} is listed twice")
        before = broker_id
    if factor is not None and len(replicas) != factor:
        raise invalid(f"{len(replicas)} replicas, but the other partitions have {factor}")
    if not any(image.brokers[broker_id].active for broker_id in replicas):
        raise invalid("all brokers are fenced or shutting down")


def create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, settings: ControllerSettings, rng: Rng
) -> Decision:
    """Each topic succeeds or fails on its own. Duplicate topics come first in the response, once each."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
    results = [
        CreatePartitionsTopicResult(name, ErrorCode.INVALID_REQUEST, "duplicate topic in request")
        for name, count in counts.items()
        if count > 1
    ]
    records: list[Any] = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            continue
        try:
            added = _added_partitions(image, topic, rng, records_left=RECORDS_PER_REQUEST_MAX - len(records))
        except ApiError as error:
            results.append(CreatePartitionsTopicResult(topic.name, error.code, error.message))
        else:
            records += added
            results.append(CreatePartitionsTopicResult(topic.name, ErrorCode.NONE, None))
    return Decision(() if request.validate_only else tuple(records), CreatePartitionsResponse(0, results))


def _added_partitions(
    image: ClusterImage, topic: CreatePartitionsTopic, rng: Rng, *, records_left: int
) -> list[PartitionRecord]:
    known = image.topics_by_name.get(topic.name)
    if known is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    existing = len(known.partitions)
    added = topic.count - existing
    if added <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"{topic.name} already has {existing} partitions; the new count must be larger, got {topic.count}",
        )
    if topic.assignments is not None and len(topic.assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partitions to add, but {len(topic.assignments)} replica assignments",
        )
    if added > records_left:
        # As in Kafka, whose controller exceeds its own limit here and responds without a message.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    factor = len(next(iter(known.partitions.values())).replicas)
    if topic.assignments is None:
        return place_new_partitions(image, known.topic_id, existing, added, factor, rng)
    for number, assignment in enumerate(topic.assignments):
        check_assignment(image, existing + number, assignment.broker_ids, factor)
    return [
        new_partition_record(image, known.topic_id, existing + number, assignment.broker_ids)
        for number, assignment in enumerate(topic.assignments)
    ]
