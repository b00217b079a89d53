"""`ottla topic ...`."""

from typing import Annotated

import typer

from ottla.cli.command import command
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session

app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="topic")


@command(app, "list")
def list_topics(
    session: Session,
    internal: Annotated[bool, typer.Option("--internal", help="Show the broker's own topics as well.")] = False,
) -> None:
    """List topics."""
    with session.admin() as admin:
        listed = admin.list_topics(include_internal=internal)
        described = admin.describe_topics(listed) if listed else {}
    rows = [
        (name, len(topic.partitions), max((len(each.replicas) for each in topic.partitions), default=0), topic.is_internal)
        for name, topic in sorted(described.items())
    ]
    if session.is_json:
        print_json([dict(zip(("name", "partitions", "replication_factor", "is_internal"), row, strict=True)) for row in rows])
    else:
        print_table(("topic", "partitions", "replicas", "internal")[: 4 if internal else 3], [row[: 4 if internal else 3] for row in rows])
