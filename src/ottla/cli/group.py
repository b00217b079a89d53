"""`ottla group list|describe|delete`. `lag` is in group_lag.py, `reset-offsets` in group_reset.py."""

from typing import Annotated, Any

import typer

from ottla.cli import group_lag, group_reset
from ottla.cli.command import command
from ottla.cli.errors import require_groups
from ottla.cli.group_lag import is_classic
from ottla.cli.options import Groups, Yes, confirm_or_fail
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session
from ottla.cli.usage import new_group
from ottla.client.admin_results import GroupDescription, GroupListing, MemberDescription

app = new_group("List and describe groups, show lag, reset offsets, delete.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="group")


@command(app, "list")
def list_groups(
    session: Session,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only these states: Stable, Empty, Dead, PreparingRebalance, ...; repeatable.",
        ),
    ] = None,
    group_type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only these types: classic, consumer, share, ...; repeatable."),
    ] = None,
) -> None:
    """List groups.

    JSON: a list of {"group", "state", "type", "protocol_type"}.
    """
    with session.admin() as admin:
        found = admin.list_groups(states=state or (), types=group_type or ())
    rows = [(each.group, each.state, each.type, each.protocol_type) for each in found.values()]
    if session.is_json:
        print_json([dict(zip(("group", "state", "type", "protocol_type"), row, strict=True)) for row in rows])
    else:
        print_table(("group", "state", "type", "protocol"), rows)


@command(app, "describe")
def describe(session: Session, names: Groups) -> None:
    """Describe groups: state, coordinator, members and their partitions.

    JSON: a list of {"group", "state", "protocol_type", "protocol", "coordinator", "members": [{"member_id",
    "instance_id", "client_id", "host", "partitions": [{"topic", "partition"}]}]}; for a group that is not classic,
    "members" and "coordinator" are null.
    """
    with session.admin() as admin:
        listed = admin.list_groups()
        found = [
            admin.describe_groups([name])[name] if is_classic(listed[name]) else listed[name]
            for name in require_groups(admin, names)
        ]
    if session.is_json:
        print_json([_document(each) for each in found])
        return
    for index, each in enumerate(found):
        if isinstance(each, GroupListing):
            print(
                ("\n" if index else "")
                + f"{each.group}  {each.state}, type {each.type}: describing its members is not supported yet"
            )
            continue
        plural = "s" if len(each.members) != 1 else ""
        summary = f"{each.group}  {each.state}, {len(each.members)} member{plural}, coordinator {each.coordinator}"
        print(("\n" if index else "") + summary + (f", {each.protocol}" if each.protocol else ""))
        if each.members:
            rows = [
                (member.member_id, member.instance_id, member.client_id, member.host, _format_assignment(member))
                for member in each.members
            ]
            print_table(("member", "instance", "client", "host", "partitions"), rows)


def _format_assignment(member: MemberDescription) -> str:
    topics: dict[str, list[int]] = {}
    for partition in member.assignment:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return (
        " ".join(f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in sorted(topics.items())) or "-"
    )


def _document(group: GroupDescription | GroupListing) -> dict[str, Any]:
    if isinstance(group, GroupListing):
        return {
            "group": group.group,
            "state": group.state,
            "protocol_type": group.protocol_type,
            "protocol": None,
            "coordinator": None,
            "members": None,
        }
    members = [
        {
            "member_id": each.member_id,
            "instance_id": each.instance_id,
            "client_id": each.client_id,
            "host": each.host,
            "partitions": [
                {"topic": partition.topic, "partition": partition.partition} for partition in sorted(each.assignment)
            ],
        }
        for each in group.members
    ]
    return {
        "group": group.group,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "coordinator": group.coordinator,
        "members": members,
    }


command(app, "lag", json_help=group_lag.JSON_HELP)(group_lag.lag)
command(app, "reset-offsets")(group_reset.reset_offsets)


@command(app, "delete")
def delete(session: Session, names: Groups, yes: Yes = False) -> None:
    """Delete groups without members, and their committed offsets.

    JSON: a list of the deleted names.
    """
    with session.admin() as admin:
        to_delete = require_groups(admin, names)
        confirm_or_fail(f"Delete {', '.join(to_delete)} with all committed offsets?", is_given=yes)
        admin.delete_groups(to_delete)
    if session.is_json:
        print_json(to_delete)
    else:
        for name in to_delete:
            print(f"{name}: deleted")
