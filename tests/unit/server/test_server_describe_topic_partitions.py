"""DescribeTopicPartitions of all topics, which cannot be recorded from a broker that other tests use."""

from typing import Any

from ottla.testing import Broker
from ottla.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from tests.compat.raw import RawConnection

Page = tuple[list[tuple[str, list[int]]], tuple[str, int] | None]


def page(connection: RawConnection, limit: int, cursor: tuple[str, int] | None = None) -> Page:
    at = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    response: Any = connection.call(DescribeTopicPartitionsRequest(response_partition_limit=limit, cursor=at), 0)
    topics = [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in response.topics]
    return topics, None if response.next_cursor is None else (
        response.next_cursor.topic_name,
        response.next_cursor.partition_index,
    )


def connected(broker: Broker) -> RawConnection:
    host, _, port = broker.bootstrap.rpartition(":")
    return RawConnection((host, int(port)))


def test_all_topics_page_by_page() -> None:
    with Broker() as broker:
        for name, partitions in (("b", 2), ("a", 3), ("c", 1)):
            broker.create_topic(name, partitions=partitions)
        with connected(broker) as connection:
            assert page(connection, 4) == ([("a", [0, 1, 2]), ("b", [0])], ("b", 1))
            assert page(connection, 4, ("b", 1)) == ([("b", [1]), ("c", [0])], None)
            assert page(connection, 4, ("bb", 7)) == ([("c", [0])], None)
            assert page(connection, 4, ("z", 0)) == ([], None)
            assert page(connection, 4, ("a", -1)) == ([], None)


def test_the_broker_limits_a_page() -> None:
    with Broker(configs={"max.request.partition.size.limit": "2"}) as broker:
        broker.create_topic("a", partitions=3)
        with connected(broker) as connection:
            assert page(connection, 2000) == ([("a", [0, 1])], ("a", 2))
