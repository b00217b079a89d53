"""Records as lines of text and of JSON. `produce` reads what `consume` writes.

As JSON a record is {"topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers": [{"key",
"value"}]}. Bytes that are not UTF-8 are in base64 under "key_base64" and "value_base64" instead.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ottla.cli.errors import CliError

if TYPE_CHECKING:
    from ottla.client.records import ConsumerRecord

CHUNK_BYTES = 1 << 20
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0"}


def parse_separator(text: str) -> bytes:
    r"""Parse a separator, with the escapes \t, \n, \r and \0."""
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text.encode()


def split_records(stream: IO[bytes], end: bytes) -> Iterator[bytes]:
    """Yield records as soon as their terminator has been read. The last record needs none."""
    if end == b"\n":
        for line in stream:
            yield line[:-1] if line.endswith(b"\n") else line
        return
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while chunk := read(CHUNK_BYTES):
        *complete, rest = (rest + chunk).split(end)
        yield from complete
    if rest:
        yield rest


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record to send; None means unset."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    timestamp: int | None = None
    partition: int | None = None


def from_json(line: bytes, number: int) -> InputRecord:
    """Parse a record. Strings become UTF-8; objects, lists and numbers become JSON; missing fields stay None."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        advice = "With --json each line must be an object, as `ottla consume --json` writes it."
        raise CliError(f"line {number} is not JSON: {error}", advice) from None
    if not isinstance(fields, dict):
        raise CliError(f'line {number} is not an object such as {{"key": ..., "value": ...}}')
    try:
        timestamp, partition = fields.get("timestamp"), fields.get("partition")
        if not isinstance(timestamp, int | None) or not isinstance(partition, int | None):
            raise ValueError("timestamp and partition must be integers")
        return InputRecord(
            _read_bytes(fields, "value"),
            _read_bytes(fields, "key"),
            _read_headers(fields.get("headers")),
            timestamp,
            partition,
        )
    except ValueError as error:
        raise CliError(f"line {number}: {error}") from None


def _read_bytes(fields: dict[str, Any], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _read_headers(headers: Any) -> list[tuple[str, bytes | None]] | None:
    if not headers:
        return None
    if isinstance(headers, dict):
        headers = [{"key": name, "value": value} for name, value in headers.items()]
    if not isinstance(headers, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in headers
    ):
        raise ValueError('headers must be an object, or a list of {"key": ..., "value": ...}')
    return [(each["key"], _read_bytes(each, "value")) for each in headers]


def to_json(record: "ConsumerRecord") -> bytes:
    """Return a record as one line of JSON."""
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "append" if record.timestamp_type == 1 else "create",
        **as_text("key", record.key),
        **as_text("value", record.value),
        "headers": [{"key": name, **as_text("value", content)} for name, content in record.headers],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def as_text(name: str, content: bytes | None) -> dict[str, str | None]:
    """Return bytes as a JSON field: text if they are UTF-8, otherwise base64 under `name` + "_base64"."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


@dataclass(frozen=True, slots=True)
class LineFormat:
    """Which parts of a record are written, their separator, the terminator and the text for null."""

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
