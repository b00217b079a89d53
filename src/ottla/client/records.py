"""A record as a user hands it over, and how it becomes bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ottla.client.accumulator import Headers
from ottla.client.batch import SendFuture
from ottla.client.errors import ClientError
from ottla.client.producer_config import ProducerSettings
from ottla.client.record_metadata import RecordMetadata

HeadersLike = Sequence[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None]


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """What is sent. Interceptors see it, and may return another."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: HeadersLike | None = None


class ProducerInterceptor(Protocol):
    """Sees every record before it is serialised, and every outcome. What it raises from `on_acknowledgement` ends in the loop's handler."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord: ...

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: ClientError | None) -> None: ...


class SerializedRecord(NamedTuple):
    """Bytes: the arguments of the accumulator's `try_send`."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int | None
    headers: Headers | None


def as_bytes(thing: Any, serializer: Callable[[Any], Any] | None, what: str) -> bytes | None:
    """Text becomes UTF-8; anything else that is not bytes needs a serializer."""
    if serializer is not None:
        thing = serializer(thing)
    if thing is None or type(thing) is bytes:
        return thing
    if isinstance(thing, str):
        return thing.encode()
    if isinstance(thing, bytes | bytearray | memoryview):
        return bytes(thing)
    raise TypeError(
        f"a {what} must be bytes, text or None, not {type(thing).__name__}; give the producer a {what}_serializer"
    )


def as_headers(headers: HeadersLike | None) -> Headers | None:
    """Names and contents in order; text contents become UTF-8."""
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, as_bytes(content, None, "header")) for name, content in pairs]


def serialize(settings: ProducerSettings, record: ProducerRecord) -> SerializedRecord:
    """Through the interceptors and serializers."""
    for interceptor in settings.interceptors:
        record = interceptor.on_send(record)
    return SerializedRecord(
        record.topic,
        as_bytes(record.value, settings.value_serializer, "value"),
        as_bytes(record.key, settings.key_serializer, "key"),
        record.partition,
        record.timestamp,
        as_headers(record.headers),
    )


def report_to_interceptors(settings: ProducerSettings, future: SendFuture) -> None:
    """Have them told of the outcome."""

    def on_done(done: SendFuture) -> None:
        metadata, error = done.peek()
        for interceptor in settings.interceptors:
            interceptor.on_acknowledgement(metadata, error)

    future.add_done_callback(on_done)
