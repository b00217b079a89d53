"""CreateTopics and DeleteTopics, valid and invalid."""

from collections.abc import Mapping, Sequence

from ottla.base.ids import Uuid
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.compat.catalog.case import NODE, UNKNOWN_ID, Call, Case, NewTopic, described_topic, topic_id


def topic(
    name: str = "$a",
    partitions: int = 1,
    replicas: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assigned: Mapping[int, Sequence[int]] | None = None,
) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
        for index, ids in (assigned or {}).items()
    ]
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, configs=settings, assignments=assignments
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> Call:
    return Call(CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only))


def delete(*names: str) -> Call:
    """Delete topics by name, in any version."""

    def request(version: int) -> DeleteTopicsRequest:
        if version < 6:
            return DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=30_000)

    return Call(request)


def delete_by_id(*ids: Uuid, name: str | None = None) -> Call:
    return Call(
        DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=value) for value in ids], timeout_ms=30_000), 6
    )


DELETE = range(1, 7)

NAMES = {
    "empty name": "",
    "name of one dot": ".",
    "name of two dots": "..",
    "name with a slash": "a/b",
    "name with a space": "a b",
    "name of 250 characters": "x" * 250,
    "name not ASCII": "á",
    "name with NUL": "a\0b",
}
CONFIGS: dict[str, dict[str, str | None]] = {
    "unknown name": {"no.such.config": "1"},
    "not a number": {"retention.ms": "soon"},
    "number below the minimum": {"segment.bytes": "1"},
    "unknown value": {"cleanup.policy": "burn"},
    "null": {"retention.ms": None},
    "empty value": {"cleanup.policy": ""},
    "name of a broker config": {"log.retention.ms": "1000"},
    "not a boolean": {"preallocate": "perhaps"},
    "spaces around a number": {"retention.ms": " 1000 "},
    "two cleanup policies": {"cleanup.policy": "compact,delete"},
    "several": {
        "cleanup.policy": "compact",
        "retention.bytes": "9",
        "compression.type": "zstd",
        "message.timestamp.type": "CreateTime",
    },
}

CASES = [
    Case("create", (create(topic(partitions=3)), described_topic("$a", 3))),
    Case("create two", (create(topic("$a"), topic("$b", 2)),)),
    Case("create, empty request", (create(),)),
    Case("create, validate only", (create(topic(partitions=3), validate_only=True), described_topic("$a", 0))),
    Case("create, validate only, invalid name", (create(topic("a/b"), validate_only=True),), versions=(2, 7)),
    Case("create, topic exists", (create(topic("$a"), topic("$b")),), (NewTopic("a"),)),
    Case(
        "create, validate only, topic exists",
        (create(topic("$a"), validate_only=True),),
        (NewTopic("a"),),
        versions=(2, 7),
    ),
    Case("create, duplicate name", (create(topic("$a"), topic("$a", 2), topic("$b")),)),
    Case("create, names that collide in metrics", (create(topic("$a.b")), create(topic("$a_b"))), versions=(2, 7)),
    Case("default partition count and replication factor", (create(topic(partitions=-1, replicas=-1)),)),
    Case("default replication factor", (create(topic(partitions=2, replicas=-1)),), versions=(4, 7)),
    Case("partition count 0", (create(topic(partitions=0)),), versions=(2, 5, 7)),
    Case("partition count -2", (create(topic(partitions=-2)),), versions=(2, 5, 7)),
    Case("replication factor 0", (create(topic(replicas=0)),), versions=(2, 5, 7)),
    Case("replication factor above the broker count", (create(topic(replicas=2)),)),
    Case("replication factor -2", (create(topic(replicas=-2)),), versions=(2, 5, 7)),
    *(Case(description, (create(topic(name)),), versions=(2, 5, 7)) for description, name in NAMES.items()),
    *(
        Case(f"config: {description}", (create(topic(configs=configs)),), versions=(2, 5, 7))
        for description, configs in CONFIGS.items()
    ),
    Case(
        "replica assignment",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [NODE], 1: [NODE]})), described_topic("$a", 2)),
        (NewTopic("b"),),
    ),
    Case(
        "replica assignment and partition count",
        (create(topic(partitions=2, replicas=1, assigned={0: [NODE], 1: [NODE]})),),
        (NewTopic("b"),),
    ),
    Case(
        "replica assignment to an unknown broker",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [77]})),),
        versions=(2, 7),
    ),
    Case(
        "replica assignment with a gap",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [NODE], 2: [NODE]})),),
        (NewTopic("b"),),
        versions=(2, 7),
    ),
    Case(
        "replica assignment, same broker twice",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [NODE, NODE]})),),
        (NewTopic("b"),),
        versions=(2, 7),
    ),
    Case(
        "replica assignment without brokers",
        (create(topic(partitions=-1, replicas=-1, assigned={0: []})),),
        versions=(2, 7),
    ),
    Case("delete", (delete("$a"), described_topic("$a", 0)), (NewTopic("a"),), versions=DELETE),
    Case("delete two, one unknown", (delete("$a", "$no"),), (NewTopic("a"),), versions=DELETE),
    Case("delete, empty request", (delete(),), versions=DELETE),
    Case("delete, invalid name", (delete("a/b"),), versions=(1, 5, 6)),
    Case(
        "delete, duplicate name",
        (delete("$a", "$a"), described_topic("$a", 1)),
        (NewTopic("a"),),
        versions=(1, 4, 5, 6),
    ),
    Case(
        "delete, then create again",
        (delete("$a"), Call(CreateTopicsRequest(topics=[topic("$a", 2)], timeout_ms=30_000), 7)),
        (NewTopic("a"),),
        versions=DELETE,
    ),
    Case("delete by id", (delete_by_id(topic_id("a")), described_topic("$a", 0)), (NewTopic("a"),), versions=(6,)),
    Case("delete by unknown id", (delete_by_id(UNKNOWN_ID),), versions=(6,)),
    Case("delete by id and name", (delete_by_id(topic_id("a"), name="$a"),), (NewTopic("a"),), versions=(6,)),
    Case("delete without id and name", (delete_by_id(Uuid(bytes(16))),), versions=(6,)),
]
