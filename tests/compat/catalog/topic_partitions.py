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
    Case("in another order", (page(("$b", "$a")),), TWO),
    Case("one twice", (page(("$b", "$b")),), TWO),
    Case("an unknown one", (page(("$a", "$no")),), TWO),
    Case("only an unknown one", (page(("$no",)),)),
    Case("an invalid name", (page(("a/b",)),)),
    Case("an empty name", (page(("",)),)),
    Case("an internal name", (page(("__cluster_metadata",)),)),
    Case("a page that ends within a topic", (page(limit=2),), TWO),
    Case("a page that ends with a topic", (page(limit=3),), TWO),
    Case("a page that ends within the second", (page(limit=4),), TWO),
    Case("a page that just holds all", (page(limit=5),), TWO),
    Case("a page of one", (page(limit=1),), TWO),
    Case("a page of none", (page(limit=0),), TWO),
    Case("a page of less than none", (page(limit=-1),), TWO),
    Case("a page that ends at an unknown one", (page(("$a", "$no"), limit=3),), TWO),
    Case("an unknown one beyond the page", (page(("$a", "$no"), limit=2),), TWO),
    Case("from a cursor", (page(at=("$a", 1)),), TWO),
    Case("from a cursor, page by page", (page(limit=2, at=("$a", 2)), page(limit=2, at=("$b", 1))), TWO),
    Case("from the second topic on", (page(at=("$b", 0)),), TWO),
    Case("from a cursor at the end of a topic", (page(at=("$a", 3)),), TWO),
    Case("from a cursor beyond a topic", (page(at=("$a", 30)),), TWO),
    Case("from a cursor beyond all", (page(at=("$z", 0)),), TWO),
    Case("from a cursor between topics", (page(at=("$aa", 1)),), TWO),
    Case("from a cursor at a topic not asked for", (page(("$b",), at=("$a", 1)),), TWO),
    Case("from a negative place", (page(at=("$a", -1)),), TWO),
    Case("from a cursor without a name", (page(at=("", 0)),), TWO),
    Case("from a cursor at an unknown topic", (page(("$no",), at=("$no", 0)),)),
]
