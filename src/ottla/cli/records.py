"""Records as lines of text and of JSON. `produce` reads what `consume` writes.

As JSON a record is {"topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers": [{"key",
"value"}]}. Bytes that are not UTF-8 are in base64 under "key_base64" and "value_base64" instead.
"""

import base64
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ottla.cli.errors import CliError, nearest

if TYPE_CHECKING:
    from ottla.client.records import ConsumerRecord

CHUNK_BYTES = 1 << 20
FIELDS = (
    *("topic", "partition", "offset", "timestamp", "timestamp_type"),
    *("key", "key_base64", "value", "value_base64", "headers"),
)
HEADER_FIELDS = ("key", "value", "value_base64")
TIMESTAMP_MAX, PARTITION_MAX = (1 << 63) - 1, (1 << 31) - 1
NO_TIMESTAMP = -1
"""The timestamp of records from before Kafka 0.10."""
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0"}


def parse_separator(text: str) -> bytes:
    r"""Parse a separator, with the escapes \t, \n, \r and \0."""
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return os.fsencode(text)


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


def from_json(line: bytes, number: int, json_parts: Sequence[str] = ()) -> InputRecord:
    """Parse a record. Strings become UTF-8; objects, lists and numbers become JSON. `value` is required, also if null.

    Strings in `json_parts` become JSON, too.
    """
    try:
        fields = json.loads(line, parse_constant=_reject_constant)
    except RecursionError:
        raise CliError(f"line {number} is not JSON: it is nested too deeply") from None
    except ValueError as error:
        advice = "With --json each line must be an object, as `ottla consume --json` writes it."
        raise CliError(f"line {number} is not JSON: {error}", advice) from None
    if not isinstance(fields, dict):
        raise CliError(f'line {number} is not an object such as {{"key": ..., "value": ...}}')
    try:
        _require_fields(fields, FIELDS)
        return InputRecord(
            _read_bytes(fields, "value", is_json="value" in json_parts),
            _read_bytes(fields, "key", is_json="key" in json_parts),
            _read_headers(fields.get("headers")),
            _read_integer(fields, "timestamp", TIMESTAMP_MAX),
            _read_integer(fields, "partition", PARTITION_MAX),
        )
    except InvalidRecordError as error:
        raise CliError(f"line {number}: {error}", error.advice) from None


class InvalidRecordError(Exception):
    """A field of a JSON record is missing, unknown or has the wrong type."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _require_fields(fields: dict[str, Any], known: Sequence[str]) -> None:
    """Reject unknown fields and a missing value: a misspelt name would otherwise send a tombstone."""
    for name in fields:
        if name not in known:
            meant = nearest(name, known)
            raise InvalidRecordError(
                f"unknown field {name!r}",
                f"Did you mean {meant!r}?" if meant else f"Known fields are {', '.join(known)}.",
            )
    if "value" not in fields and "value_base64" not in fields:
        raise InvalidRecordError("the value is missing", 'Add "value"; for a tombstone, "value": null.')


def _read_integer(fields: dict[str, Any], name: str, highest: int) -> int | None:
    number = fields.get(name)
    if number == NO_TIMESTAMP and name == "timestamp":
        return None
    if number is not None and (type(number) is not int or not 0 <= number <= highest):
        raise InvalidRecordError(f"{name} must be an integer from 0 to {highest}, not {shorten(json.dumps(number))}")
    return number


def _read_bytes(fields: dict[str, Any], name: str, *, is_json: bool = False) -> bytes | None:
    encoded_name = f"{name}_base64"
    if name in fields and encoded_name in fields:
        raise InvalidRecordError(f"{name} and {encoded_name} cannot be combined")
    encoded = fields.get(encoded_name)
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (TypeError, ValueError):
            raise InvalidRecordError(f"{encoded_name} is not base64: {shorten(json.dumps(encoded))}") from None
    value = fields.get(name)
    return (
        None
        if value is None
        else _encode(value if isinstance(value, str) and not is_json else to_compact_json(value), name)
    )


def _encode(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRecordError(f"{name} has half of a surrogate pair, which UTF-8 cannot encode") from None


def _read_headers(headers: Any) -> list[tuple[str, bytes | None]] | None:
    if headers is None:
        return None
    if isinstance(headers, dict):
        headers = [{"key": name, "value": value} for name, value in headers.items()]
    if not isinstance(headers, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in headers
    ):
        raise InvalidRecordError('headers must be an object, or a list of {"key": ..., "value": ...}')
    found: list[tuple[str, bytes | None]] = []
    for each in headers:
        _require_fields(each, HEADER_FIELDS)
        _encode(each["key"], "the key of a header")
        found.append((each["key"], _read_bytes(each, "value")))
    return found or None


def shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def to_compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_json(record: "ConsumerRecord", json_parts: Sequence[str] = ()) -> bytes:
    """Return a record as one line of JSON. `json_parts` hold JSON, which becomes part of the document."""
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
    for part in json_parts:
        if document.get(part) is not None:
            document[part] = json.loads(document[part])
    return to_compact_json(document).encode() + b"\n"


def as_text(name: str, content: bytes | None) -> dict[str, str | None]:
    """Return bytes as a JSON field: text if they are UTF-8, otherwise base64 under `name` + "_base64"."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def encode_headers(headers: Iterable[tuple[str, bytes | None]], null: bytes) -> bytes:
    """Return headers as `name=value,name=value`, as kcat writes them."""
    return b",".join(name.encode() + b"=" + (null if content is None else content) for name, content in headers)


def decode_headers(text: bytes, null: bytes | None, number: int) -> list[tuple[str, bytes | None]]:
    """Parse what `encode_headers` returns. Values with commas need JSON."""
    found: list[tuple[str, bytes | None]] = []
    for pair in text.split(b",") if text else ():
        name, separator, content = pair.partition(b"=")
        try:
            decoded = name.decode()
        except UnicodeDecodeError:
            decoded = ""
        if not separator or not decoded:
            raise CliError(f"line {number}: header {shorten(repr(pair)[1:])} is not NAME=VALUE")
        found.append((decoded, None if content == null else content))
    return found


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
                return encode_headers(record.headers, self.null)
            case _:
                return str(getattr(record, part)).encode()
