"""Metadata of all topics: as many as there are, right after each change, and in turns with others while it is being made."""

from collections.abc import Coroutine
from typing import Any

from ottla.base.ids import Uuid
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage
from ottla.runtime.topic_bytes import TopicForm
from ottla.server.api.metadata import _all
from ottla.testing import Broker
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.schema import decode
from tests.compat.raw import RawConnection


def connected(broker: Broker) -> RawConnection:
    host, _, port = broker.bootstrap.rpartition(":")
    return RawConnection((host, int(port)))


def told(connection: RawConnection, version: int, *, operations: bool = False) -> dict[str, tuple[int, int]]:
    request = MetadataRequest(topics=[] if version == 0 else None, include_topic_authorized_operations=operations)
    answer = connection.ask(request, version)
    return {topic.name: (len(topic.partitions), topic.topic_authorized_operations) for topic in answer.topics}


def test_all_topics_at_every_version_after_every_change() -> None:
    unsaid = -(1 << 31)
    with Broker() as broker, connected(broker) as connection:
        assert told(connection, 12) == {}
        broker.create_topic("a", partitions=2)
        for _ in range(2):
            assert all(told(connection, version) == {"a": (2, unsaid)} for version in range(14))
        broker.create_topic("b", partitions=1)
        for _ in range(2):
            assert told(connection, 12) == {"a": (2, unsaid), "b": (1, unsaid)}
            assert told(connection, 12, operations=True) == {"a": (2, 3576), "b": (1, 3576)}
            assert all(told(connection, version) == {"a": (2, unsaid), "b": (1, unsaid)} for version in range(14))
        connection.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=10_000), 6)
        for _ in range(2):
            assert all(told(connection, version) == {"b": (1, unsaid)} for version in range(14))


def test_many_topics_are_encoded_in_slices() -> None:
    """Others have a turn on the loop meanwhile; what was made once is not made again."""
    partition = PartitionImage((1,), (1,), 1, 0, 0, (Uuid(bytes(16)),))
    topics = {topic_id: TopicImage(f"topic-{number}", topic_id, dict.fromkeys(range(100), partition))
              for number in range(20) for topic_id in [Uuid(number.to_bytes(16, "big"))]}
    form, image = TopicForm(), ClusterImage("c", topics_by_id=topics)
    first = run(_all(form, image, MetadataResponse(), MetadataRequest(topics=None), 12))
    again = run(_all(form, image, MetadataResponse(), MetadataRequest(topics=None), 12))
    assert (first[0], again[0], first[1]) == (4, 0, again[1])
    answer, _ = decode(MetadataResponse, 12, first[1], 0)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [(f"topic-{number}", 100) for number in range(20)]


def run(work: Coroutine[Any, Any, bytes]) -> tuple[int, bytes]:
    """How often it gave way, and what it returned."""
    for turns in range(1000):
        try:
            work.send(None)
        except StopIteration as end:
            return turns, end.value
    raise AssertionError("it never ends")
