"""CreateTopics: complete decisions. The error codes were recorded from Apache Kafka 4.3."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import METADATA_TOPIC, ZERO_UUID, Uuid
from ottla.metadata.configs import ConfigSource
from ottla.metadata.image import ResourceType
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.records.metadata import ConfigRecord, PartitionRecord, TopicRecord

VISIBLE_TOPIC_CONFIGS = 33


def topic(name: str, partitions: int = -1, factor: int = -1, **more: Any) -> CreatableTopic:
    return CreatableTopic(name, partitions, factor, **more)


def assigned(*partitions: tuple[int, list[int]]) -> list[CreatableReplicaAssignment]:
    return [CreatableReplicaAssignment(index, brokers) for index, brokers in partitions]


def configs(*pairs: tuple[str, str | None]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name, value) for name, value in pairs]


def request(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(list(topics), 5000, validate_only)


def outcomes(decision: Decision) -> list[tuple[str, int, bool]]:
    """Return name, error code and whether there is a message; message texts differ from Kafka's."""
    return [(result.name, result.error_code, result.error_message is not None) for result in decision.response.topics]


def test_create_topic_with_defaults(
    cluster: Any, new_topic_id: Callable[[int], Uuid], dir_id: Callable[[int], Uuid]
) -> None:
    """One partition, one replica, in the broker's only directory."""
    decision = cluster.do(request(topic("a")))
    created = new_topic_id(1)
    assert decision.records == (
        TopicRecord("a", created),
        PartitionRecord(
            partition_id=0,
            topic_id=created,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[dir_id(1)],
        ),
    )
    (result,) = decision.response.topics
    assert len(result.configs) == VISIBLE_TOPIC_CONFIGS
    result.configs = []
    assert decision.response == CreateTopicsResponse(
        0,
        [
            CreatableTopicResult(
                name="a", topic_id=created, error_code=0, error_message=None, num_partitions=1, replication_factor=1
            )
        ],
    )
    assert list(cluster.image.topics_by_name) == ["a"]


