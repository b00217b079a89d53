"""`ottla group list|describe|delete`; lag and the resetting of offsets have files of their own."""

from typing import Annotated, Any

import typer

from ottla.cli import group_lag, group_reset
from ottla.cli.command import command
from ottla.cli.errors import require_groups
from ottla.cli.group_lag import is_classic
from ottla.cli.options import Groups, Yes, confirm_or_fail
from ottla.cli.output import print_json, print_table
from ottla.cli.session import Session
from ottla.client.admin_results import GroupDescription, GroupListing, MemberDescription

app = typer.Typer(no_args_is_help=True, help="Look at groups, reset their offsets, delete them.")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="group")


@command(app, "list")
def list_groups(
    session: Session,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only these: Stable, Empty, Dead, PreparingRebalance, ..."),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only these: classic, consumer, share, ...")
    ] = None,
) -> None:
    """List groups.

    JSON: a list of {"group", "state", "type", "protocol_type"}.
    """
    with session.admin() as admin:
        found = admin.list_groups(states=state or (), types=kind or ())
    rows = [(each.group, each.state, each.type, each.protocol_type) for each in found.values()]
    if session.is_json:
        print_json([dict(zip(("group", "state", "type", "protocol_type"), row, strict=True)) for row in rows])
    else:
        print_table(("group", "state", "type", "protocol"), rows)


@command(app, "describe")
def describe(session: Session, names: Groups) -> None:
    """Describe groups: state, coordinator, members and the partitions that they read.

    JSON: a list of {"group", "state", "protocol_type", "protocol", "coordinator", "members": [{"member_id", "instance_id", "client_id",
    "host", "partitions": [{"topic", "partition"}]}]}; of a group that is not classic, "members" and "coordinator" are null.
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
                + f"{each.group}  {each.state}, of type {each.type}: its members cannot be shown yet"
            )
            continue
        plural = "s" if len(each.members) != 1 else ""
        told = f"{each.group}  {each.state}, {len(each.members)} member{plural}, coordinator {each.coordinator}"
        print(("\n" if index else "") + told + (f", {each.protocol}" if each.protocol else ""))
        if each.members:
            rows = [
                (member.member_id, member.instance_id, member.client_id, member.host, _shown(member))
                for member in each.members
            ]
            print_table(("member", "instance", "client", "host", "partitions"), rows)


def _shown(member: MemberDescription) -> str:
    topics: dict[str, list[int]] = {}
    for place in member.assignment:
        topics.setdefault(place.topic, []).append(place.partition)
    return (
        " ".join(f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in sorted(topics.items())) or "-"
    )


def _document(group: GroupDescription | GroupListing) -> dict[str, Any]:
    if isinstance(group, GroupListing):
        return {"group": group.group, "state": group.state, "protocol_type": group.protocol_type, "protocol": None,
                "coordinator": None, "members": None}  # fmt: skip
    members = [
        {"member_id": each.member_id, "instance_id": each.instance_id, "client_id": each.client_id, "host": each.host,
         "partitions": [{"topic": place.topic, "partition": place.partition} for place in sorted(each.assignment)]}
        for each in group.members
    ]  # fmt: skip
    return {"group": group.group, "state": group.state, "protocol_type": group.protocol_type, "protocol": group.protocol,
            "coordinator": group.coordinator, "members": members}  # fmt: skip


command(app, "lag", json_help=group_lag.JSON_HELP)(group_lag.lag)
command(app, "reset-offsets")(group_reset.reset_offsets)


@command(app, "delete")
def delete(session: Session, names: Groups, yes: Yes = False) -> None:
    """Delete groups that have no members, and the offsets that they committed.

    JSON: a list of the names that were deleted.
    """
    with session.admin() as admin:
        wanted = require_groups(admin, names)
        confirm_or_fail(f"Delete {', '.join(wanted)} with all committed offsets?", is_given=yes)
        admin.delete_groups(wanted)
    if session.is_json:
        print_json(wanted)
    else:
        for name in wanted:
            print(f"{name}: deleted")
