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
    Case("partition with a producer", (of(("$a", [0])),), PRODUCED),
    Case("partition without producers", (of(("$a", [1])),), PRODUCED),
    Case("two partitions", (of(("$a", [0, 1])),), PRODUCED),
    Case("same partition twice", (of(("$a", [1, 1])),), PRODUCED),
    Case("same topic twice", (of(("$a", [0]), ("$a", [1])),), PRODUCED),
    Case("unknown partition", (of(("$a", [9])),), PRODUCED),
    Case("negative partition", (of(("$a", [-1])),), PRODUCED),
    Case("no partitions", (of(("$a", [])),), PRODUCED),
    Case("unknown topic", (of(("$no", [0])),)),
    Case("invalid topic name", (of(("a/b", [0])),)),
    Case("empty topic name", (of(("", [0])),)),
    Case("empty request", (of(),)),
]
