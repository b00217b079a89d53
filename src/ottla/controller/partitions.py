"""New partitions: assignments by hand are checked, others are placed; either becomes a record. CreatePartitions is decided here."""

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
    """Records of new partitions where the placement chooses the brokers."""
    placements = place_replicas(image.brokers.values(), count, factor, rng)
    return [
        new_partition_record(image, topic_id, first + number, replicas) for number, replicas in enumerate(placements)
    ]


def new_partition_record(image: ClusterImage, topic_id: Uuid, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """All replicas that are active start in sync, as there is nothing yet to be behind with."""
    isr = [broker_id for broker_id in replicas if image.brokers[broker_id].active]
    if not isr:
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "every chosen broker is fenced or shutting down")
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
    """ApiError unless these brokers can hold a partition: registered, each once, as many as its siblings have, one of them active."""

    def refuse(why: str) -> ApiError:
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {index} cannot be assigned by hand: {why}")

    if not replicas:
        raise refuse("no brokers are named")
    before = None
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise refuse(f"broker {broker_id} is not registered")
        if broker_id == before:
            raise refuse(f"broker {broker_id} is named twice")
        before = broker_id
    if factor is not None and len(replicas) != factor:
        raise refuse(f"it would have {len(replicas)} replicas, the others have {factor}")
    if not any(image.brokers[broker_id].active for broker_id in replicas):
        raise refuse("all brokers named are fenced or shutting down")


def create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, settings: ControllerSettings, rng: Rng
) -> Decision:
    """Topics that are named twice are answered first and once; each other topic stands for itself."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
    results = [
        CreatePartitionsTopicResult(
            name, ErrorCode.INVALID_REQUEST, "the topic is named more than once in this request"
        )
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
    have = len(known.partitions)
    added = topic.count - have
    if added <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"{topic.name} has {have} partitions already, and {topic.count} are not more"
        )
    if topic.assignments is not None and len(topic.assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partitions would be added, but {len(topic.assignments)} are assigned by hand",
        )
    if added > records_left:
        # Kafka's controller runs into its limit here and answers that it failed, without a message.
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    factor = len(next(iter(known.partitions.values())).replicas)
    if topic.assignments is None:
        return place_new_partitions(image, known.topic_id, have, added, factor, rng)
    for number, assignment in enumerate(topic.assignments):
        check_assignment(image, have + number, assignment.broker_ids, factor)
    return [
        new_partition_record(image, known.topic_id, have + number, assignment.broker_ids)
        for number, assignment in enumerate(topic.assignments)
    ]
