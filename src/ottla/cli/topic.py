"""`ottla topic create|list|delete`; to describe and to alter one have files of their own."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.command import command
from ottla.cli.config import change_configs
from ottla.cli.errors import CliError, require_topics
from ottla.cli.options import Configs, DryRun, Topic, Topics, Yes, confirm_or_fail, parse_assignments
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import OffsetInfo, PartitionDescription, TopicDescription
    from ottla.client.records import TopicPartition

    Ends = dict[TopicPartition, OffsetInfo]

app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="topic")


@command(app, "create")
def create(
    session: Session,
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names of topics to make.")],
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            metavar="N",
            help="How many partitions.",
            show_default="the broker's num.partitions",
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            metavar="N",
            help="Replicas.",
            show_default="the broker's default.replication.factor",
        ),
    ] = None,
    configs: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that exists already is no failure.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create topics.

    JSON: a list of {"name", "id", "partitions", "replication_factor", "configs"}.
    """
    from ottla.base.ids import uuid_text
    from ottla.client.admin_results import NewTopic

    wanted = list(dict.fromkeys(names))
    with session.admin() as admin:
        if if_not_exists:
            existing = admin.list_topics(include_internal=True)
            wanted = [name for name in wanted if name not in existing]
        new = [
            NewTopic(name, partitions or -1, replication_factor or -1, dict(parse_assignments(configs)))
            for name in wanted
        ]
        made = admin.create_topics(new, validate_only=dry_run) if new else {}
    if session.is_json:
        print_json(
            [
                {"name": each.name, "id": uuid_text(each.id), "partitions": each.partitions,
                 "replication_factor": each.replication_factor, "configs": dict(sorted(each.configs.items()))}
                for each in made.values()
            ]
        )  # fmt: skip
        return
    for name in dict.fromkeys(names):
        if name in made:
            number = made[name].partitions
            verb = "could be created" if dry_run else "created"
            print(f"{name}: {verb}" + (f", {number} partition{'s' if number != 1 else ''}" if number > 0 else ""))
        else:
            print(f"{name}: exists already")


@command(app, "list")
def list_topics(
    session: Session,
    internal: Annotated[bool, typer.Option("--internal", help="Show the broker's own topics as well.")] = False,
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


_COLUMNS = ("partition", "leader", "epoch", "replicas", "in sync", "offline", "earliest", "latest")
_KEYS = ("partition", "leader", "leader_epoch", "replicas", "in_sync", "offline", "earliest", "latest")


@command(app, "describe")
def describe(
    session: Session,
    names: Topics,
    under_replicated: Annotated[
        bool,
        typer.Option(
            "--under-replicated", help="Only partitions with replicas that are not in sync, or without a leader."
        ),
    ] = False,
) -> None:
    """Describe topics: partitions, leaders, replicas, offsets, and the configs that were set.

    JSON: a list of {"name", "id", "is_internal", "configs", "partitions": [{"partition", "leader", "leader_epoch", "replicas",
    "in_sync", "offline", "earliest", "latest"}]}; "leader", "earliest" and "latest" are null where there is no leader.
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
                {"name": topic.name, "id": uuid_text(topic.id), "is_internal": topic.is_internal, "configs": own,
                 "partitions": [dict(zip(_KEYS, row, strict=True)) for row in rows]}
                for topic, own, rows in documents
            ]
        )  # fmt: skip
        return
    for index, (topic, own, rows) in enumerate(documents):
        told = "  ".join(f"{key}={value}" for key, value in sorted(own.items()))
        print(("\n" if index else "") + f"{topic.name}  id {uuid_text(topic.id)}" + (f"  {told}" if told else ""))
        print_table(_COLUMNS, rows)


def offsets(admin: "Admin", topics: "dict[str, TopicDescription]", spec: str) -> "Ends":
    """An end of every partition that has a leader to ask."""
    places: dict[tuple[str, int], str | int] = {
        (name, each.partition): spec
        for name, topic in topics.items()
        for each in topic.partitions
        if each.leader is not None
    }
    return admin.list_offsets(places) if places else {}


def _partition_row(topic: str, each: "PartitionDescription", earliest: "Ends", latest: "Ends") -> tuple[Any, ...]:
    from ottla.client.records import TopicPartition

    place = TopicPartition(topic, each.partition)
    ends = (earliest[place].offset, latest[place].offset) if each.leader is not None else (None, None)
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


SAMPLE_RECORDS_MAX = 20
SAMPLE_PARTITIONS_MAX = 50
SAMPLE_SECONDS_MAX = 2.0


@command(app, "alter")
def alter(
    session: Session,
    name: Topic,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, metavar="N", help="How many there shall be.")
    ] = None,
    configs: Configs = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="A config that goes back to its default.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Alter a topic: add partitions, set and unset configs.

    Records with the same key are in the same partition for as long as the number of partitions stays. Where the topic holds records with
    keys, more partitions are therefore added after a warning and a question only; --yes is the answer.

    JSON: {"name", "partitions", "configs"}: the number of partitions now, and the configs that were changed (null: unset).
    """
    changes: dict[str, str | None] = {**parse_assignments(configs), **dict.fromkeys(unset or ())}
    if partitions is None and not changes:
        raise typer.BadParameter("say what to alter: --partitions, --config or --unset")
    with session.admin() as admin:
        topic = require_topics(admin, [name])[name]
        present = len(topic.partitions)
        if changes:  # before anything is done: a topic that is half altered helps nobody
            change_configs(admin, "topic", name, changes, is_dry_run=True)
        if partitions is not None and partitions != present:
            if partitions < present:
                raise CliError(
                    f"{name} has {present} partitions, and they cannot become fewer",
                    "Make a new topic, and copy what is to be kept.",
                )
            if not dry_run and _has_keys(session, admin, topic):
                confirm_or_fail(
                    f"{name} holds records with keys: with {partitions} partitions instead of {present} most keys move to another "
                    "partition, away from their older records. Add partitions?",
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
    told = [f"{key}={value}" if value is not None else f"{key} unset" for key, value in changes.items()]
    print(f"{name}: {'could be altered: ' if is_dry_run else ''}{', '.join([f'{partitions} partitions', *told])}")


def _has_keys(session: Session, admin: "Admin", topic: "TopicDescription") -> bool:
    """Whether some of the newest records have keys. A topic that is compacted has nothing else."""
    from ottla.client.records import TopicPartition

    topics = {topic.name: topic}
    earliest, latest = offsets(admin, topics, "earliest"), offsets(admin, topics, "latest")
    filled = [place for place, end in latest.items() if end.offset > earliest[place].offset][:SAMPLE_PARTITIONS_MAX]
    if not filled:
        return False
    with session.consumer({"enable.auto.commit": False, "group.id": None}) as consumer:
        consumer.assign(filled)
        for place in filled:
            consumer.seek(
                TopicPartition(*place), max(earliest[place].offset, latest[place].offset - SAMPLE_RECORDS_MAX)
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
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A topic that is not there is no failure.")] = False,
) -> None:
    """Delete topics and all that is in them.

    JSON: a list of the names that were deleted.
    """
    wanted = list(dict.fromkeys(names))
    with session.admin() as admin:
        if if_exists:
            existing = admin.list_topics(include_internal=True)
            wanted = [name for name in wanted if name in existing]
        if wanted:
            require_topics(admin, wanted)
            confirm_or_fail(f"Delete {', '.join(wanted)} with all records?", is_given=yes)
            admin.delete_topics(wanted)
    if session.is_json:
        print_json(wanted)
    else:
        for name in dict.fromkeys(names):
            print(f"{name}: {'deleted' if name in wanted else 'was not there'}")
