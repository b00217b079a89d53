"""New topics: CreateTopics."""

from collections.abc import Mapping
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import METADATA_TOPIC, Uuid, random_uuid
from ottla.base.ports import Rng
from ottla.controller.configs import new_topic_config_records
from ottla.controller.partitions import check_assignment, new_partition, placed_partitions
from ottla.controller.settings import PARTITIONS_PER_REQUEST_MAX, ControllerSettings, check_record_count
from ottla.metadata.configs.describe import created_topic_configs
from ottla.metadata.image import ClusterImage
from ottla.metadata.topic_names import check_topic_name, collision_key
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.records.metadata import PartitionRecord, TopicRecord


def create_topics(
    image: ClusterImage, request: CreateTopicsRequest, settings: ControllerSettings, rng: Rng
) -> Decision:
    """Each topic stands for itself, except that a request which is too large fails as a whole."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
    alone = [topic for topic in request.topics if counts[topic.name] == 1 and topic.name != METADATA_TOPIC]
    results = []
    records: list[Any] = []
    try:
        _check_partition_count(alone, settings)
        colliding = _collision_keys(image, alone)
        for topic in alone:
            try:
                created, result = _create_topic(image, topic, settings, rng, colliding)
            except ApiError as error:
                results.append(_refused(topic.name, error))
            else:
                records += created
                results.append(result)
                check_record_count(records)
    except ApiError as error:
        return Decision(response=CreateTopicsResponse(0, [_refused(topic.name, error) for topic in request.topics]))
    for name, count in counts.items():
        if count > 1:
            results.append(
                _refused(name, ApiError(ErrorCode.INVALID_REQUEST, "the topic is named more than once in this request"))
            )
        elif name == METADATA_TOPIC:
            results.append(
                _refused(name, ApiError(ErrorCode.INVALID_REQUEST, f"{METADATA_TOPIC} is the cluster's own log"))
            )
    return Decision(() if request.validate_only else tuple(records), CreateTopicsResponse(0, results))


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _check_partition_count(topics: list[CreatableTopic], settings: ControllerSettings) -> None:
    asked = 0
    for topic in topics:
        if topic.assignments:
            asked += len(topic.assignments)
        else:
            asked += settings.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)
    if asked > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request asks for {asked} partitions; {PARTITIONS_PER_REQUEST_MAX} are allowed at once: split it into several",
        )


def _collision_keys(image: ClusterImage, topics: list[CreatableTopic]) -> Mapping[str, str]:
    """Existing topics by collision key, looked for only when a new name could collide. New ones are not compared with each other."""
    if not any(collision_key(topic.name) for topic in topics):
        return {}
    keys = {}
    for name in image.topics_by_name:
        key = collision_key(name)
        if key is not None:
            keys[key] = name
    return keys


def _create_topic(
    image: ClusterImage, topic: CreatableTopic, settings: ControllerSettings, rng: Rng, colliding: Mapping[str, str]
) -> tuple[list[Any], CreatableTopicResult]:
    """The topic's records, in the order that Kafka writes them: the topic, its configs, its partitions."""
    if topic.name in image.topics_by_name:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"the topic {topic.name!r} exists already")
    check_topic_name(topic.name)
    key = collision_key(topic.name)
    if key is not None and key in colliding:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic.name!r} differs from the existing topic {colliding[key]!r} in '.' and '_' only, and their metrics would be mixed up",
        )
    overrides, config_records = new_topic_config_records(image, topic, settings)
    topic_id = random_uuid(rng)
    partitions = _partitions(image, topic, topic_id, settings, rng)
    configs = [
        CreatableTopicConfigs(
            entry.name, None if entry.is_sensitive else entry.value, entry.read_only, entry.source, entry.is_sensitive
        )
        for entry in created_topic_configs(overrides, settings.layers(image))
    ]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=configs,
    )
    return [TopicRecord(topic.name, topic_id), *config_records, *partitions], result


def _partitions(
    image: ClusterImage, topic: CreatableTopic, topic_id: Uuid, settings: ControllerSettings, rng: Rng
) -> list[PartitionRecord]:
    if topic.assignments:
        if topic.replication_factor != -1 or topic.num_partitions != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "with partitions assigned by hand, their number and the replication factor must be -1",
            )
        return _assigned_partitions(image, topic.assignments, topic_id)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "the replication factor must be above 0, or -1 for the default"
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "the number of partitions must be above 0, or -1 for the default")
    count = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = settings.replication_factor if topic.replication_factor == -1 else topic.replication_factor
    return placed_partitions(image, topic_id, 0, count, factor, rng)


def _assigned_partitions(
    image: ClusterImage, assignments: list[CreatableReplicaAssignment], topic_id: Uuid
) -> list[PartitionRecord]:
    by_index: dict[int, list[int]] = {}
    factor = None
    for assignment in assignments:
        index = assignment.partition_index
        if index in by_index:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned twice")
        check_assignment(image, index, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        by_index[index] = assignment.broker_ids
    if sorted(by_index) != list(range(len(by_index))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the partitions assigned by hand must be numbered 0, 1, 2 and so on"
        )
    return [new_partition(image, topic_id, index, by_index[index]) for index in sorted(by_index)]
