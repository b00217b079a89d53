"""Draw docs/images/demo.svg: `ottla demo` after a consumer was killed and its partitions have moved.

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


class Recorder(LiveView):
    """Saves the first view after the rebalance, in which the killed consumer's backlog is still visible."""

    saved: tuple[GroupSnapshot, float, float] | None = None
    saved_events: list[str]

    def show(self, snapshot: GroupSnapshot, produced_rate: float, processed_rate: float) -> None:
        if len(snapshot.members) == len(demo.NAMES) - 1 and snapshot.state == "Stable" and self.saved is None:
            self.saved = (snapshot, produced_rate, processed_rate)
            self.saved_events = list(self.events)


def main() -> None:
    recorder = Recorder(console=Console(file=io.StringIO()))
    with ExitStack() as stack:
        group_demo = demo.GroupDemo(stack, recorder)
        group_demo.run(SECONDS, threading.Event())
        group_demo.end(is_interrupted=True)
    assert recorder.saved is not None
    recorder.events = recorder.saved_events
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(recorder.render(*recorder.saved))
    PICTURE.parent.mkdir(exist_ok=True)
    svg = console.export_svg(title="ottla demo")
    # Remove web fonts, so that viewing the picture fetches nothing.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


if __name__ == "__main__":
    main()
