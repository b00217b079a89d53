"""Variable-length integers, as Kafka encodes lengths, tags and record fields: seven bits per byte, lowest first.

A reader takes at most five bytes (ten for 64 bits) and drops the bits that overflow, as Kafka's does; a longer number
is malformed.
"""

from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
ONE_BYTE = tuple(bytes((n,)) for n in range(128))
"""The encodings of 0 to 127, by far the most frequent ones."""

_U32 = 0xFFFF_FFFF
_U64 = 0xFFFF_FFFF_FFFF_FFFF


def unsigned_varint(value: int) -> bytes:
    """Encode a number from 0 to 2**64 - 1."""
    if 0 <= value < 128:
        return ONE_BYTE[value]
    if 0 < value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if 0 < value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    if not 0 <= value <= _U64:
        raise ValueError(f"{value} is not an unsigned 64-bit number")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Encode a signed 32-bit number with zig-zag, which keeps small negative numbers short."""
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ValueError(f"{value} is not a signed 32-bit number")
    return unsigned_varint((value << 1 ^ value >> 31) & _U32)


def varlong(value: int) -> bytes:
    """Encode a signed 64-bit number with zig-zag."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError(f"{value} is not a signed 64-bit number")
    return unsigned_varint((value << 1 ^ value >> 63) & _U64)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return an unsigned 32-bit number and the position after it."""
    return _read(buffer, position, VARINT_BYTES_MAX, _U32)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return a signed (zig-zag) 32-bit number and the position after it."""
    # One and two bytes are read here, without the call of `_read`: 0.07 instead of 0.2 µs, five times for each record
    # of a batch.
    try:
        byte = buffer[position]
        if byte < 128:
            return byte >> 1 ^ -(byte & 1), position + 1
        high = buffer[position + 1]
    except IndexError:
        raise _cut_off(position) from None
    if high < 128:
        return (byte & 127 | high << 7) >> 1 ^ -(byte & 1), position + 2
    value, position = _read(buffer, position, VARINT_BYTES_MAX, _U32)
    return value >> 1 ^ -(value & 1), position


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return a signed (zig-zag) 64-bit number and the position after it."""
    try:
        byte = buffer[position]
        if byte < 128:
            return byte >> 1 ^ -(byte & 1), position + 1
        high = buffer[position + 1]
    except IndexError:
        raise _cut_off(position) from None
    if high < 128:
        return (byte & 127 | high << 7) >> 1 ^ -(byte & 1), position + 2
    value, position = _read(buffer, position, VARLONG_BYTES_MAX, _U64)
    return value >> 1 ^ -(value & 1), position


def _read(buffer: Buffer, position: int, bytes_max: int, mask: int) -> tuple[int, int]:
    try:
        byte = buffer[position]
        if byte < 128:
            return byte, position + 1
        value = byte & 127
        for index in range(1, bytes_max):
            byte = buffer[position + index]
            value |= (byte & 127) << 7 * index
            if byte < 128:
                return value & mask, position + index + 1
    except IndexError:
        raise _cut_off(position) from None
    raise MalformedMessage(f"varint at position {position} is longer than {bytes_max} bytes")


def _cut_off(position: int) -> MalformedMessage:
    return MalformedMessage(f"varint at position {position} extends past the end of the buffer")
