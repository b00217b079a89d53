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
    Case("one partition", (of(("$a", [0])),), FILLED),
    Case("two partitions", (of(("$a", [0, 1])),), FILLED),
    Case("two topics", (of(("$a", [0, 1]), ("$b", [0])),), FILLED),
    Case("all partitions", (Call(DescribeLogDirsRequest(topics=None)),), FILLED),
    Case("empty request", (of(),)),
    Case("unknown partition", (of(("$a", [0, 9])),), FILLED),
    Case("negative partition", (of(("$a", [-1])),), FILLED),
    Case("no partitions", (of(("$a", [])),), FILLED),
    Case("unknown topic", (of(("$no", [0])),)),
    Case("invalid topic name", (of(("a/b", [0])),)),
    Case("empty topic name", (of(("", [0])),)),
    Case("same partition twice", (of(("$a", [0, 0])),), FILLED),
    Case("same topic twice", (of(("$a", [0]), ("$a", [1])),), FILLED),
]
