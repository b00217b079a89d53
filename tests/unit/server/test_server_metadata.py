"""Metadata of all topics: complete after each change, and encoded in pieces."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.ids import Uuid
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage
from ottla.runtime.encoded_topics import EncodedTopics
from ottla.server.api.metadata import Response, _all
from ottla.testing import Broker
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.schema import SlicedWork, decode
from tests.compat.raw import RawConnection


def connected(broker: Broker) -> RawConnection:
    host, _, port = broker.bootstrap.rpartition(":")
    return RawConnection((host, int(port)))


def partition_counts(
    connection: RawConnection, version: int, *, operations: bool = False
) -> dict[str, tuple[int, int]]:
    request = MetadataRequest(topics=[] if version == 0 else None, include_topic_authorized_operations=operations)
    response = connection.call(request, version)
    return {topic.name: (len(topic.partitions), topic.topic_authorized_operations) for topic in response.topics}


def test_all_topics_at_every_version_after_every_change() -> None:
    unsaid = -(1 << 31)
    with Broker() as broker, connected(broker) as connection:
        assert partition_counts(connection, 12) == {}
        broker.create_topic("a", partitions=2)
        for _ in range(2):
            assert all(partition_counts(connection, version) == {"a": (2, unsaid)} for version in range(14))
        broker.create_topic("b", partitions=1)
        for _ in range(2):
            assert partition_counts(connection, 12) == {"a": (2, unsaid), "b": (1, unsaid)}
            assert partition_counts(connection, 12, operations=True) == {"a": (2, 3576), "b": (1, 3576)}
            assert all(
                partition_counts(connection, version) == {"a": (2, unsaid), "b": (1, unsaid)} for version in range(14)
            )
        connection.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=10_000), 6)
        for _ in range(2):
            assert all(partition_counts(connection, version) == {"b": (1, unsaid)} for version in range(14))


@pytest.mark.parametrize(
    ("version", "odd"),
    [
        (9, MetadataRequestTopic(name="there")),  # this version has no topic ids
        *(
            (version, odd)
            for version in (10, 12)
            for odd in (
                MetadataRequestTopic(name="there"),
                MetadataRequestTopic(name=None),
                MetadataRequestTopic(topic_id=Uuid(b"i" * 16), name=None),
            )
        ),
    ],
)
def test_many_topics_get_the_same_response_as_few(version: int, odd: MetadataRequestTopic) -> None:
    """Also if one of them has an id, or no name: that decides the response of all."""
    names = [MetadataRequestTopic(name=f"not-there-{number}") for number in range(1000)]
    with Broker(configs={"auto.create.topics.enable": "false"}) as broker, connected(broker) as connection:
        broker.create_topic("there", partitions=1)
        few, many = (
            connection.call(MetadataRequest(topics=[*some, odd], allow_auto_topic_creation=False), version)
            for some in (names[:3], names)
        )
    assert many.error_code == few.error_code
    assert (len(few.topics), len(many.topics)) in ((4, 1001), (1, 1))
    assert [(topic.name, topic.error_code) for topic in many.topics[:3]][: len(few.topics)] == [
        (topic.name, topic.error_code) for topic in few.topics[:3]
    ]
    assert (many.topics[-1].name, many.topics[-1].error_code) == (few.topics[-1].name, few.topics[-1].error_code)


def test_many_topics_are_encoded_in_pieces() -> None:
    """Encoded topics are cached."""
    partition = PartitionImage((1,), (1,), 1, 0, 0, (Uuid(bytes(16)),))
    topics = {
        topic_id: TopicImage(f"topic-{number}", topic_id, dict.fromkeys(range(100), partition))
        for number in range(20)
        for topic_id in [Uuid(number.to_bytes(16, "big"))]
    }
    cache, broker = EncodedTopics(), SimpleNamespace(image=ClusterImage("c", topics_by_id=topics))
    first, pieces = counted(_all(cast(Any, broker), cache, MetadataResponse(), MetadataRequest(topics=None), 12))
    assert pieces == 20
    again, pieces = counted(_all(cast(Any, broker), cache, MetadataResponse(), MetadataRequest(topics=None), 12))
    assert (pieces, first) == (0, again)
    response, _ = decode(MetadataResponse, 12, cast(bytes, first), 0)
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [
        (f"topic-{number}", 100) for number in range(20)
    ]


def counted(work: SlicedWork[Response]) -> tuple[Response, int]:
    """Return the result of the work, and how often it yielded."""
    count = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, count
        count += 1
