"""Output of commands: tables (colored on a terminal), single-line JSON, progress bars, notes."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

PIPED_WIDTH = 10_000
"""Table width where output is not a terminal: wide enough that nothing is folded."""


def print_json(document: Any) -> None:
    """Print a document as one line of UTF-8 JSON."""
    import json  # not at the top: `ottla start` imports this module

    print(json.dumps(document, ensure_ascii=False, separators=(",", ":")), flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table, after an empty line and the title if there is one."""
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
        table.add_row(*(each if isinstance(each, Text) else Text(_format_cell(each)) for each in row))
    return table


def _format_cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case float():
            return f"{value:,.2f}"
        case list() | tuple():
            return ",".join(str(each) for each in value)
        case _:
            return str(value)


def print_note(text: str) -> None:
    """Print a remark to stderr, where it does not mix with output that programs read."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


class ProgressBar:
    """A progress bar on stderr, shown only on a terminal. `total` is None if unknown.

    `update` is cheap: rich redraws ten times a second however often it is called.
    """

    def __init__(self, label: str, total: float | None, *, is_enabled: bool = True) -> None:
        self._label, self._total = label, total
        self._is_shown = is_enabled and sys.stderr.isatty()
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Self:
        if self._is_shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[status]}"),
                TimeElapsedColumn(),
            )
            last = (TimeRemainingColumn(),) if self._total else ()
            bar = Progress(*columns, *last, console=Console(stderr=True), transient=True)
            bar.start()
            self._bar = bar, bar.add_task(self._label, total=self._total, status="")
        return self

    def update(self, done: float, status: str = "") -> None:
        if self._bar is not None:
            self._bar[0].update(self._bar[1], completed=done, status=status)

    def __exit__(self, *ended: object) -> None:
        if self._bar is not None:
            self._bar[0].stop()
