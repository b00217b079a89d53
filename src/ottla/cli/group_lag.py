"""`ottla group lag`: how far groups are behind, once or as a live view."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.completion import group_names
from ottla.cli.errors import require_groups
from ottla.cli.output import make_table, new_console, print_json, print_table
from ottla.cli.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.client import Admin
    from ottla.client.admin_results import GroupListing
    from ottla.client.records import TopicPartition

JSON_HELP = "Print JSON instead of tables; with --follow a line for each read_lags."
_COLUMNS = ("group", "topic", "partition", "committed", "end", "lag", "member", "host")
_KEYS = ("group", "topic", "partition", "committed", "end", "lag", "member_id", "host")


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition of a group: `committed` is None where it has none yet, `end` where the partition is gone or has no leader."""

    group: str
    partition: "TopicPartition"
    committed: int | None
    end: int | None
    member_id: str | None
    host: str | None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)

    @property
    def row(self) -> tuple[Any, ...]:
        return (self.group, *self.partition, self.committed, self.end, self.lag, self.member_id, self.host)


def lag(
    session: Session,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="GROUP...", autocompletion=group_names, help="Names of groups.", show_default="all"),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, metavar="SECONDS", help="How long to wait between looks.")
    ] = 1.0,
) -> None:
    """Show how far groups are behind: the end of each partition less what was committed.

    JSON: {"time", "total_lag", "partitions": [{"group", "topic", "partition", "committed", "end", "lag", "member_id", "host"}]}; "time" is in
    milliseconds since 1970, and what is not known is null.
    """
    with session.admin() as admin:
        require_groups(admin, names or ())
        if not follow:
            _show(session, read_lags(admin, names or []))
            return
        if session.is_json:
            while True:
                _show(session, read_lags(admin, names or []))
                time.sleep(interval)
        _live(admin, names or [], interval)


def is_classic(group: "GroupListing") -> bool:
    """Who reads what is told of classic groups only; what was committed is told of all."""
    return group.type.lower() in ("", "classic")


def read_lags(admin: "Admin", names: list[str]) -> list[PartitionLag]:
    """The lag of groups now; of all, where none is named."""
    listed = admin.list_groups()
    found: list[PartitionLag] = []
    for name in names or list(listed):
        committed = admin.list_group_offsets(name)
        members = admin.describe_groups([name])[name].members if name in listed and is_classic(listed[name]) else ()
        owners = {partition: member for member in members for partition in member.assignment}
        partitions = sorted({**dict.fromkeys(committed), **dict.fromkeys(owners)})
        ends = _ends(admin, partitions)
        for partition in partitions:
            offset = committed[partition].offset if partition in committed else None
            member_id, host = (
                (owners[partition].member_id, owners[partition].host) if partition in owners else (None, None)
            )
            found.append(PartitionLag(name, partition, offset, ends.get(partition), member_id, host))
    return found


def _ends(admin: "Admin", partitions: "list[TopicPartition]") -> "dict[TopicPartition, int]":
    """Those of partitions that are there: a group may remember offsets of a topic that is gone."""
    known = admin.list_topics(include_internal=True)
    topics = list(dict.fromkeys(partition.topic for partition in partitions if partition.topic in known))
    described = admin.describe_topics(topics) if topics else {}
    led = {
        (name, each.partition)
        for name, topic in described.items()
        for each in topic.partitions
        if each.leader is not None
    }
    wanted: dict[tuple[str, int], str | int] = {partition: "latest" for partition in partitions if partition in led}
    return {partition: info.offset for partition, info in admin.list_offsets(wanted).items()} if wanted else {}


def total_lag(found: list[PartitionLag]) -> int:
    return sum(each.lag or 0 for each in found)


def _show(session: Session, found: list[PartitionLag]) -> None:
    if session.is_json:
        rows = [dict(zip(_KEYS, each.row, strict=True)) for each in found]
        print_json({"time": int(time.time() * 1000), "total_lag": total_lag(found), "partitions": rows})
        return
    print_table(_COLUMNS, [each.row for each in found])
    print(f"\nlag in all: {total_lag(found):,}")


def _live(admin: "Admin", names: list[str], interval: float) -> None:
    """A table that is drawn anew; with how fast the lag changes, which says more than the lag itself."""
    from rich.live import Live

    before: tuple[float, int] | None = None
    with Live(console=new_console(), auto_refresh=False) as live:
        while True:
            found = read_lags(admin, names)
            now, behind = time.monotonic(), total_lag(found)
            change = 0.0 if before is None else (behind - before[1]) / (now - before[0])
            before = now, behind
            live.update(_render(found, behind, change), refresh=True)
            time.sleep(interval)


def _render(found: list[PartitionLag], behind: int, change: float) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    style = "red" if change > 0 else "green"
    foot = (
        Text(f"\n{time.strftime('%H:%M:%S')}  lag in all: {behind:,}  ")
        .append(f"{change:+,.0f}/s", style=style)
        .append("  Ctrl-C ends")
    )
    return Group(make_table(_COLUMNS, [each.row for each in found]), foot)
