"""How `ottla demo` is shown: a live picture on a terminal, lines of text everywhere else."""

from typing import TYPE_CHECKING, Any, Protocol, Self

from ottla.cli.demo_state import Moment

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
EVENTS_SHOWN = 8
BAR_WIDTH = 24
BAR_FULL = 400
"""The lag at which a bar is full."""


class View(Protocol):
    title: str

    def show(self, moment: Moment, produced_rate: float, handled_rate: float) -> None: ...
    def tell(self, at_s: float, sentence: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *ended: object) -> None: ...


class PlainView:
    """A line a second, and one for each event."""

    title = ""

    def __init__(self) -> None:
        self._last_s = -1.0

    def show(self, moment: Moment, produced_rate: float, handled_rate: float) -> None:
        if moment.at_s - self._last_s >= 1:
            self._last_s = moment.at_s
            owners = "  ".join(f"{name} {','.join(map(str, owned)) or '-'}" for name, owned in moment.members.items())
            print(
                f"{moment.at_s:5.1f} s  in {produced_rate:5,.0f}/s  out {handled_rate:5,.0f}/s  lag {moment.lag:5,}  "
                f"{owners if moment.state == 'Stable' else moment.state}",
                flush=True,
            )

    def tell(self, at_s: float, sentence: str) -> None:
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
        self._colours: dict[str, str] = {}
        self._live = Live(console=console, auto_refresh=False)

    def show(self, moment: Moment, produced_rate: float, handled_rate: float) -> None:
        self._live.update(self.picture(moment, produced_rate, handled_rate), refresh=True)

    def tell(self, at_s: float, sentence: str) -> None:
        self.events.append(f"[dim]{at_s:5.1f} s[/dim]  {sentence}")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._live.__exit__(*ended)

    def picture(self, moment: Moment, produced_rate: float, handled_rate: float) -> "RenderableType":
        from rich.columns import Columns
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        state = {"Stable": "[green]stable[/green]"}.get(moment.state, f"[yellow]{moment.state}[/yellow]")
        head = Text.from_markup(
            f"[bold]{self.title}[/bold]   {moment.at_s:4.1f} s   in [bold]{produced_rate:,.0f}[/bold]/s   "
            f"out [bold]{handled_rate:,.0f}[/bold]/s   lag [bold]{moment.lag:,}[/bold]   group {state}"
        )
        events = Panel(
            "\n".join(self.events[-EVENTS_SHOWN:]), title="what happened", title_align="left", height=EVENTS_SHOWN + 2
        )
        return Group(head, "", Columns([self._partitions(moment), self._members(moment)]), events)

    def _partitions(self, moment: Moment) -> "Table":
        from rich.table import Table

        table = Table(title="partitions of orders", title_justify="left")
        for name in ("", "end", "committed", "lag"):
            table.add_column(name, justify="right")
        table.add_column("", width=BAR_WIDTH)
        table.add_column("consumer", width=12)
        for partition in moment.partitions:
            colour = self._colour(partition.owner)
            bar = "█" * min(BAR_WIDTH, -(-partition.lag * BAR_WIDTH // BAR_FULL))
            owner = f"[{colour}]{partition.owner}[/{colour}]" if partition.owner else "[dim]nobody[/dim]"
            table.add_row(
                str(partition.number), f"{partition.end:,}", f"{partition.committed:,}", f"{partition.lag:,}",
                f"[{colour}]{bar}[/{colour}]", owner,
            )  # fmt: skip
        return table

    def _members(self, moment: Moment) -> "Table":
        from rich.table import Table

        table = Table(title="members of the group", title_justify="left")
        table.add_column("consumer", width=12)
        table.add_column("partitions", width=12)
        table.add_column("lag", justify="right", width=6)
        for name, owned in moment.members.items():
            colour = self._colour(name)
            table.add_row(f"[{colour}]{name}[/{colour}]", ", ".join(map(str, owned)), f"{moment.lag_of(name):,}")
        return table

    def _colour(self, member: str | None) -> str:
        """The same for a member as long as the demo lasts."""
        if member is None:
            return "white"
        return self._colours.setdefault(member, COLOURS[len(self._colours) % len(COLOURS)])
