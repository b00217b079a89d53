"""`ottla group lag`: consumer lag, once or as a live view."""

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

JSON_HELP = "Print JSON instead of tables; with --follow, one line per interval."
_COLUMNS = ("group", "topic", "partition", "committed", "end", "lag", "member", "host")
_KEYS = ("group", "topic", "partition", "committed", "end", "lag", "member_id", "host")


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Lag of a group in a partition. `committed` is None without an offset, `end` without a partition or leader."""

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
        typer.Argument(metavar="GROUP...", autocompletion=group_names, help="Group names.", show_default="all"),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Refresh until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, metavar="SECONDS", help="Refresh interval.")
    ] = 1.0,
) -> None:
    """Show the lag of groups: the end offset of each partition minus the committed offset.

    JSON: {"time", "total", "partitions": [{"group", "topic", "partition", "committed", "end", "lag", "member_id",
    "host"}]}; "time" is in epoch milliseconds; unknown values are null.
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
    """Return whether members can be described: that is supported for classic groups only, unlike committed offsets."""
    return group.type.lower() in ("", "classic")


def read_lags(admin: "Admin", names: list[str]) -> list[PartitionLag]:
    """Read the current lag of the groups, or of all groups for none."""
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
    """Return end offsets of existing partitions: a group may have offsets of a deleted topic."""
    known = admin.list_topics(include_internal=True)
    topics = list(dict.fromkeys(partition.topic for partition in partitions if partition.topic in known))
    described = admin.describe_topics(topics) if topics else {}
    led = {
        (name, each.partition)
        for name, topic in described.items()
        for each in topic.partitions
        if each.leader is not None
    }
    requested: dict[tuple[str, int], str | int] = {partition: "latest" for partition in partitions if partition in led}
    return {partition: info.offset for partition, info in admin.list_offsets(requested).items()} if requested else {}


def total_lag(found: list[PartitionLag]) -> int:
    return sum(each.lag or 0 for each in found)


def _show(session: Session, found: list[PartitionLag]) -> None:
    if session.is_json:
        rows = [dict(zip(_KEYS, each.row, strict=True)) for each in found]
        print_json({"time": int(time.time() * 1000), "total": total_lag(found), "partitions": rows})
        return
    print_table(_COLUMNS, [each.row for each in found])
    print(f"\ntotal lag: {total_lag(found):,}")


def _live(admin: "Admin", names: list[str], interval: float) -> None:
    """Redraw the table every interval, with the rate at which the lag changes."""
    from rich.live import Live

    before: tuple[float, int] | None = None
    with Live(console=new_console(), auto_refresh=False) as live:
        while True:
            found = read_lags(admin, names)
            now, lag_now = time.monotonic(), total_lag(found)
            change = 0.0 if before is None else (lag_now - before[1]) / (now - before[0])
            before = now, lag_now
            live.update(_render(found, lag_now, change), refresh=True)
            time.sleep(interval)


def _render(found: list[PartitionLag], lag_now: int, change: float) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    style = "red" if change > 0 else "green"
    foot = (
        Text(f"\n{time.strftime('%H:%M:%S')}  total lag: {lag_now:,}  ")
        .append(f"{change:+,.0f}/s", style=style)
        .append("  Ctrl-C to quit")
    )
    return Group(make_table(_COLUMNS, [each.row for each in found]), foot)
