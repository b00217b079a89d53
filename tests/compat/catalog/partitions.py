"""CreatePartitions: a topic grows, and never shrinks."""

from collections.abc import Sequence

from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.compat.catalog.case import NODE, Ask, Case, NewTopic, shown


def grown(name: str, count: int, assigned: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grow(*topics: CreatePartitionsTopic, validate_only: bool = False) -> Ask:
    return Ask(CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only))


TWO = (NewTopic("a", 2),)

CASES = [
    Case("more", (grow(grown("$a", 5)), shown("$a", 5)), TWO),
    Case("more, only checked", (grow(grown("$a", 5), validate_only=True), shown("$a", 2)), TWO),
    Case("as many", (grow(grown("$a", 2)),), TWO),
    Case("fewer", (grow(grown("$a", 1)),), TWO),
    Case("none", (grow(grown("$a", 0)),), TWO, versions=(0, 3)),
    Case("fewer than none", (grow(grown("$a", -1)),), TWO, versions=(0, 3)),
    Case("of an unknown topic", (grow(grown("$no", 5)),)),
    Case("of nothing", (grow(),)),
    Case("of two topics, one of them unknown", (grow(grown("$a", 3), grown("$no", 3)), shown("$a", 3)), TWO),
    Case("of one topic twice", (grow(grown("$a", 3), grown("$a", 4)), shown("$a", 2)), TWO),
    Case("of an invalid name", (grow(grown("a/b", 3)),), versions=(0, 3)),
    Case("assigned", (grow(grown("$a", 4, [[NODE], [NODE]])), shown("$a", 4)), TWO),
    Case("assigned too few", (grow(grown("$a", 4, [[NODE]])),), TWO, versions=(0, 3)),
    Case("assigned too many", (grow(grown("$a", 3, [[NODE], [NODE]])),), TWO, versions=(0, 3)),
    Case("assigned to an unknown broker", (grow(grown("$a", 3, [[77]])),), TWO, versions=(0, 3)),
    Case("assigned to nobody", (grow(grown("$a", 3, [[]])),), TWO, versions=(0, 3)),
    Case("assigned to one broker twice", (grow(grown("$a", 3, [[NODE, NODE]])),), TWO, versions=(0, 3)),
    Case("an empty assignment", (grow(grown("$a", 3, [])),), TWO, versions=(0, 3)),
]
