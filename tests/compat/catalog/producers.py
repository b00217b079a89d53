"""DescribeProducers: producer state of a partition."""

from collections.abc import Sequence

from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.compat.catalog.case import Batch, Call, Case, Fill, NewProducer, NewTopic, records

PRODUCED = (
    NewTopic("a", 2), NewProducer("p"), NewProducer("q"),
    Fill(Batch(records(5), producer="p")), Fill(Batch(records(3, first=5), producer="p", sequence=5)),
    Fill(Batch(records(2), producer="q", producer_epoch=0, sequence=0)),
    Fill(Batch(records(1))),
)  # fmt: skip


def of(*topics: tuple[str, Sequence[int]]) -> Call:
    return Call(
        DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=list(requested)) for name, requested in topics]
        )
    )


CASES = [
    Case("of a partition", (of(("$a", [0])),), PRODUCED),
    Case("of a partition without any", (of(("$a", [1])),), PRODUCED),
    Case("of two partitions", (of(("$a", [0, 1])),), PRODUCED),
    Case("of a partition twice", (of(("$a", [1, 1])),), PRODUCED),
    Case("of a topic twice", (of(("$a", [0]), ("$a", [1])),), PRODUCED),
    Case("of an unknown partition", (of(("$a", [9])),), PRODUCED),
    Case("of a negative partition", (of(("$a", [-1])),), PRODUCED),
    Case("of no partitions", (of(("$a", [])),), PRODUCED),
    Case("of an unknown topic", (of(("$no", [0])),)),
    Case("of an invalid name", (of(("a/b", [0])),)),
    Case("of an empty name", (of(("", [0])),)),
    Case("of nothing", (of(),)),
]
