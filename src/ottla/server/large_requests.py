"""Large requests without records: decoded, handled and encoded in slices, one request at a time (see
`LargeRequestThrottle`)."""

from collections.abc import Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from ottla.base.decision import RequestContext
from ottla.server.dispatch import Api
from ottla.server.error_counts import error_count_in_slices
from ottla.wire.schema import Message, decode_in_slices, encode_in_slices

if TYPE_CHECKING:
    from ottla.server.connection import ServerConnection

FEW_ITEMS_MAX = 20
"""Items of an array that may have large arrays of their own."""
LARGE_BYTES_MIN = 32 << 10
"""Smaller requests take some milliseconds at most."""


async def handle_large(
    connection: "ServerConnection", api: Api, version: int, correlation_id: int, context: RequestContext, body: bytes
) -> None:
    """Decode, handle and encode a large request. The throttle is not held while the handler runs in slices or waits."""
    assert api.handle is not None, api.module
    assert api.request is not None, api.module
    scheduler = connection.broker.scheduler
    throttle = scheduler.large_requests
    await throttle.acquire(len(body))
    try:
        if connection.is_closed:
            return
        request, _ = await throttle.run(decode_in_slices(api.request, version, body))
        response = api.handle(connection.broker, context, request, version)
        if isinstance(response, Message):
            response = await _encode(connection, api, version, response)
    finally:
        throttle.release()
    if isinstance(response, GeneratorType):
        response = await scheduler.run(response)
    elif not isinstance(response, bytes):
        response = await response
    if isinstance(response, Message):
        response = await encode_large(connection, api, version, response)
    connection.complete_deferred([connection.encode_response(api, version, correlation_id, response)])
    scheduler.free_in_slices(*_arrays(request))


async def encode_large(connection: "ServerConnection", api: Api, version: int, response: Message) -> bytes:
    """Encode a large response, and count its errors, when no other large request is being handled."""
    throttle = connection.broker.scheduler.large_requests
    await throttle.acquire(0)
    try:
        return await _encode(connection, api, version, response)
    finally:
        throttle.release()


async def _encode(connection: "ServerConnection", api: Api, version: int, response: Message) -> bytes:
    scheduler = connection.broker.scheduler
    api.errors += await scheduler.large_requests.run(error_count_in_slices(response))
    encoded = await scheduler.large_requests.run(encode_in_slices(response, version))
    scheduler.free_in_slices(*_arrays(response))
    return encoded


def _arrays(message: Message) -> Iterator[list[Any]]:
    """Return the arrays of a message, and those of its first items: only a few items can have large ones."""
    for field in type(message).FIELDS:
        if field.type == "array":
            items = getattr(message, field.name) or []
            if len(items) <= FEW_ITEMS_MAX and not isinstance(field.item, str):
                for item in items:
                    yield from _arrays(item)
            yield items
