"""From a user's record to bytes: interceptors, then serializers."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.client.producer_config import ProducerSettings
from ottla.client.records import HeaderPairs, HeadersLike, ProducerRecord
from ottla.client.send_future import SendFuture


class SerializedRecord(NamedTuple):
    """The arguments of the accumulator's `try_send`."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int | None
    headers: HeaderPairs | None


def as_bytes(thing: Any, serializer: Callable[[Any], Any] | None, what: str) -> bytes | None:
    """Return the bytes of a key, value or header. Text becomes UTF-8; other types need a serializer."""
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


def as_headers(headers: HeadersLike | None) -> HeaderPairs | None:
    """Return names and values in order; text values become UTF-8."""
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, as_bytes(content, None, "header")) for name, content in pairs]


def serialize(settings: ProducerSettings, record: ProducerRecord) -> SerializedRecord:
    """Run the interceptors, then the serializers."""
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


def notify_interceptors(settings: ProducerSettings, future: SendFuture) -> None:
    """Call the interceptors' `on_acknowledgement` once the future is done."""

    def on_done(done: SendFuture) -> None:
        metadata, error = done.peek()
        for interceptor in settings.interceptors:
            interceptor.on_acknowledgement(metadata, error)

    future.add_done_callback(on_done)
