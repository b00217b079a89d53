"""Views of `ottla demo`: snapshots of the group from the broker, their changes, live and plain output."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from ottla.client import Admin, ClientError, TopicPartition

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")
EVENTS_SHOWN = 8
BAR_WIDTH = 24
BAR_FULL = 400
"""Lag at which a bar is full."""


@dataclass(frozen=True, slots=True)
class Partition:
    number: int
    end: int
    committed: int
    owner: str | None

    @property
    def lag(self) -> int:
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """State of the group at a time. `members` maps names to partitions; empty during a rebalance."""

    at_s: float
    state: str
    members: dict[str, tuple[int, ...]]
    partitions: tuple[Partition, ...]

    @property
    def produced(self) -> int:
        return sum(partition.end for partition in self.partitions)

    @property
    def processed(self) -> int:
        return sum(partition.committed for partition in self.partitions)

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    def lag_of(self, member: str) -> int:
        return sum(partition.lag for partition in self.partitions if partition.owner == member)


def take_snapshot(admin: Admin, topic: str, group: str, partitions: int, at_s: float) -> GroupSnapshot:
    """Read end offsets, committed offsets and members from the broker."""
    topic_partitions = [TopicPartition(topic, number) for number in range(partitions)]
    ends = admin.list_offsets(dict.fromkeys(topic_partitions, "latest"))
    try:
        described = admin.describe_groups([group])[group]
        committed = admin.list_group_offsets(group)
    except ClientError:  # the group does not exist yet
        return GroupSnapshot(
            at_s, "Empty", {}, tuple(Partition(each.partition, ends[each].offset, 0, None) for each in topic_partitions)
        )
    members = {member.client_id: tuple(each.partition for each in member.assignment) for member in described.members}
    owners = {number: name for name, owned in members.items() for number in owned}
    offsets = {each.partition: info.offset for each, info in committed.items()}
    found = tuple(
        Partition(each.partition, ends[each].offset, offsets.get(each.partition, 0), owners.get(each.partition))
        for each in topic_partitions
    )
    return GroupSnapshot(at_s, described.state, dict(sorted(members.items())), found)


@dataclass(slots=True)
class ChangeLog:
    """Describes changes between stable snapshots; during a rebalance partitions have no owner."""

    owners: dict[int, str] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    moved: int = 0

    def update(self, snapshot: GroupSnapshot) -> list[str]:
        """Return a sentence for each change since the last stable snapshot."""
        if snapshot.state != "Stable" or any(partition.owner is None for partition in snapshot.partitions):
            return []
        changes = [f"{name} joined the group" for name in snapshot.members if name not in self.members]
        changes += [f"{name} is no longer in the group" for name in self.members if name not in snapshot.members]
        moves: dict[tuple[str, str], list[int]] = {}
        for partition in snapshot.partitions:
            assert partition.owner is not None
            before = self.owners.get(partition.number)
            if before is not None and before != partition.owner:
                moves.setdefault((before, partition.owner), []).append(partition.number)
        for (before, after), numbers in moves.items():
            self.moved += len(numbers)
            changes.append(f"{_format_partitions(numbers)} moved from {before} to {after}")
        self.owners = {
            partition.number: partition.owner for partition in snapshot.partitions if partition.owner is not None
        }
        self.members = tuple(snapshot.members)
        return changes


def _format_partitions(numbers: list[int]) -> str:
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


class View(Protocol):
    title: str

    def show(self, snapshot: GroupSnapshot, produced_rate: float, processed_rate: float) -> None: ...
    def log(self, at_s: float, sentence: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *ended: object) -> None: ...


class PlainView:
    """Prints a line per second and per event."""

    title = ""

    def __init__(self) -> None:
        self._last_s = -1.0

    def show(self, snapshot: GroupSnapshot, produced_rate: float, processed_rate: float) -> None:
        if snapshot.at_s - self._last_s >= 1:
            self._last_s = snapshot.at_s
            owners = "  ".join(f"{name} {','.join(map(str, owned)) or '-'}" for name, owned in snapshot.members.items())
            print(
                f"{snapshot.at_s:5.1f} s  in {produced_rate:5,.0f}/s  out {processed_rate:5,.0f}/s  "
                f"lag {snapshot.lag:5,}  "
                f"{owners if snapshot.state == 'Stable' else snapshot.state}",
                flush=True,
            )

    def log(self, at_s: float, sentence: str) -> None:
        print(f"{at_s:5.1f} s  * {sentence}", flush=True)

    def __enter__(self) -> Self:
        print(self.title, flush=True)
        return self

    def __exit__(self, *ended: object) -> None:
        return None


class LiveView:
    """Redraws partitions, members and events several times a second."""

    title = ""

    def __init__(self, *, console: "Console | None" = None) -> None:
        from rich.live import Live

        self.events: list[str] = []
        self._colors: dict[str, str] = {}
        self._live = Live(console=console, auto_refresh=False)

    def show(self, snapshot: GroupSnapshot, produced_rate: float, processed_rate: float) -> None:
        self._live.update(self.render(snapshot, produced_rate, processed_rate), refresh=True)

    def log(self, at_s: float, sentence: str) -> None:
        self.events.append(f"[dim]{at_s:5.1f} s[/dim]  {sentence}")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._live.__exit__(*ended)

    def render(self, snapshot: GroupSnapshot, produced_rate: float, processed_rate: float) -> "RenderableType":
        from rich.columns import Columns
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        state = {"Stable": "[green]stable[/green]"}.get(snapshot.state, f"[yellow]{snapshot.state}[/yellow]")
        head = Text.from_markup(
            f"[bold]{self.title}[/bold]   {snapshot.at_s:4.1f} s   in [bold]{produced_rate:,.0f}[/bold]/s   "
            f"out [bold]{processed_rate:,.0f}[/bold]/s   lag [bold]{snapshot.lag:,}[/bold]   group {state}"
        )
        events = Panel(
            "\n".join(self.events[-EVENTS_SHOWN:]), title="events", title_align="left", height=EVENTS_SHOWN + 2
        )
        return Group(head, "", Columns([self._partitions(snapshot), self._members(snapshot)]), events)

    def _partitions(self, snapshot: GroupSnapshot) -> "Table":
        from rich.table import Table

        table = Table(title="partitions of orders", title_justify="left")
        for name in ("", "end", "committed", "lag"):
            table.add_column(name, justify="right")
        table.add_column("", width=BAR_WIDTH)
        table.add_column("consumer", width=12)
        for partition in snapshot.partitions:
            color = self._color(partition.owner)
            bar = "█" * min(BAR_WIDTH, -(-partition.lag * BAR_WIDTH // BAR_FULL))
            owner = f"[{color}]{partition.owner}[/{color}]" if partition.owner else "[dim]none[/dim]"
            table.add_row(
                str(partition.number),
                f"{partition.end:,}",
                f"{partition.committed:,}",
                f"{partition.lag:,}",
                f"[{color}]{bar}[/{color}]",
                owner,
            )
        return table

    def _members(self, snapshot: GroupSnapshot) -> "Table":
        from rich.table import Table

        table = Table(title="members of the group", title_justify="left")
        table.add_column("consumer", width=12)
        table.add_column("partitions", width=12)
        table.add_column("lag", justify="right", width=6)
        for name, owned in snapshot.members.items():
            color = self._color(name)
            table.add_row(f"[{color}]{name}[/{color}]", ", ".join(map(str, owned)), f"{snapshot.lag_of(name):,}")
        return table

    def _color(self, member: str | None) -> str:
        """Return the color of a member, which stays the same during the demo."""
        if member is None:
            return "white"
        return self._colors.setdefault(member, COLORS[len(self._colors) % len(COLORS)])