def test_records_are_in_kafkas_order(cluster: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    """Topic, configs in request order, partitions; the last value of a repeated config wins."""
    pairs = configs(("retention.ms", "7"), ("cleanup.policy", "compact"), ("retention.ms", "8"))
    decision = cluster.do(request(topic("a", 2, 1, configs=pairs)))
    created = new_topic_id(1)
    assert decision.records[:3] == (
        TopicRecord("a", created),
        ConfigRecord(ResourceType.TOPIC, "a", "retention.ms", "8"),
        ConfigRecord(ResourceType.TOPIC, "a", "cleanup.policy", "compact"),
    )
    assert [(type(record), record.partition_id) for record in decision.records[3:]] == [
        (PartitionRecord, 0),
        (PartitionRecord, 1),
    ]
    shown = {entry.name: (entry.value, entry.config_source) for entry in decision.response.topics[0].configs}
    assert [entry.name for entry in decision.response.topics[0].configs] == sorted(shown)
    assert shown["retention.ms"] == ("8", ConfigSource.TOPIC)
    assert shown["cleanup.policy"] == ("compact", ConfigSource.TOPIC)
    # With eligible leader replicas this config is in the metadata log, for all brokers.
    assert shown["min.insync.replicas"] == ("1", ConfigSource.DYNAMIC_CLUSTER)
    assert shown["segment.bytes"] == ("1073741824", ConfigSource.DEFAULT)


def test_defaults_from_static_configs(new_controller: Any) -> None:
    cluster = new_controller(num_partitions="3", default_replication_factor="2")
    cluster.add_broker(1)
    cluster.add_broker(2)
    decision = cluster.do(request(topic("a")))
    assert [sorted(record.replicas) for record in decision.records[1:]] == [[1, 2], [1, 2], [1, 2]]
    (result,) = decision.response.topics
    assert (result.num_partitions, result.replication_factor) == (3, 2)


def test_validate_only_has_same_response_and_no_records(cluster: Any) -> None:
    checked = cluster.decide(request(topic("a", 4, 1), validate_only=True))
    cluster.rng.count = 0
    done = cluster.decide(request(topic("a", 4, 1)))
    assert (checked.records, checked.response) == ((), done.response)
    assert len(done.records) == 5


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("ä"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a\0b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(METADATA_TOPIC), ErrorCode.INVALID_REQUEST),
        (topic("n", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (topic("n", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (topic("n", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("n", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("n", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("n", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("n", 10_001, 1), ErrorCode.POLICY_VIOLATION),
        (topic("n", 10_000, 1), ErrorCode.POLICY_VIOLATION),
        (topic("..", 20_000, 1), ErrorCode.POLICY_VIOLATION),
        (topic("n", -1, 1, assignments=assigned((0, [1]))), ErrorCode.INVALID_REQUEST),
        (topic("n", 1, -1, assignments=assigned((0, [1]))), ErrorCode.INVALID_REQUEST),
        (topic("n", assignments=assigned((0, [1]), (0, [1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((0, [1]), (2, [1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((1, [1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((-1, [1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((0, []))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((0, [9]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((0, [1, 1]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", assignments=assigned((0, [1]), (1, [1, 9]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("n", configs=configs(("retention.ms", None))), ErrorCode.INVALID_CONFIG),
        (topic("n", configs=configs(("foo", "1"))), ErrorCode.INVALID_CONFIG),
        (topic("n", configs=configs(("retention.ms", "x"))), ErrorCode.INVALID_CONFIG),
        (topic("n", 0, 1, configs=configs(("retention.ms", "x"))), ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_topic_is_rejected(cluster: Any, requested: CreatableTopic, code: ErrorCode) -> None:
    """Each error has a message, defaults in all other fields, and no records."""
    decision = cluster.decide(request(requested))
    (result,) = decision.response.topics
    assert decision.records == ()
    assert outcomes(decision) == [(requested.name, code, True)]
    assert (result.topic_id, result.num_partitions, result.replication_factor, result.configs) == (
        ZERO_UUID,
        -1,
        -1,
        [],
    )


def test_longest_and_internal_looking_names_are_valid(cluster: Any) -> None:
    decision = cluster.decide(request(topic("a" * 249), topic("__consumer_offsets2")))
    assert outcomes(decision) == [("a" * 249, ErrorCode.NONE, False), ("__consumer_offsets2", ErrorCode.NONE, False)]


def test_replica_assignment(new_controller: Any, dir_id: Callable[[int], Uuid]) -> None:
    """Partitions are sorted by number; the first active replica leads."""
    cluster = new_controller()
    cluster.add_broker(1)
    cluster.register(2)
    decision = cluster.do(request(topic("a", assignments=assigned((1, [2, 1]), (0, [1, 2])))))
    assert [
        (record.partition_id, record.replicas, record.isr, record.leader, record.directories)
        for record in decision.records[1:]
    ] == [
        (0, [1, 2], [1], 1, [dir_id(1), dir_id(2)]),
        (1, [2, 1], [1], 1, [dir_id(2), dir_id(1)]),
    ]
    fenced = cluster.decide(request(topic("b", assignments=assigned((0, [2])))))
    assert outcomes(fenced) == [("b", ErrorCode.INVALID_REPLICA_ASSIGNMENT, True)]


def test_existing_topic_is_rejected(cluster: Any) -> None:
    cluster.do(request(topic("a")))
    assert outcomes(cluster.decide(request(topic("a", 0, 0)))) == [("a", ErrorCode.TOPIC_ALREADY_EXISTS, True)]


def test_colliding_names_are_rejected(cluster: Any) -> None:
    """Metric names do not distinguish dots and underscores. As in Kafka, only existing topics are compared."""
    cluster.do(request(topic("x.col_a")))
    assert outcomes(cluster.decide(request(topic("x_col.a")))) == [("x_col.a", ErrorCode.INVALID_TOPIC_EXCEPTION, True)]
    assert outcomes(cluster.decide(request(topic("x.col_a")))) == [("x.col_a", ErrorCode.TOPIC_ALREADY_EXISTS, True)]
    assert outcomes(cluster.decide(request(topic("y.b"), topic("y_b")))) == [("y.b", 0, False), ("y_b", 0, False)]


def test_duplicate_topic_is_answered_once_and_last(cluster: Any) -> None:
    decision = cluster.do(request(topic("d"), topic("d"), topic("d"), topic("e"), topic(METADATA_TOPIC)))
    assert outcomes(decision) == [
        ("e", ErrorCode.NONE, False),
        ("d", ErrorCode.INVALID_REQUEST, True),
        (METADATA_TOPIC, ErrorCode.INVALID_REQUEST, True),
    ]
    assert [type(record) for record in decision.records] == [TopicRecord, PartitionRecord]


def test_invalid_topic_does_not_affect_others(cluster: Any) -> None:
    cluster.do(request(topic("a")))
    decision = cluster.decide(request(topic("bad", 0), topic("good"), topic("a"), topic("..")))
    assert outcomes(decision) == [
        ("bad", ErrorCode.INVALID_PARTITIONS, True),
        ("good", ErrorCode.NONE, False),
        ("a", ErrorCode.TOPIC_ALREADY_EXISTS, True),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
    ]
    assert [type(record) for record in decision.records] == [TopicRecord, PartitionRecord]


@pytest.mark.parametrize("sizes", [(6000, 6000), (4999, 5000), (-20_000, 10_001)])
def test_request_over_limit_fails_as_a_whole(cluster: Any, sizes: tuple[int, int]) -> None:
    """Too many partitions or too many records. Every topic gets the error, including duplicates."""
    decision = cluster.decide(request(topic("x", sizes[0], 1), topic("y", sizes[1], 1), topic("z"), topic("z")))
    assert decision.records == ()
    assert outcomes(decision) == [(name, ErrorCode.POLICY_VIOLATION, True) for name in "xyzz"]


def test_request_at_limit_succeeds(cluster: Any) -> None:
    """Topics and partitions together make ten thousand records. Duplicate topics do not count."""
    decision = cluster.decide(request(topic("x", 9999, 1), topic("y", 9999, 1), topic("y", 9999, 1)))
    assert outcomes(decision) == [("x", ErrorCode.NONE, False), ("y", ErrorCode.INVALID_REQUEST, True)]
    assert len(decision.records) == 10_000


def test_empty_request_has_empty_response(cluster: Any) -> None:
    assert cluster.decide(request()) == Decision((), CreateTopicsResponse(0, []))


def test_create_topic_without_active_broker_fails(new_controller: Any) -> None:
    cluster = new_controller()
    cluster.register(1)
    assert outcomes(cluster.decide(request(topic("a")))) == [("a", ErrorCode.INVALID_REPLICATION_FACTOR, True)]


def test_several_directories_leave_replica_unassigned(new_controller: Any, dir_id: Callable[[int], Uuid]) -> None:
    """Directory id 1 means unassigned."""
    cluster = new_controller()
    cluster.add_broker(1, log_dirs=(dir_id(1), dir_id(2)))
    decision = cluster.decide(request(topic("a")))
    assert decision.records[1].directories == [Uuid(bytes(15) + b"\x01")]
