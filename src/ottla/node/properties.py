"""Java's `.properties` files, as Kafka's configuration is written: comments, continued lines, escapes, three kinds of separators."""

from typing import NamedTuple

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEXADECIMAL = "0123456789abcdefABCDEF"


class Property(NamedTuple):
    key: str
    value: str
    line: int
    """Where it begins, counted from 1."""


class PropertiesError(ValueError):
    """Text that is no properties file: the line, and what is wrong with it."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(line, why)
        self.line = line
        self.why = why

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


def decode_properties(data: bytes) -> str:
    """Java reads these files as Latin-1 with `\\u` escapes; people write UTF-8. What is not UTF-8 is therefore taken as Latin-1."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_properties(text: str) -> list[Property]:
    """All properties in the order of the file; where a key comes twice, the last one counts."""
    found = []
    for line, logical in _logical_lines(text):
        end, value_start = _split(logical)
        found.append(Property(_unescape(logical[:end], line), _unescape(logical[value_start:], line), line))
    return found


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments and blank ones, continued lines joined, each with the number it began at."""
    lines: list[tuple[int, str]] = []
    started_at = 0
    joined = ""
    is_continued = False
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        stripped = natural.lstrip(_BLANK)
        if not is_continued:
            if not stripped or stripped[0] in "#!":
                continue
            started_at, joined = number, ""
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        joined += stripped[:-1] if is_continued else stripped
        if not is_continued:
            lines.append((started_at, joined))
    if is_continued:
        lines.append((started_at, joined))
    return lines


def _split(line: str) -> tuple[int, int]:
    """Where the key ends and where the value begins: at the first separator that is not escaped."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANK:
        position += 2 if line[position] == "\\" else 1
    end = min(position, len(line))
    start = end
    while start < len(line) and line[start] in _BLANK:
        start += 1
    if start < len(line) and line[start] in "=:":
        start += 1
        while start < len(line) and line[start] in _BLANK:
            start += 1
    return end, start


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            parts.append(character)
            continue
        escaped = text[position]
        position += 1
        if escaped != "u":
            parts.append(_ESCAPES.get(escaped, escaped))
            continue
        digits = text[position : position + 4]
        if len(digits) < 4 or any(digit not in _HEXADECIMAL for digit in digits):
            raise PropertiesError(line, f"\\u{digits} is not a character: four hexadecimal digits must follow \\u")
        parts.append(chr(int(digits, 16)))
        position += 4
    # Java's characters are halves of UTF-16: a pair of escapes may be one character outside the first plane.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
