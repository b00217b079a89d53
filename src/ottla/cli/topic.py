"""`ottla topic create|list|describe|alter|delete`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.base.plural import count_text
from ottla.cli.command import command
from ottla.cli.config import change_configs
from ottla.cli.errors import CliError, require_topics
from ottla.cli.options import Configs, DryRun, Topic, Topics, Yes, confirm_or_fail, parse_assignments
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session
from ottla.cli.usage import new_group

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import OffsetInfo, PartitionDescription, TopicDescription
    from ottla.client.records import TopicPartition

    Ends = dict[TopicPartition, OffsetInfo]

app = new_group("Create, list, describe, alter and delete topics.")

NewTopics = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topic names.")]
PartitionCount = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        "-p",
        min=1,
        max=2147483647,
        metavar="N",
        help="Number of partitions.",
        show_default="the broker's num.partitions",
    ),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option(
        "--replication-factor",
        "-r",
        min=1,
        max=32767,
        metavar="N",
        help="Replication factor.",
        show_default="the broker's default.replication.factor",
    ),
]
IfNotExists = Annotated[bool, typer.Option("--if-not-exists", help="Do not fail if a topic exists.")]
_COLUMNS = ("partition", "leader", "epoch", "replicas", "in sync", "offline", "earliest", "latest")
_KEYS = ("partition", "leader", "leader_epoch", "replicas", "in_sync", "offline", "earliest", "latest")
UnderReplicated = Annotated[
    bool,
    typer.Option("--under-replicated", help="Only partitions with out-of-sync replicas or without a leader."),
]
SAMPLE_RECORDS_MAX = 20
SAMPLE_PARTITIONS_MAX = 50
SAMPLE_SECONDS_MAX = 2.0


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="topic")


@command(app, "create")
def create(
    session: Session,
    names: NewTopics,
    partitions: PartitionCount = None,
    replication_factor: ReplicationFactor = None,
    configs: Configs = None,
    if_not_exists: IfNotExists = False,
    dry_run: DryRun = False,
) -> None:
    """Create topics.

    JSON: a list of {"name", "id", "partitions", "replication_factor", "configs"}.
    """
    from ottla.base.ids import uuid_text
    from ottla.client.admin_results import NewTopic

    to_create = list(dict.fromkeys(names))
    with session.admin() as admin:
        if if_not_exists:
            existing = admin.list_topics(include_internal=True)
            to_create = [name for name in to_create if name not in existing]
        new = [
            NewTopic(name, partitions or -1, replication_factor or -1, dict(parse_assignments(configs)))
            for name in to_create
        ]
        created = admin.create_topics(new, validate_only=dry_run) if new else {}
    if session.is_json:
        print_json(
            [
                {
                    "name": each.name,
                    "id": uuid_text(each.id),
                    "partitions": each.partitions,
                    "replication_factor": each.replication_factor,
                    "configs": dict(sorted(each.configs.items())),
                }
                for each in created.values()
            ]
        )
        return
    for name in dict.fromkeys(names):
        if name in created:
            count = created[name].partitions
            verb = "can be created" if dry_run else "created"
            print(f"{name}: {verb}" + (f", {count_text(count, 'partition')}" if count > 0 else ""))
        else:
            print(f"{name}: already exists")


@command(app, "list")
def list_topics(
    session: Session,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
) -> None:
    """List topics.

    JSON: a list of {"name", "partitions", "replication_factor", "is_internal"}.
    """
    with session.admin() as admin:
        listed = admin.list_topics(include_internal=internal)
        described = admin.describe_topics(listed) if listed else {}
    names = ("name", "partitions", "replication_factor", "is_internal")
    rows = [
        (
            name,
            len(topic.partitions),
            max((len(each.replicas) for each in topic.partitions), default=0),
            topic.is_internal,
        )
        for name, topic in sorted(described.items())
    ]
    if session.is_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif internal:
        print_table(("topic", "partitions", "replicas", "internal"), rows)
    else:
        print_table(("topic", "partitions", "replicas"), [row[:3] for row in rows])


@command(app, "describe")
def describe(
    session: Session,
    names: Topics,
    under_replicated: UnderReplicated = False,
) -> None:
    """Describe topics: partitions, leaders, replicas, offsets, and their own configs.

    JSON: a list of {"name", "id", "is_internal", "configs", "partitions": [{"partition", "leader", "leader_epoch",
    "replicas", "in_sync", "offline", "earliest", "latest"}]}; "leader", "earliest" and "latest" are null without a
    leader.
    """
    from ottla.base.ids import uuid_text
    from ottla.client.admin_results import ConfigResource

    with session.admin() as admin:
        topics = require_topics(admin, names)
        earliest, latest = offsets(admin, topics, "earliest"), offsets(admin, topics, "latest")
        resources = {name: ConfigResource("topic", name) for name in topics}
        configs = admin.describe_configs(resources.values())
    documents = []
    for name, topic in topics.items():
        own = {each.name: each.value for each in configs[resources[name]].values() if each.source == "dynamic_topic"}
        parts = [
            each
            for each in topic.partitions
            if not under_replicated or len(each.in_sync) < len(each.replicas) or each.leader is None
        ]
        rows = [_partition_row(name, each, earliest, latest) for each in parts]
        documents.append((topic, own, rows))
    if session.is_json:
        print_json(
            [
                {
                    "name": topic.name,
                    "id": uuid_text(topic.id),
                    "is_internal": topic.is_internal,
                    "configs": own,
                    "partitions": [dict(zip(_KEYS, row, strict=True)) for row in rows],
                }
                for topic, own, rows in documents
            ]
        )
        return
    for index, (topic, own, rows) in enumerate(documents):
        settings = "  ".join(f"{key}={value}" for key, value in sorted(own.items()))
        print(
            ("\n" if index else "") + f"{topic.name}  id {uuid_text(topic.id)}" + (f"  {settings}" if settings else "")
        )
        print_table(_COLUMNS, rows)


def offsets(admin: "Admin", topics: "dict[str, TopicDescription]", spec: str) -> "Ends":
    """Return the earliest or latest offset of every partition that has a leader."""
    partitions: dict[tuple[str, int], str | int] = {
        (name, each.partition): spec
        for name, topic in topics.items()
        for each in topic.partitions
        if each.leader is not None
    }
    return admin.list_offsets(partitions) if partitions else {}


def _partition_row(topic: str, each: "PartitionDescription", earliest: "Ends", latest: "Ends") -> tuple[Any, ...]:
    from ottla.client.records import TopicPartition

    partition = TopicPartition(topic, each.partition)
    ends = (earliest[partition].offset, latest[partition].offset) if each.leader is not None else (None, None)
    leader = each.leader.id if each.leader is not None else None
    return (
        each.partition,
        leader,
        each.leader_epoch,
        list(each.replicas),
        list(each.in_sync),
        list(each.offline),
        *ends,
    )


@command(app, "alter")
def alter(
    session: Session,
    name: Topic,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, max=2147483647, metavar="N", help="New number of partitions."),
    ] = None,
    configs: Configs = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="A config to reset to its default; repeatable.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Alter a topic: add partitions, set and unset configs.

    Adding partitions moves most keys to another partition. For a topic that holds records with keys, the command
    therefore asks for confirmation; --yes skips the question.

    JSON: {"name", "partitions", "configs"}: the new number of partitions and the changed configs (null: unset).
    """
    changes: dict[str, str | None] = {**parse_assignments(configs), **dict.fromkeys(unset or ())}
    if partitions is None and not changes:
        raise typer.BadParameter("nothing to alter: pass --partitions, --config or --unset")
    with session.admin() as admin:
        topic = require_topics(admin, [name])[name]
        present = len(topic.partitions)
        if changes:  # validate first, so that an invalid config does not leave the topic half altered
            change_configs(admin, "topic", name, changes, is_dry_run=True)
        if partitions is not None and partitions != present:
            if partitions < present:
                raise CliError(
                    f"{name} has {count_text(present, 'partition')}; the number cannot be reduced to {partitions}",
                    "Create a new topic and copy the records.",
                )
            if not dry_run and _has_keys(session, admin, topic):
                confirm_or_fail(
                    f"{name} holds records with keys: increasing partitions from {present} to {partitions} moves most "
                    "keys to another partition, away from their older records. Add partitions?",
                    is_given=yes,
                )
            admin.create_partitions({name: partitions}, validate_only=dry_run)
        if changes and not dry_run:
            change_configs(admin, "topic", name, changes)
    _print_result(session, name, partitions or present, changes, is_dry_run=dry_run)


