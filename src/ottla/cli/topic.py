"""`ottla topic create|list|delete`; to describe and to alter one have files of their own."""

from typing import Annotated

import typer

from ottla.cli import topic_alter, topic_describe
from ottla.cli.command import command
from ottla.cli.lookup import require_topics
from ottla.cli.options import Configs, DryRun, Topics, Yes, assignments, require_consent
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session

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
            NewTopic(name, partitions or -1, replication_factor or -1, dict(assignments(configs))) for name in wanted
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


command(app, "describe")(topic_describe.describe)
command(app, "alter")(topic_alter.alter)


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
            require_consent(f"Delete {', '.join(wanted)} with all records?", is_given=yes)
            admin.delete_topics(wanted)
    if session.is_json:
        print_json(wanted)
    else:
        for name in dict.fromkeys(names):
            print(f"{name}: {'deleted' if name in wanted else 'was not there'}")
