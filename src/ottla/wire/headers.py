"""Request and response headers."""

from struct import Struct

from ottla.wire.errors import MalformedMessage

_read_fixed = Struct(">hhih").unpack_from
FIXED_SIZE = 10
TAGS_MAX = 100
"""Upper limit of the tagged fields of one section. Kafka has none; its clients send only a few."""


def read_request_header(
    buffer: bytearray | memoryview | bytes, position: int, end: int
) -> tuple[int, int, int, bytes | None, int]:
    """Return API key, version, correlation id, client id, and the position after them.

    In a flexible header the tagged fields come next: see `skip_tags`.
    """
    if end - position < FIXED_SIZE:
        if end - position < FIXED_SIZE - 2:
            raise MalformedMessage("the request ends inside its header")
        raise MalformedMessage("the request ends before its client id")
    key, version, correlation_id, size = _read_fixed(buffer, position)
    position += FIXED_SIZE
    if size < 0:
        return key, version, correlation_id, None, position
    if position + size > end:
        raise MalformedMessage(f"client id of {size} bytes extends past the end of the request")
    return key, version, correlation_id, bytes(memoryview(buffer)[position : position + size]), position + size


def skip_tags(buffer: bytearray | memoryview | bytes, position: int, end: int) -> int:
    """Return the position after a section of tagged fields."""
    if position >= end:
        raise MalformedMessage("the message ends before its tagged fields")
    count = buffer[position]
    if not count:
        return position + 1
    count, position = read_uvarint(buffer, position, end)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tagged fields in one section; the limit is {TAGS_MAX}")
    for _ in range(count):
        _, position = read_uvarint(buffer, position, end)
        size, position = read_uvarint(buffer, position, end)
        position += size
        if position > end:
            raise MalformedMessage(f"tagged field of {size} bytes extends past the end of the message")
    return position


def read_uvarint(buffer: bytearray | memoryview | bytes, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift <= 28:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise MalformedMessage("varint is longer than five bytes, or extends past the end of the message")
