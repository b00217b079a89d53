"""Requests that are large, and have no records: read and answered in slices, in turns with one another (see `turns`)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.base.decision import RequestContext
from ottla.server.dispatch import Api
from ottla.server.error_counts import error_count_in_slices
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import Message, decode_in_slices, encode_in_slices

if TYPE_CHECKING:
    from ottla.server.connection import ServerConnection

FEW_ITEMS_MAX = 20
LARGE_BYTES_MIN = 32 << 10
"""What is smaller takes some milliseconds at most."""


async def handle_large(
    connection: "ServerConnection", api: Api, version: int, correlation_id: int, context: RequestContext, body: bytes
) -> None:
    """As for any other request; what its handler waits for is waited for outside of its turn."""
    assert api.handle is not None, api.module
    assert api.request is not None, api.module
    turns = connection.turns
    await turns.take(len(body))
    try:
        if connection.is_closed:
            return
        request, _ = await turns.run(decode_in_slices(api.request, version, body))
        response = api.handle(connection.broker, context, request, version)
        if isinstance(response, Message):
            response = await _encoded(connection, api, version, response)
    finally:
        turns.give_back()
    if not isinstance(response, bytes):
        response = await response
        if isinstance(response, Message):
            response = await encoded_in_turn(connection, api, version, response)
    connection.complete_deferred([connection.encode_response(api, version, correlation_id, response)])
    await connection.broker.scheduler.free_in_slices(*_arrays(request))


async def encoded_in_turn(connection: "ServerConnection", api: Api, version: int, response: Message) -> bytes:
    """The bytes of a large answer; its errors are counted."""
    await connection.turns.take(0)
    try:
        return await _encoded(connection, api, version, response)
    finally:
        connection.turns.give_back()


async def _encoded(connection: "ServerConnection", api: Api, version: int, response: Message) -> bytes:
    api.errors += await connection.turns.run(error_count_in_slices(response))
    encoded = await connection.turns.run(encode_in_slices(response, version))
    await connection.broker.scheduler.free_in_slices(*_arrays(response))
    return encoded


def _arrays(message: Message) -> Iterator[list[Any]]:
    """Those of a message, and of the few in it that can have large ones."""
    for field in type(message).FIELDS:
        if field.kind == "array":
            items = getattr(message, field.name) or []
            if len(items) <= FEW_ITEMS_MAX and not isinstance(field.item, str):
                for item in items:
                    yield from _arrays(item)
            yield items


def check_room(connection: "ServerConnection", size: int) -> None:
    """MalformedMessage where so much waits already that the request is not taken."""
    if not connection.turns.has_room(size):
        raise MalformedMessage(f"a request of {size} bytes while {connection.turns.waiting_bytes} bytes of such wait")
