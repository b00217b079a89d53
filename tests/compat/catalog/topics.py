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
    "empty": "",
    "one dot": ".",
    "two dots": "..",
    "with a slash": "a/b",
    "with a space": "a b",
    "of 250 characters": "x" * 250,
    "not ASCII": "á",
    "with NUL": "a\0b",
}
CONFIGS: dict[str, dict[str, str | None]] = {
    "an unknown name": {"no.such.config": "1"},
    "no number": {"retention.ms": "soon"},
    "a number below the minimum": {"segment.bytes": "1"},
    "an unknown value": {"cleanup.policy": "burn"},
    "null": {"retention.ms": None},
    "no value": {"cleanup.policy": ""},
    "the name of a broker config": {"log.retention.ms": "1000"},
    "no boolean": {"preallocate": "perhaps"},
    "spaces around a number": {"retention.ms": " 1000 "},
    "two policies": {"cleanup.policy": "compact,delete"},
    "several": {
        "cleanup.policy": "compact",
        "retention.bytes": "9",
        "compression.type": "zstd",
        "message.timestamp.type": "CreateTime",
    },
}

CASES = [
    Case("created", (create(topic(partitions=3)), described_topic("$a", 3))),
    Case("two created", (create(topic("$a"), topic("$b", 2)),)),
    Case("nothing to create", (create(),)),
    Case("only checked", (create(topic(partitions=3), validate_only=True), described_topic("$a", 0))),
    Case("only checked, wrong", (create(topic("a/b"), validate_only=True),), versions=(2, 7)),
    Case("it exists", (create(topic("$a"), topic("$b")),), (NewTopic("a"),)),
    Case("it exists, only checked", (create(topic("$a"), validate_only=True),), (NewTopic("a"),), versions=(2, 7)),
    Case("named twice", (create(topic("$a"), topic("$a", 2), topic("$b")),)),
    Case("names that collide in metrics", (create(topic("$a.b")), create(topic("$a_b"))), versions=(2, 7)),
    Case("default partitions and replicas", (create(topic(partitions=-1, replicas=-1)),)),
    Case("default replicas", (create(topic(partitions=2, replicas=-1)),), versions=(4, 7)),
    Case("no partitions", (create(topic(partitions=0)),), versions=(2, 5, 7)),
    Case("fewer than no partitions", (create(topic(partitions=-2)),), versions=(2, 5, 7)),
    Case("no replicas", (create(topic(replicas=0)),), versions=(2, 5, 7)),
    Case("more replicas than brokers", (create(topic(replicas=2)),)),
    Case("fewer than no replicas", (create(topic(replicas=-2)),), versions=(2, 5, 7)),
    *(Case(f"name {what}", (create(topic(name)),), versions=(2, 5, 7)) for what, name in NAMES.items()),
    *(
        Case(f"config with {what}", (create(topic(configs=configs)),), versions=(2, 5, 7))
        for what, configs in CONFIGS.items()
    ),
    Case(
        "assigned",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [NODE], 1: [NODE]})), described_topic("$a", 2)),
        (NewTopic("b"),),
    ),
    Case(
        "assigned, and counted too",
        (create(topic(partitions=2, replicas=1, assigned={0: [NODE], 1: [NODE]})),),
        (NewTopic("b"),),
    ),
    Case(
        "assigned to an unknown broker",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [77]})),),
        versions=(2, 7),
    ),
    Case(
        "assigned with a gap",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [NODE], 2: [NODE]})),),
        (NewTopic("b"),),
        versions=(2, 7),
    ),
    Case(
        "assigned twice to one broker",
        (create(topic(partitions=-1, replicas=-1, assigned={0: [NODE, NODE]})),),
        (NewTopic("b"),),
        versions=(2, 7),
    ),
    Case("assigned to nobody", (create(topic(partitions=-1, replicas=-1, assigned={0: []})),), versions=(2, 7)),
    Case("deleted", (delete("$a"), described_topic("$a", 0)), (NewTopic("a"),), versions=DELETE),
    Case("two deleted, one of them unknown", (delete("$a", "$no"),), (NewTopic("a"),), versions=DELETE),
    Case("nothing to delete", (delete(),), versions=DELETE),
    Case("deleted under an invalid name", (delete("a/b"),), versions=(1, 5, 6)),
    Case(
        "deleted twice in one request",
        (delete("$a", "$a"), described_topic("$a", 1)),
        (NewTopic("a"),),
        versions=(1, 4, 5, 6),
    ),
    Case(
        "deleted, then made again",
        (delete("$a"), Call(CreateTopicsRequest(topics=[topic("$a", 2)], timeout_ms=30_000), 7)),
        (NewTopic("a"),),
        versions=DELETE,
    ),
    Case("deleted by id", (delete_by_id(topic_id("a")), described_topic("$a", 0)), (NewTopic("a"),), versions=(6,)),
    Case("deleted by an unknown id", (delete_by_id(UNKNOWN_ID),), versions=(6,)),
    Case("deleted by id and name", (delete_by_id(topic_id("a"), name="$a"),), (NewTopic("a"),), versions=(6,)),
    Case("deleted by neither", (delete_by_id(Uuid(bytes(16))),), versions=(6,)),
]
