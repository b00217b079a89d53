"""Records as lines of text and as lines of JSON, in and out. What one writes the other reads.

As JSON a record is {"topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers": [{"key", "value"}]}.
Bytes that are no UTF-8 stand in base 64 under "key_base64" and "value_base64" instead.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ottla.cli.errors import CliError

if TYPE_CHECKING:
    from ottla.client.consumer_record import ConsumerRecord

CHUNK_BYTES = 1 << 20
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0"}


def parse_separator(text: str) -> bytes:
    r"""As it was typed, with \t, \n, \r and \0 for what is hard to type."""
    for written, meant in _ESCAPES.items():
        text = text.replace(written, meant)
    return text.encode()


def split_records(stream: IO[bytes], end: bytes) -> Iterator[bytes]:
    """What stands between separators, as soon as it is there; the last one need not have one behind it."""
    if end == b"\n":
        for line in stream:
            yield line[:-1] if line.endswith(b"\n") else line
        return
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while chunk := read(CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(end)
        yield from whole
    if rest:
        yield rest


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record that was read, and is to be sent."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    timestamp: int | None = None
    partition: int | None = None


def from_json(line: bytes, number: int) -> InputRecord:
    """Text is UTF-8; objects, lists and numbers become JSON again; null is null. What is not said stays open."""
    try:
        told = json.loads(line)
    except ValueError as error:
        advice = "With --json each line is an object, as `ottla consume --json` writes it."
        raise CliError(f"line {number} is no JSON: {error}", advice) from None
    if not isinstance(told, dict):
        raise CliError(f'line {number} is no object: {{"key": ..., "value": ...}} is expected')
    try:
        timestamp, partition = told.get("timestamp"), told.get("partition")
        if not isinstance(timestamp, int | None) or not isinstance(partition, int | None):
            raise ValueError("timestamp and partition must be whole numbers")
        return InputRecord(
            _bytes_of(told, "value"), _bytes_of(told, "key"), _headers_of(told.get("headers")), timestamp, partition
        )
    except ValueError as error:
        raise CliError(f"line {number}: {error}") from None


def _bytes_of(told: dict[str, Any], name: str) -> bytes | None:
    encoded = told.get(f"{name}_base64")
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    thing = told.get(name)
    if thing is None or isinstance(thing, str):
        return None if thing is None else thing.encode()
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":")).encode()


def _headers_of(told: Any) -> list[tuple[str, bytes | None]] | None:
    if not told:
        return None
    if isinstance(told, dict):
        told = [{"key": name, "value": value} for name, value in told.items()]
    if not isinstance(told, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in told
    ):
        raise ValueError('headers must be an object, or a list of {"key": ..., "value": ...}')
    return [(each["key"], _bytes_of(each, "value")) for each in told]


def to_json(record: "ConsumerRecord") -> bytes:
    """One line."""
    document: dict[str, Any] = {
        "topic": record.topic, "partition": record.partition, "offset": record.offset, "timestamp": record.timestamp,
        "timestamp_type": "append" if record.timestamp_type == 1 else "create",
        **as_text("key", record.key), **as_text("value", record.value),
        "headers": [{"key": name, **as_text("value", content)} for name, content in record.headers],
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def as_text(name: str, content: bytes | None) -> dict[str, str | None]:
    """Bytes under a name: as text where they are UTF-8, else in base 64 under a name that says so."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


@dataclass(frozen=True, slots=True)
class LineFormat:
    """Which parts of a record stand in a line, and what stands between them. A part that is null is written as `null`."""

    parts: tuple[str, ...] = ("value",)
    between: bytes = b"\t"
    end: bytes = b"\n"
    null: bytes = b""

    def write(self, records: "Iterable[ConsumerRecord]") -> bytes:
        if self.parts == ("value",):
            return b"".join([(self.null if record.value is None else record.value) + self.end for record in records])
        return b"".join(
            [self.between.join([self._part(record, part) for part in self.parts]) + self.end for record in records]
        )

    def _part(self, record: "ConsumerRecord", part: str) -> bytes:
        match part:
            case "key" | "value":
                content: bytes | None = getattr(record, part)
                return self.null if content is None else content
            case "headers":
                return b",".join(
                    name.encode() + b"=" + (self.null if content is None else content)
                    for name, content in record.headers
                )
            case _:
                return str(getattr(record, part)).encode()
