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
    Case("increase", (resize(resized("$a", 5)), described_topic("$a", 5)), TWO),
    Case("increase, validate only", (resize(resized("$a", 5), validate_only=True), described_topic("$a", 2)), TWO),
    Case("same count", (resize(resized("$a", 2)),), TWO),
    Case("decrease", (resize(resized("$a", 1)),), TWO),
    Case("count 0", (resize(resized("$a", 0)),), TWO, versions=(0, 3)),
    Case("count -1", (resize(resized("$a", -1)),), TWO, versions=(0, 3)),
    Case("unknown topic", (resize(resized("$no", 5)),)),
    Case("empty request", (resize(),)),
    Case(
        "two topics, one unknown",
        (resize(resized("$a", 3), resized("$no", 3)), described_topic("$a", 3)),
        TWO,
    ),
    Case("same topic twice", (resize(resized("$a", 3), resized("$a", 4)), described_topic("$a", 2)), TWO),
    Case("invalid topic name", (resize(resized("a/b", 3)),), versions=(0, 3)),
    Case("replica assignment", (resize(resized("$a", 4, [[NODE], [NODE]])), described_topic("$a", 4)), TWO),
    Case("replica assignment with too few entries", (resize(resized("$a", 4, [[NODE]])),), TWO, versions=(0, 3)),
    Case(
        "replica assignment with too many entries", (resize(resized("$a", 3, [[NODE], [NODE]])),), TWO, versions=(0, 3)
    ),
    Case("replica assignment to an unknown broker", (resize(resized("$a", 3, [[77]])),), TWO, versions=(0, 3)),
    Case("replica assignment without brokers", (resize(resized("$a", 3, [[]])),), TWO, versions=(0, 3)),
    Case("replica assignment, same broker twice", (resize(resized("$a", 3, [[NODE, NODE]])),), TWO, versions=(0, 3)),
    Case("empty replica assignment", (resize(resized("$a", 3, [])),), TWO, versions=(0, 3)),
]
