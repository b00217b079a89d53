"""DescribeLogDirs: directories, replicas and sizes."""

from collections.abc import Sequence

from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.compat.catalog.case import Batch, Call, Case, Fill, NewTopic, records

FILLED = (NewTopic("a", 2), NewTopic("b"), Fill(Batch(records(5))), Fill(Batch(records(5, first=5), codec=1)))


def of(*topics: tuple[str, Sequence[int]]) -> Call:
    return Call(
        DescribeLogDirsRequest(
            topics=[DescribableLogDirTopic(topic=name, partitions=list(requested)) for name, requested in topics]
        )
    )


CASES = [
    Case("of one partition", (of(("$a", [0])),), FILLED),
    Case("of two partitions", (of(("$a", [0, 1])),), FILLED),
    Case("of two topics", (of(("$a", [0, 1]), ("$b", [0])),), FILLED),
    Case("of all", (Call(DescribeLogDirsRequest(topics=None)),), FILLED),
    Case("of nothing", (of(),)),
    Case("of an unknown partition", (of(("$a", [0, 9])),), FILLED),
    Case("of a negative partition", (of(("$a", [-1])),), FILLED),
    Case("of no partitions", (of(("$a", [])),), FILLED),
    Case("of an unknown topic", (of(("$no", [0])),)),
    Case("of an invalid name", (of(("a/b", [0])),)),
    Case("of an empty name", (of(("", [0])),)),
    Case("of one partition twice", (of(("$a", [0, 0])),), FILLED),
    Case("of one topic twice", (of(("$a", [0]), ("$a", [1])),), FILLED),
]
