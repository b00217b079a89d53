"""Parser of Java's `.properties` format, which Kafka's configuration files use."""

from typing import NamedTuple

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEXADECIMAL = "0123456789abcdefABCDEF"


class Property(NamedTuple):
    key: str
    value: str
    line: int
    """Number of its first line, counted from 1."""


class PropertiesError(ValueError):
    """A syntax error in a properties file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def decode_properties(data: bytes) -> str:
    """Decode as UTF-8, or as Latin-1 if that fails. Java reads these files as Latin-1, but users write UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_properties(text: str) -> list[Property]:
    """Return all properties in the order of the file. If a key is repeated, the last value applies."""
    found = []
    for line, logical in _logical_lines(text):
        end, value_start = _split(logical)
        found.append(Property(_unescape(logical[:end], line), _unescape(logical[value_start:], line), line))
    return found


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with their numbers, without comments and blank lines; join continued lines."""
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
    """Return the end of the key and the start of the value, at the first separator that is not escaped."""
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
            raise PropertiesError(line, f"invalid escape \\u{digits}: \\u must be followed by four hexadecimal digits")
        parts.append(chr(int(digits, 16)))
        position += 4
    # Java escapes are UTF-16 code units: a surrogate pair of escapes is one character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
