"""DeleteTopics and CreatePartitions. The error codes were recorded from Apache Kafka 4.3."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.records.metadata import PartitionRecord, RemoveTopicRecord


@pytest.fixture
def topics(cluster: Any) -> Any:
    """Topics a (id 1) and b (id 2), two partitions each."""
    cluster.do(CreateTopicsRequest([CreatableTopic("a", 2, 1), CreatableTopic("b", 2, 1)]))
    return cluster


def delete(*topics: tuple[str | None, Uuid], names: tuple[str, ...] = ()) -> DeleteTopicsRequest:
    return DeleteTopicsRequest([DeleteTopicState(name, topic_id) for name, topic_id in topics], list(names), 5000)


def deletions(decision: Decision) -> list[tuple[str | None, bytes, int, bool]]:
    return [
        (result.name, result.topic_id, result.error_code, result.error_message is not None)
        for result in decision.response.responses
    ]


def test_delete_by_name_and_by_id(topics: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    first, second = new_topic_id(1), new_topic_id(2)
    decision = topics.do(delete(("a", ZERO_UUID), (None, second)))
    assert decision == Decision(
        (RemoveTopicRecord(second), RemoveTopicRecord(first)),
        DeleteTopicsResponse(
            0, [DeletableTopicResult("b", second, 0, None), DeletableTopicResult("a", first, 0, None)]
        ),
    )
    assert topics.image.topics_by_name == topics.image.topics_by_id == {}


def test_delete_in_old_versions(topics: Any, new_topic_id: Callable[[int], Uuid]) -> None:
    decision = topics.decide(delete(names=("zz", "zz", "a")))
    assert deletions(decision) == [
        ("zz", ZERO_UUID, ErrorCode.INVALID_REQUEST, True),
        ("a", new_topic_id(1), ErrorCode.NONE, False),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("zz", 0)], [("zz", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([("", 0)], [("", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([("..", 0)], [("..", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([("__cluster_metadata", 0)], [("__cluster_metadata", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([(None, 77)], [(None, 77, ErrorCode.UNKNOWN_TOPIC_ID)]),
        ([(None, 0)], [(None, 0, ErrorCode.INVALID_REQUEST)]),
        ([("a", 1)], [("a", 1, ErrorCode.INVALID_REQUEST)]),
        ([("a", 0), ("a", 0)], [("a", 0, ErrorCode.INVALID_REQUEST)]),
        ([(None, 1), (None, 1)], [(None, 1, ErrorCode.INVALID_REQUEST)]),
        ([("a", 0), (None, 1)], [("a", 1, ErrorCode.INVALID_REQUEST)]),
        ([], []),
    ],
)
def test_invalid_deletion_is_rejected(
    topics: Any, new_topic_id: Callable[[int], Uuid], given: list[Any], expected: list[Any]
) -> None:
    """Every error has a message. Numbers stand for topic ids."""

    def real(number: int) -> Uuid:
        return ZERO_UUID if number == 0 else new_topic_id(number)

    decision = topics.decide(delete(*((name, real(number)) for name, number in given)))
    assert decision.records == ()
    assert deletions(decision) == [(name, real(number), code, True) for name, number, code in expected]


def test_metadata_topic_id_is_unknown(topics: Any) -> None:
    assert deletions(topics.decide(delete((None, METADATA_TOPIC_ID)))) == [
        (None, METADATA_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID, True)
    ]


def test_deletion_disabled(new_controller: Any) -> None:
    """Every topic gets the error, including duplicates, without a message."""
    cluster = new_controller(delete_topic_enable="false")
    decision = cluster.decide(
        delete(("a", ZERO_UUID), (None, METADATA_TOPIC_ID), (None, ZERO_UUID), ("a", ZERO_UUID), names=("n",))
    )
    assert decision.records == ()
    assert deletions(decision) == [
        ("n", ZERO_UUID, ErrorCode.TOPIC_DELETION_DISABLED, False),
        ("a", ZERO_UUID, ErrorCode.TOPIC_DELETION_DISABLED, False),
        (None, METADATA_TOPIC_ID, ErrorCode.TOPIC_DELETION_DISABLED, False),
        (None, ZERO_UUID, ErrorCode.TOPIC_DELETION_DISABLED, False),
        ("a", ZERO_UUID, ErrorCode.TOPIC_DELETION_DISABLED, False),
    ]


def partitions(
    *topics: tuple[str, int, list[list[int]] | None], validate_only: bool = False
) -> CreatePartitionsRequest:
    listed = [
        CreatePartitionsTopic(
            name, count, None if brokers is None else [CreatePartitionsAssignment(ids) for ids in brokers]
        )
        for name, count, brokers in topics
    ]
    return CreatePartitionsRequest(listed, 5000, validate_only)


def additions(decision: Decision) -> list[tuple[str, int, bool]]:
    return [(result.name, result.error_code, result.error_message is not None) for result in decision.response.results]


def test_create_partitions(topics: Any, new_topic_id: Callable[[int], Uuid], dir_id: Callable[[int], Uuid]) -> None:
    decision = topics.do(partitions(("a", 3, None)))
    added = PartitionRecord(
        partition_id=2,
        topic_id=new_topic_id(1),
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[dir_id(1)],
    )
    assert decision == Decision((added,), CreatePartitionsResponse(0, [CreatePartitionsTopicResult("a", 0, None)]))
    assert list(topics.image.topics_by_name["a"].partitions) == [0, 1, 2]
    added.topic_id = new_topic_id(2)
    assert topics.decide(partitions(("b", 3, [[1]]))).records == (added,)


def test_create_partitions_validate_only(topics: Any) -> None:
    assert topics.decide(partitions(("a", 3, None), validate_only=True)) == Decision(
        (), CreatePartitionsResponse(0, [CreatePartitionsTopicResult("a", 0, None)])
    )


@pytest.mark.parametrize(
    ("requested", "code", "has_message"),
    [
        (("a", 2, None), ErrorCode.INVALID_PARTITIONS, True),
        (("a", 1, None), ErrorCode.INVALID_PARTITIONS, True),
        (("a", 0, None), ErrorCode.INVALID_PARTITIONS, True),
        (("a", -1, None), ErrorCode.INVALID_PARTITIONS, True),
        (("zz", 4, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (("", 3, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (("__cluster_metadata", 3, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (("a", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, True),
        (("a", 4, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT, True),
        (("a", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, True),
        (("a", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, True),
        (("a", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, True),
        (("a", 10_003, None), ErrorCode.UNKNOWN_SERVER_ERROR, False),
    ],
)
def test_invalid_create_partitions_is_rejected(topics: Any, requested: Any, code: ErrorCode, has_message: bool) -> None:
    decision = topics.decide(partitions(requested))
    assert decision.records == ()
    assert additions(decision) == [(requested[0], code, has_message)]


def test_create_partitions_at_limit(topics: Any) -> None:
    """A topic that exceeds the limit fails alone."""
    decision = topics.decide(partitions(("a", 10_002, None), ("b", 3, None), ("zz", 1, None)))
    assert additions(decision) == [
        ("a", ErrorCode.NONE, False),
        ("b", ErrorCode.UNKNOWN_SERVER_ERROR, False),
        ("zz", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    ]
    assert len(decision.records) == 10_000


def test_duplicate_topic_gets_no_partitions(topics: Any) -> None:
    decision = topics.decide(partitions(("b", 3, None), ("a", 3, None), ("a", 4, None), ("zz", 4, None)))
    assert additions(decision) == [
        ("a", ErrorCode.INVALID_REQUEST, True),
        ("b", ErrorCode.NONE, False),
        ("zz", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    ]
    assert len(decision.records) == 1
