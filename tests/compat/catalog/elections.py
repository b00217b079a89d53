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
    Case("preferred of two", (elect(("$a", [0, 1])),), TWO, ALL),
    Case("unclean", (elect(("$a", [0]), kind=1),), TWO, TYPED),
    Case("of an unknown type", (elect(("$a", [0]), kind=2), elect(("$a", [0]), kind=-1)), TWO, TYPED),
    Case("of an unknown partition", (elect(("$a", [9])),), TWO, ALL),
    Case("of a negative partition", (elect(("$a", [-1])),), TWO, ALL),
    Case("of an unknown partition, unclean", (elect(("$a", [9]), kind=1),), TWO, TYPED),
    Case("of an unknown topic", (elect(("$no", [0])),), (), ALL),
    Case("of an invalid name", (elect(("a/b", [0])),), (), ALL),
    Case("of an empty name", (elect(("", [0])),), (), ALL),
    Case("of a partition twice", (elect(("$a", [0, 0])),), TWO, ALL),
    Case("of a topic twice", (elect(("$a", [0]), ("$a", [1])),), TWO, ALL),
    Case("of no partitions", (elect(("$a", [])),), TWO, ALL),
    Case("of nothing", (elect(),), (), ALL),
    Case("of two topics, one of them unknown", (elect(("$a", [0]), ("$no", [0])),), TWO, ALL),
    Case("without time", (elect(("$a", [0]), timeout_ms=0),), TWO, ALL),
    Case("with a negative timeout", (elect(("$a", [0]), timeout_ms=-1),), TWO, ALL),
    Case("of all", (Call(lambda version: ElectLeadersRequest(topic_partitions=None, timeout_ms=10_000)),), TWO, ALL),
    Case(
        "of all, without time",
        (Call(lambda version: ElectLeadersRequest(topic_partitions=None, timeout_ms=0)),),
        TWO,
        ALL,
    ),
    Case(
        "of all, of an unknown type", (Call(ElectLeadersRequest(topic_partitions=None, election_type=7)),), TWO, TYPED
    ),
]
