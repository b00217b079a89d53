"""Request and response headers."""

from struct import Struct

from ottla.wire.errors import MalformedMessage

_read_fixed = Struct(">hhih").unpack_from
FIXED_SIZE = 10
TAGS_MAX = 100
"""Tagged fields in one place. Kafka takes any number, and its clients send none that brokers of their version do not know."""


def read_request_header(
    buffer: bytearray | memoryview | bytes, position: int, end: int
) -> tuple[int, int, int, bytes | None, int]:
    """Key, version, correlation id, client id, and where what follows begins. Tags of a flexible header come next: see `skip_tags`."""
    if end - position < FIXED_SIZE:
        if end - position < FIXED_SIZE - 2:
            raise MalformedMessage("a request that ends inside its header")
        raise MalformedMessage("a request without a client id")
    key, version, correlation_id, size = _read_fixed(buffer, position)
    position += FIXED_SIZE
    if size < 0:
        return key, version, correlation_id, None, position
    if position + size > end:
        raise MalformedMessage("a client id that is longer than its request")
    return key, version, correlation_id, bytes(memoryview(buffer)[position : position + size]), position + size


def skip_tags(buffer: bytearray | memoryview | bytes, position: int, end: int) -> int:
    """The position behind a section of tagged fields, whatever they are."""
    if position >= end:
        raise MalformedMessage("a message that ends where its tags should be")
    count = buffer[position]
    if not count:
        return position + 1
    count, position = read_uvarint(buffer, position, end)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tagged fields in one place, where {TAGS_MAX} are allowed")
    for _ in range(count):
        _, position = read_uvarint(buffer, position, end)
        size, position = read_uvarint(buffer, position, end)
        position += size
        if position > end:
            raise MalformedMessage("a tagged field that is longer than its message")
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
    raise MalformedMessage("a number of variable length that does not end")
