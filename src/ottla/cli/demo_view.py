"""What `ottla demo` knows at a snapshot, asked of the broker as any tool would ask it, and what has happened between two moments."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from ottla.client import Admin, ClientError, TopicPartition

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


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
    """`members` has the partitions of each by name; empty while the group rebalances."""

    at_s: float
    state: str
    members: dict[str, tuple[int, ...]]
    partitions: tuple[Partition, ...]

    @property
    def produced(self) -> int:
        return sum(partition.end for partition in self.partitions)

    @property
    def handled(self) -> int:
        return sum(partition.committed for partition in self.partitions)

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    def lag_of(self, member: str) -> int:
        return sum(partition.lag for partition in self.partitions if partition.owner == member)


def take_snapshot(admin: Admin, topic: str, group: str, partitions: int, at_s: float) -> GroupSnapshot:
    """Ask for end offsets, committed offsets and the group's members."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = admin.list_offsets(dict.fromkeys(places, "latest"))
    try:
        described = admin.describe_groups([group])[group]
        committed = admin.list_group_offsets(group)
    except ClientError:  # nobody has joined yet
        return GroupSnapshot(
            at_s, "Empty", {}, tuple(Partition(place.partition, ends[place].offset, 0, None) for place in places)
        )
    members = {member.client_id: tuple(place.partition for place in member.assignment) for member in described.members}
    owners = {number: name for name, owned in members.items() for number in owned}
    offsets = {place.partition: told.offset for place, told in committed.items()}
    found = tuple(
        Partition(place.partition, ends[place].offset, offsets.get(place.partition, 0), owners.get(place.partition))
        for place in places
    )
    return GroupSnapshot(at_s, described.state, dict(sorted(members.items())), found)


@dataclass(slots=True)
class ChangeLog:
    """Tells what has changed. Only settled moments are compared: amid a rebalance nobody owns anything."""

    owners: dict[int, str] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    moved: int = 0

    def follow(self, snapshot: GroupSnapshot) -> list[str]:
        """Sentences on what happened since the last settled snapshot."""
        if snapshot.state != "Stable" or any(partition.owner is None for partition in snapshot.partitions):
            return []
        told = [f"{name} joined the group" for name in snapshot.members if name not in self.members]
        told += [f"{name} is no longer in the group" for name in self.members if name not in snapshot.members]
        ways: dict[tuple[str, str], list[int]] = {}
        for partition in snapshot.partitions:
            assert partition.owner is not None
            before = self.owners.get(partition.number)
            if before is not None and before != partition.owner:
                ways.setdefault((before, partition.owner), []).append(partition.number)
        for (before, after), numbers in ways.items():
            self.moved += len(numbers)
            told.append(f"{_named(numbers)} moved from {before} to {after}")
        self.owners = {
            partition.number: partition.owner for partition in snapshot.partitions if partition.owner is not None
        }
        self.members = tuple(snapshot.members)
        return told


def _named(numbers: list[int]) -> str:
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")
EVENTS_SHOWN = 8
BAR_WIDTH = 24
BAR_FULL = 400
"""The lag at which a bar is full."""


class View(Protocol):
    title: str

    def show(self, snapshot: GroupSnapshot, produced_rate: float, handled_rate: float) -> None: ...
    def log(self, at_s: float, sentence: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *ended: object) -> None: ...


class PlainView:
    """A line a second, and one for each event."""

    title = ""

    def __init__(self) -> None:
        self._last_s = -1.0

    def show(self, snapshot: GroupSnapshot, produced_rate: float, handled_rate: float) -> None:
        if snapshot.at_s - self._last_s >= 1:
            self._last_s = snapshot.at_s
            owners = "  ".join(f"{name} {','.join(map(str, owned)) or '-'}" for name, owned in snapshot.members.items())
            print(
                f"{snapshot.at_s:5.1f} s  in {produced_rate:5,.0f}/s  out {handled_rate:5,.0f}/s  lag {snapshot.lag:5,}  "
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
    """Partitions, members and events, drawn anew several times a second."""

    title = ""

    def __init__(self, *, console: "Console | None" = None) -> None:
        from rich.live import Live

        self.events: list[str] = []
        self._colors: dict[str, str] = {}
        self._live = Live(console=console, auto_refresh=False)

    def show(self, snapshot: GroupSnapshot, produced_rate: float, handled_rate: float) -> None:
        self._live.update(self.picture(snapshot, produced_rate, handled_rate), refresh=True)

    def log(self, at_s: float, sentence: str) -> None:
        self.events.append(f"[dim]{at_s:5.1f} s[/dim]  {sentence}")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._live.__exit__(*ended)

    def picture(self, snapshot: GroupSnapshot, produced_rate: float, handled_rate: float) -> "RenderableType":
        from rich.columns import Columns
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        state = {"Stable": "[green]stable[/green]"}.get(snapshot.state, f"[yellow]{snapshot.state}[/yellow]")
        head = Text.from_markup(
            f"[bold]{self.title}[/bold]   {snapshot.at_s:4.1f} s   in [bold]{produced_rate:,.0f}[/bold]/s   "
            f"out [bold]{handled_rate:,.0f}[/bold]/s   lag [bold]{snapshot.lag:,}[/bold]   group {state}"
        )
        events = Panel(
            "\n".join(self.events[-EVENTS_SHOWN:]), title="what happened", title_align="left", height=EVENTS_SHOWN + 2
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
            owner = f"[{color}]{partition.owner}[/{color}]" if partition.owner else "[dim]nobody[/dim]"
            table.add_row(
                str(partition.number), f"{partition.end:,}", f"{partition.committed:,}", f"{partition.lag:,}",
                f"[{color}]{bar}[/{color}]", owner,
            )  # fmt: skip
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
        """The same for a member as long as the demo lasts."""
        if member is None:
            return "white"
        return self._colors.setdefault(member, COLORS[len(self._colors) % len(COLORS)])
