"""`ottla topic alter`: more partitions, other configs."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.config_change import change_configs
from ottla.cli.failure import Failure
from ottla.cli.lookup import require_topics
from ottla.cli.options import Configs, DryRun, Topic, Yes, assignments, require_consent
from ottla.cli.output import print_json
from ottla.cli.session import Session
from ottla.cli.topic_describe import offsets

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin_results import TopicDescription

SAMPLE_RECORDS_MAX = 20
SAMPLE_PARTITIONS_MAX = 50
SAMPLE_SECONDS_MAX = 2.0


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
    changes: dict[str, str | None] = {**assignments(configs), **dict.fromkeys(unset or ())}
    if partitions is None and not changes:
        raise typer.BadParameter("say what to alter: --partitions, --config or --unset")
    with session.admin() as admin:
        topic = require_topics(admin, [name])[name]
        present = len(topic.partitions)
        if changes:  # before anything is done: a topic that is half altered helps nobody
            change_configs(admin, "topic", name, changes, is_dry_run=True)
        if partitions is not None and partitions != present:
            if partitions < present:
                raise Failure(
                    f"{name} has {present} partitions, and they cannot become fewer",
                    "Make a new topic, and copy what is to be kept.",
                )
            if not dry_run and _has_keys(session, admin, topic):
                require_consent(
                    f"{name} holds records with keys: with {partitions} partitions instead of {present} most keys move to another "
                    "partition, away from their older records. Add partitions?",
                    is_given=yes,
                )
            admin.create_partitions({name: partitions}, validate_only=dry_run)
        if changes and not dry_run:
            change_configs(admin, "topic", name, changes)
    _report(session, name, partitions or present, changes, is_dry_run=dry_run)


def _report(session: Session, name: str, partitions: int, changes: dict[str, str | None], *, is_dry_run: bool) -> None:
    if session.is_json:
        print_json({"name": name, "partitions": partitions, "configs": changes})
        return
    told = [f"{key}={value}" if value is not None else f"{key} unset" for key, value in changes.items()]
    print(f"{name}: {'could be altered: ' if is_dry_run else ''}{', '.join([f'{partitions} partitions', *told])}")


def _has_keys(session: Session, admin: "Admin", topic: "TopicDescription") -> bool:
    """Whether some of the newest records have keys. A topic that is compacted has nothing else."""
    from ottla.client.partitions import TopicPartition

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
