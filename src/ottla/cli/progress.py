"""How far long work has come: a bar on a terminal's stderr, and nothing where nobody looks."""

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
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
