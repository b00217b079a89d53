"""Help pages: one layout for all commands, whether argparse or typer parses their arguments."""

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

NAME_WIDTH_MAX = 28
WIDTH_MIN, WIDTH_MAX = 60, 110

Rows = Sequence[tuple[str, str]]
"""Names and descriptions."""


@dataclass(frozen=True, slots=True)
class HelpPage:
    """The parts of a command's help, in the order in which they are printed."""

    usage: str
    text: str
    sections: Sequence[tuple[str, Rows]] = field(default=())
    examples: str = ""

    def render(self) -> str:
        width = min(max(shutil.get_terminal_size((100, 24)).columns, WIDTH_MIN), WIDTH_MAX)
        parts = [f"Usage: {self.usage}", *(textwrap.fill(each, width) for each in paragraphs(self.text))]
        parts += [f"{title}:\n{_table(rows, width)}" for title, rows in self.sections if rows]
        if self.examples:
            parts.append(f"Examples:\n{textwrap.indent(self.examples, '  ')}")
        return "\n\n".join(parts)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs, each on one line."""
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def _table(rows: Rows, width: int) -> str:
    names = max((len(name) for name, _ in rows if len(name) <= NAME_WIDTH_MAX), default=NAME_WIDTH_MAX)
    lines = []
    for name, text in rows:
        indent = " " * (names + 4)
        if len(name) > names:
            lines.append(f"  {name}")
            first = indent
        else:
            first = f"  {name:<{names}}  "
        lines += textwrap.wrap(text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False) or [
            first.rstrip()
        ]
    return "\n".join(lines)
