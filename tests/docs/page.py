"""Parse documentation pages into their fenced blocks, in order, with their headings.

The text after the fence determines the type of the block:

    console             commands after `$`, each with its output below it; each must exit with 0
    console NAME        the same in another terminal, where the last command keeps running; or its later output
    python              runs as written, after the blocks above it
    python NAME.py      a file; pytest runs those named `test_*` at the end of the page
    LANGUAGE NAME.EXT   a file
    text, or nothing    what the Python block above prints

In output, `...` matches anything within a line, and any number of lines if alone on a line. Durations (`in 0.3 s`) and
Ottla's version are not compared.
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
    """A command after `$`, and its output."""

    command: str
    output: str


def blocks(path: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
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
        end = next(index for index in range(number + 1, len(lines)) if lines[index].strip() == "```")
        language, _, name = fence["info"].strip().partition(" ")
        text = "".join(each[indent:] + "\n" for each in lines[number + 1 : end])
        found.append(Block(path.name, number + 1, heading, language, name.strip(), text))
        number = end + 1
    return found


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block; output before the first one has an empty command."""
    found: list[Command] = []
    command, output = "", ""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command or output:
                found.append(Command(command, output))
            command, output = line.removeprefix("$ "), ""
        elif line.startswith("> ") and command and not output:
            command += "\n" + line.removeprefix("> ")
        else:
            output += line + "\n"
    return [*found, Command(command, output)]


def pattern(expected: str) -> str:
    """Return the regular expression that matches the expected output."""
    expected = _VARYING.sub("...", expected)
    parts = []
    for line in expected.rstrip("\n").splitlines():
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(
                "[^\n]*?".join(
                    re.escape(part.rstrip()) if not rest else re.escape(part) for part, rest in _split_at_dots(line)
                )
                + r"[ ]*\n"
            )
    return "".join(parts)


def _split_at_dots(line: str) -> list[tuple[str, int]]:
    """Return the parts of a line between its `...`, each with the number of parts after it."""
    parts = line.split("...")
    return [(part, len(parts) - index - 1) for index, part in enumerate(parts)]


def matches(actual: str, expected: str) -> bool:
    """Return whether the complete output matches."""
    return re.fullmatch(pattern(expected), _with_newline(actual)) is not None


def starts_with(actual: str, expected: str) -> bool:
    """Return whether the output so far starts as expected."""
    return re.match(pattern(expected), actual) is not None


def _with_newline(text: str) -> str:
    text = text.rstrip("\n")
    return text + "\n" if text else ""
