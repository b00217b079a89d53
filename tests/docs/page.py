"""Pages of the documentation as what can be typed in: their fenced blocks in order, under their headings.

What stands behind the fence says what a block is:

    console             commands after `$`, each with its output below it; each must end well
    console NAME        the same in another terminal, where the last command goes on; without `$` it is what is seen there later
    python              runs as it stands, after the blocks above it
    python NAME.py      a file; pytest runs those whose names begin with `test_` when the page is through
    LANGUAGE NAME.EXT   a file
    text, or nothing    what the Python block above prints

In what is printed, `...` stands for anything within a line, and alone on a line for any number of lines. How many seconds something took
(`in 0.3 s`) is not compared, nor is Ottla's version.
"""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_VARYING = re.compile(r"(?<=\bin )\d+\.\d+(?= s\b)|(?<=\bOttla )\d+\.\d+\.\d+(?= )")
_FENCE = re.compile(r"```(?P<info>[^\n`]*)")


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    heading: str
    language: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed after `$`, and what is seen below it."""

    typed: str
    output: str


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    heading, lines = "", path.read_text().splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.fullmatch(line.strip())
        if fence is None:
            if line.startswith("## "):
                heading = line.removeprefix("## ").strip()
            number += 1
            continue
        indent = len(line) - len(line.lstrip())
        end = next(place for place in range(number + 1, len(lines)) if lines[place].strip() == "```")
        language, _, name = fence["info"].strip().partition(" ")
        text = "".join(each[indent:] + "\n" for each in lines[number + 1 : end])
        found.append(Block(path.name, number + 1, heading, language, name.strip(), text))
        number = end + 1
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console; output before the first has an empty command."""
    found: list[Command] = []
    typed, output = "", ""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if typed or output:
                found.append(Command(typed, output))
            typed, output = line.removeprefix("$ "), ""
        elif line.startswith("> ") and typed and not output:
            typed += "\n" + line.removeprefix("> ")
        else:
            output += line + "\n"
    return [*found, Command(typed, output)]


def pattern(expected: str) -> str:
    """What is expected, as a regular expression."""
    expected = _VARYING.sub("...", expected)
    parts = []
    for line in expected.rstrip("\n").splitlines():
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(
                "[^\n]*?".join(re.escape(part.rstrip()) if not rest else re.escape(part) for part, rest in _cut(line))
                + r"[ ]*\n"
            )
    return "".join(parts)


def _cut(line: str) -> list[tuple[str, int]]:
    """The parts of a line between its `...`, each with how many follow."""
    parts = line.split("...")
    return [(part, len(parts) - index - 1) for index, part in enumerate(parts)]


def is_as_expected(seen: str, expected: str) -> bool:
    """All that was seen, against all that was expected."""
    return re.fullmatch(pattern(expected), _ended(seen)) is not None


def begins_as_expected(seen: str, expected: str) -> bool:
    """As above, where more may follow."""
    return re.match(pattern(expected), seen) is not None


def _ended(text: str) -> str:
    text = text.rstrip("\n")
    return text + "\n" if text else ""
