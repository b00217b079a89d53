"""ElectLeaders: with one replica there is nothing to elect."""

from collections.abc import Sequence

from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.compat.catalog.case import Call, Case, NewTopic

TWO = (NewTopic("a", 2),)


def elect(*topics: tuple[str, Sequence[int]], kind: int = 0, timeout_ms: int = 10_000) -> Call:
    requested = [TopicPartitions(topic=name, partitions=list(indexes)) for name, indexes in topics]
    return Call(
        lambda version: ElectLeadersRequest(
            **({"election_type": kind} if version > 0 else {}), topic_partitions=requested, timeout_ms=timeout_ms
        )
    )


ALL, TYPED = (0, 1, 2), (1, 2)
CASES = [
    Case("preferred", (elect(("$a", [0])),), TWO, ALL),
    Case("preferred, two partitions", (elect(("$a", [0, 1])),), TWO, ALL),
    Case("unclean", (elect(("$a", [0]), kind=1),), TWO, TYPED),
    Case("unknown type", (elect(("$a", [0]), kind=2), elect(("$a", [0]), kind=-1)), TWO, TYPED),
    Case("unknown partition", (elect(("$a", [9])),), TWO, ALL),
    Case("negative partition", (elect(("$a", [-1])),), TWO, ALL),
    Case("unclean, unknown partition", (elect(("$a", [9]), kind=1),), TWO, TYPED),
    Case("unknown topic", (elect(("$no", [0])),), (), ALL),
    Case("invalid topic name", (elect(("a/b", [0])),), (), ALL),
    Case("empty topic name", (elect(("", [0])),), (), ALL),
    Case("same partition twice", (elect(("$a", [0, 0])),), TWO, ALL),
    Case("same topic twice", (elect(("$a", [0]), ("$a", [1])),), TWO, ALL),
    Case("no partitions", (elect(("$a", [])),), TWO, ALL),
    Case("empty request", (elect(),), (), ALL),
    Case("two topics, one unknown", (elect(("$a", [0]), ("$no", [0])),), TWO, ALL),
    Case("zero timeout", (elect(("$a", [0]), timeout_ms=0),), TWO, ALL),
    Case("negative timeout", (elect(("$a", [0]), timeout_ms=-1),), TWO, ALL),
    Case(
        "all partitions",
        (Call(lambda version: ElectLeadersRequest(topic_partitions=None, timeout_ms=10_000)),),
        TWO,
        ALL,
    ),
    Case(
        "all partitions, zero timeout",
        (Call(lambda version: ElectLeadersRequest(topic_partitions=None, timeout_ms=0)),),
        TWO,
        ALL,
    ),
    Case(
        "all partitions, unknown type", (Call(ElectLeadersRequest(topic_partitions=None, election_type=7)),), TWO, TYPED
    ),
]
