"""CreatePartitions: partition counts only increase."""

from collections.abc import Sequence

from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.compat.catalog.case import NODE, Call, Case, NewTopic, described_topic


def resized(name: str, count: int, assigned: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def resize(*topics: CreatePartitionsTopic, validate_only: bool = False) -> Call:
    return Call(CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only))


TWO = (NewTopic("a", 2),)

CASES = [
    Case("more", (resize(resized("$a", 5)), described_topic("$a", 5)), TWO),
    Case("more, only checked", (resize(resized("$a", 5), validate_only=True), described_topic("$a", 2)), TWO),
    Case("as many", (resize(resized("$a", 2)),), TWO),
    Case("fewer", (resize(resized("$a", 1)),), TWO),
    Case("none", (resize(resized("$a", 0)),), TWO, versions=(0, 3)),
    Case("fewer than none", (resize(resized("$a", -1)),), TWO, versions=(0, 3)),
    Case("of an unknown topic", (resize(resized("$no", 5)),)),
    Case("of nothing", (resize(),)),
    Case(
        "of two topics, one of them unknown",
        (resize(resized("$a", 3), resized("$no", 3)), described_topic("$a", 3)),
        TWO,
    ),
    Case("of one topic twice", (resize(resized("$a", 3), resized("$a", 4)), described_topic("$a", 2)), TWO),
    Case("of an invalid name", (resize(resized("a/b", 3)),), versions=(0, 3)),
    Case("assigned", (resize(resized("$a", 4, [[NODE], [NODE]])), described_topic("$a", 4)), TWO),
    Case("assigned too few", (resize(resized("$a", 4, [[NODE]])),), TWO, versions=(0, 3)),
    Case("assigned too many", (resize(resized("$a", 3, [[NODE], [NODE]])),), TWO, versions=(0, 3)),
    Case("assigned to an unknown broker", (resize(resized("$a", 3, [[77]])),), TWO, versions=(0, 3)),
    Case("assigned to nobody", (resize(resized("$a", 3, [[]])),), TWO, versions=(0, 3)),
    Case("assigned to one broker twice", (resize(resized("$a", 3, [[NODE, NODE]])),), TWO, versions=(0, 3)),
    Case("an empty assignment", (resize(resized("$a", 3, [])),), TWO, versions=(0, 3)),
]
