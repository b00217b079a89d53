"""Draw docs/images/demo.svg: `ottla demo` as it looks when a consumer was killed and its partitions have moved.

.venv/bin/python tools/picture_demo.py
"""

import io
import re
import threading
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from ottla.cli import demo
from ottla.cli.demo_view import GroupSnapshot, LiveView

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "demo.svg"
SECONDS = 14.0
WIDTH = 118


class Photographer(LiveView):
    """Keeps the last picture in which the dead one's backlog is still to be seen."""

    kept: tuple[GroupSnapshot, float, float] | None = None
    events_kept: list[str]

    def show(self, moment: GroupSnapshot, produced_rate: float, handled_rate: float) -> None:
        if len(moment.members) == len(demo.NAMES) - 1 and moment.state == "Stable" and self.kept is None:
            self.kept = (moment, produced_rate, handled_rate)
            self.events_kept = list(self.events)


def main() -> None:
    photographer = Photographer(console=Console(file=io.StringIO()))
    with ExitStack() as stack:
        show = demo.GroupDemo(stack, photographer)
        show.run(SECONDS, threading.Event())
        show.end(is_interrupted=True)
    assert photographer.kept is not None
    photographer.events = photographer.events_kept
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(photographer.picture(*photographer.kept))
    PICTURE.parent.mkdir(exist_ok=True)
    drawn = console.export_svg(title="ottla demo")
    # Nothing is fetched from elsewhere when the picture is looked at: the reader's own font will do.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    main()
