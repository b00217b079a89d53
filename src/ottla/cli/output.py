"""How answers are shown: tables for people, with colours on a terminal only; JSON for programs, one document on one line."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

PIPED_WIDTH = 10_000
"""A pipe has no width: nothing is folded or cut for it."""


def print_json(document: Any) -> None:
    """One line, in UTF-8."""
    print(json.dumps(document, ensure_ascii=False, separators=(",", ":")), flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Columns of numbers are set to the right. Where there is a title, it stands above, and an empty line above that."""
    console = new_console()
    if title:
        console.print(f"\n{title}", style="bold", markup=False, highlight=False)
    table = make_table(columns, list(rows))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def new_console(*, is_error: bool = False) -> "Console":
    from rich.console import Console

    stream = sys.stderr if is_error else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else PIPED_WIDTH)


def make_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold cyan")
    for index, name in enumerate(columns):
        is_number = any(row[index] is not None for row in rows) and all(
            isinstance(row[index], int | float | None) for row in rows
        )
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(each if isinstance(each, Text) else Text(_shown(each)) for each in row))
    return table


def _shown(thing: Any) -> str:
    match thing:
        case None:
            return "-"
        case bool():
            return "yes" if thing else "no"
        case int():
            return str(thing)
        case float():
            return f"{thing:,.2f}"
        case list() | tuple():
            return ",".join(str(each) for each in thing)
        case _:
            return str(thing)


def print_note(text: str) -> None:
    """Something a person should know and a program need not read."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


class ProgressBar:
    """`total` is None where nobody knows when it ends. Cheap to tell: rich draws ten times a second, however often it is told."""

    def __init__(self, label: str, total: float | None, *, is_wanted: bool = True) -> None:
        self._label, self._total = label, total
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        if self._is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[told]}"),
                TimeElapsedColumn(),
            )
            last = (TimeRemainingColumn(),) if self._total else ()
            bar = Progress(*columns, *last, console=Console(stderr=True), transient=True)
            bar.start()
            self._bar = bar, bar.add_task(self._label, total=self._total, told="")
        return self

    def tell(self, done: float, told: str = "") -> None:
        if self._bar is not None:
            self._bar[0].update(self._bar[1], completed=done, told=told)

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar[0].stop()