def _print_result(
    session: Session, name: str, partitions: int, changes: dict[str, str | None], *, is_dry_run: bool
) -> None:
    if session.is_json:
        print_json({"name": name, "partitions": partitions, "configs": changes})
        return
    configs = [f"{key}={value}" if value is not None else f"{key} unset" for key, value in changes.items()]
    print(f"{name}: {'valid: ' if is_dry_run else ''}{', '.join([count_text(partitions, 'partition'), *configs])}")


def _has_keys(session: Session, admin: "Admin", topic: "TopicDescription") -> bool:
    """Return whether any of each partition's newest 20 records has a key."""
    from ottla.client.records import TopicPartition

    topics = {topic.name: topic}
    earliest, latest = offsets(admin, topics, "earliest"), offsets(admin, topics, "latest")
    filled = [partition for partition, end in latest.items() if end.offset > earliest[partition].offset][
        :SAMPLE_PARTITIONS_MAX
    ]
    if not filled:
        return False
    with session.consumer({"enable.auto.commit": False, "group.id": None}) as consumer:
        consumer.assign(filled)
        for partition in filled:
            consumer.seek(
                TopicPartition(*partition),
                max(earliest[partition].offset, latest[partition].offset - SAMPLE_RECORDS_MAX),
            )
        seen: dict[TopicPartition, int] = {}
        while len(seen) < len(filled) and (records := consumer.poll(SAMPLE_SECONDS_MAX)):
            if any(record.key is not None for record in records):
                return True
            seen.update(
                (each.topic_partition, each.offset)
                for each in records
                if each.offset + 1 >= latest[each.topic_partition].offset
            )
    return False


@command(app, "delete")
def delete(
    session: Session,
    names: Topics,
    yes: Yes = False,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Do not fail if a topic does not exist.")] = False,
) -> None:
    """Delete topics and all their records. Internal topics take a second confirmation; --yes gives both.

    JSON: a list of the deleted names.
    """
    to_delete = list(dict.fromkeys(names))
    with session.admin() as admin:
        if if_exists:
            existing = admin.list_topics(include_internal=True)
            to_delete = [name for name in to_delete if name in existing]
        if to_delete:
            described = require_topics(admin, to_delete)
            confirm_or_fail(f"Delete {', '.join(to_delete)} with all records?", is_given=yes)
            internal = [name for name, topic in described.items() if topic.is_internal]
            if internal:
                confirm_or_fail(
                    f"{', '.join(internal)} is internal: groups lose their committed offsets. Delete it all the same?",
                    is_given=yes,
                )
            admin.delete_topics(to_delete)
    if session.is_json:
        print_json(to_delete)
    else:
        for name in dict.fromkeys(names):
            print(f"{name}: {'deleted' if name in to_delete else 'did not exist'}")
