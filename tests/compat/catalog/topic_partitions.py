"""DescribeTopicPartitions: topics by name, in pages."""

from collections.abc import Sequence

from ottla.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from tests.compat.catalog.case import Call, Case, NewTopic

TWO = (NewTopic("a", 3), NewTopic("b", 2))


def page(names: Sequence[str] = ("$a", "$b"), limit: int = 2000, at: tuple[str, int] | None = None) -> Call:
    cursor = None if at is None else Cursor(topic_name=at[0], partition_index=at[1])
    topics = [TopicRequest(name=name) for name in names]
    return Call(DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor))


CASES = [
    Case("two topics", (page(),), TWO),
    Case("two topics in reverse order", (page(("$b", "$a")),), TWO),
    Case("same topic twice", (page(("$b", "$b")),), TWO),
    Case("known and unknown topic", (page(("$a", "$no")),), TWO),
    Case("unknown topic", (page(("$no",)),)),
    Case("invalid topic name", (page(("a/b",)),)),
    Case("empty topic name", (page(("",)),)),
    Case("internal topic name", (page(("__cluster_metadata",)),)),
    Case("page ends inside a topic", (page(limit=2),), TWO),
    Case("page ends with a topic", (page(limit=3),), TWO),
    Case("page ends inside the second topic", (page(limit=4),), TWO),
    Case("page limit equals the partition count", (page(limit=5),), TWO),
    Case("page of one partition", (page(limit=1),), TWO),
    Case("page limit 0", (page(limit=0),), TWO),
    Case("page limit -1", (page(limit=-1),), TWO),
    Case("page ends before an unknown topic", (page(("$a", "$no"), limit=3),), TWO),
    Case("unknown topic after the page", (page(("$a", "$no"), limit=2),), TWO),
    Case("cursor", (page(at=("$a", 1)),), TWO),
    Case("cursor, two pages", (page(limit=2, at=("$a", 2)), page(limit=2, at=("$b", 1))), TWO),
    Case("cursor at the second topic", (page(at=("$b", 0)),), TWO),
    Case("cursor at the end of a topic", (page(at=("$a", 3)),), TWO),
    Case("cursor after the end of a topic", (page(at=("$a", 30)),), TWO),
    Case("cursor after all topics", (page(at=("$z", 0)),), TWO),
    Case("cursor between topics", (page(at=("$aa", 1)),), TWO),
    Case("cursor at a topic that was not requested", (page(("$b",), at=("$a", 1)),), TWO),
    Case("cursor at a negative partition", (page(at=("$a", -1)),), TWO),
    Case("cursor without a topic name", (page(at=("", 0)),), TWO),
    Case("cursor at an unknown topic", (page(("$no",), at=("$no", 0)),)),
]
