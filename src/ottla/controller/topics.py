"""CreateTopics and DeleteTopics."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import METADATA_TOPIC, ZERO_UUID, Uuid, random_uuid
from ottla.base.ports import Rng
from ottla.controller.configs import new_topic_config_records
from ottla.controller.partitions import check_assignment, new_partition_record, place_new_partitions
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
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.records.metadata import PartitionRecord, RemoveTopicRecord, TopicRecord


def create_topics(
    image: ClusterImage, request: CreateTopicsRequest, settings: ControllerSettings, rng: Rng
) -> Decision:
    """Each topic succeeds or fails on its own, but a request that is too large fails as a whole."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
    unique = [topic for topic in request.topics if counts[topic.name] == 1 and topic.name != METADATA_TOPIC]
    results = []
    records: list[Any] = []
    try:
        _check_partition_count(unique, settings)
        colliding = _collision_keys(image, unique)
        for topic in unique:
            try:
                created, result = _create_topic(image, topic, settings, rng, colliding)
            except ApiError as error:
                results.append(_creation_error(topic.name, error))
            else:
                records += created
                results.append(result)
                check_record_count(records)
    except ApiError as error:
        return Decision(
            response=CreateTopicsResponse(0, [_creation_error(topic.name, error) for topic in request.topics])
        )
    for name, count in counts.items():
        if count > 1:
            results.append(_creation_error(name, ApiError(ErrorCode.INVALID_REQUEST, "duplicate topic in request")))
        elif name == METADATA_TOPIC:
            results.append(
                _creation_error(
                    name, ApiError(ErrorCode.INVALID_REQUEST, f"cannot create {METADATA_TOPIC}: it is the metadata log")
                )
            )
    return Decision(() if request.validate_only else tuple(records), CreateTopicsResponse(0, results))


def _creation_error(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _check_partition_count(topics: list[CreatableTopic], settings: ControllerSettings) -> None:
    requested = 0
    for topic in topics:
        if topic.assignments:
            requested += len(topic.assignments)
        else:
            requested += settings.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)
    if requested > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"request would create {requested} partitions; the limit is {PARTITIONS_PER_REQUEST_MAX}",
        )


def _collision_keys(image: ClusterImage, topics: list[CreatableTopic]) -> Mapping[str, str]:
    """Return existing topics by collision key if a new name could collide.

    New topics are not compared with each other.
    """
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
    """Return the topic's records in Kafka's order: the topic, its configs, its partitions."""
    if topic.name in image.topics_by_name:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {topic.name!r} already exists")
    check_topic_name(topic.name)
    key = collision_key(topic.name)
    if key is not None and key in colliding:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic.name!r} collides with the existing topic {colliding[key]!r}: they differ only in '.' and '_'",
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
                "with replica assignments, partition count and replication factor must be -1",
            )
        return _assigned_partitions(image, topic.assignments, topic_id)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "replication factor must be above 0, or -1 for the default"
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "partition count must be above 0, or -1 for the default")
    count = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = settings.replication_factor if topic.replication_factor == -1 else topic.replication_factor
    return place_new_partitions(image, topic_id, 0, count, factor, rng)


def _assigned_partitions(
    image: ClusterImage, assignments: list[CreatableReplicaAssignment], topic_id: Uuid
) -> list[PartitionRecord]:
    by_index: dict[int, list[int]] = {}
    factor = None
    for assignment in assignments:
        index = assignment.partition_index
        if index in by_index:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"duplicate replica assignment for partition {index}")
        check_assignment(image, index, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        by_index[index] = assignment.broker_ids
    if sorted(by_index) != list(range(len(by_index))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "replica assignments must be for partitions 0, 1, 2 and so on"
        )
    return [new_partition_record(image, topic_id, index, by_index[index]) for index in sorted(by_index)]


def delete_topics(image: ClusterImage, request: DeleteTopicsRequest, settings: ControllerSettings) -> Decision:
    """Delete topics by name or id. Duplicates are rejected.

    For versions before 3 the caller replaces TOPIC_DELETION_DISABLED by INVALID_REQUEST.
    """
    if not settings.delete_topic_enable:
        return _fail_all_deletions(request, ApiError(ErrorCode.TOPIC_DELETION_DISABLED))
    names, ids, results = _count_topics(request)
    to_delete: dict[Uuid, str] = {}
    for topic_id, count in ids.items():
        known = image.topics_by_id.get(topic_id)
        if count > 1:
            results.append(_deletion_error(None, topic_id, "duplicate topic id in request"))
        elif known is None:
            results.append(DeletableTopicResult(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "unknown topic id"))
        else:
            to_delete[topic_id] = known.name
    for name, count in names.items():
        known = image.topics_by_name.get(name)
        if count > 1:
            results.append(_deletion_error(name, ZERO_UUID, "duplicate topic name in request"))
        elif known is None:
            results.append(
                DeletableTopicResult(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic does not exist")
            )
        elif known.topic_id in ids:
            to_delete.pop(known.topic_id, None)
            results.append(
                _deletion_error(name, known.topic_id, "topic is named both by name and by id in this request")
            )
        else:
            to_delete[known.topic_id] = name
    records: list[Any] = [RemoveTopicRecord(topic_id) for topic_id in to_delete]
    try:
        check_record_count(records)
    except ApiError as error:
        return _fail_all_deletions(request, error)
    results += [DeletableTopicResult(name, topic_id, ErrorCode.NONE) for topic_id, name in to_delete.items()]
    return Decision(tuple(records), DeleteTopicsResponse(0, results))


def _count_topics(request: DeleteTopicsRequest) -> tuple[Counter[str], Counter[Uuid], list[DeletableTopicResult]]:
    """Count each name and id. Topics with both or neither are rejected."""
    names = Counter(request.topic_names)
    ids: Counter[Uuid] = Counter()
    rejected = []
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            rejected.append(_deletion_error(topic.name, topic.topic_id, "topic has both name and id; expected one"))
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] += 1
        else:
            rejected.append(_deletion_error(None, ZERO_UUID, "topic has neither name nor id"))
    return names, ids, rejected


def _deletion_error(name: str | None, topic_id: Uuid, reason: str) -> DeletableTopicResult:
    return DeletableTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, reason)


def _fail_all_deletions(request: DeleteTopicsRequest, error: ApiError) -> Decision:
    """Return the error for every topic in the request, including duplicates."""
    results = [DeletableTopicResult(name, ZERO_UUID, error.code, error.message) for name in request.topic_names]
    results += [DeletableTopicResult(topic.name, topic.topic_id, error.code, error.message) for topic in request.topics]
    return Decision(response=DeleteTopicsResponse(0, results))
