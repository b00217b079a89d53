"""Variable-length integers: seven bits a byte, lowest first, as lengths, tags and record fields carry them.

A reader takes at most five bytes (ten for 64 bits) and drops what overflows, as Kafka's does; a longer one is malformed.
"""

from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage

_U32 = 0xFFFF_FFFF
_U64 = 0xFFFF_FFFF_FFFF_FFFF

ONE_BYTE = tuple(bytes((n,)) for n in range(128))
"""The encodings of 0 to 127, which are nearly all that occur."""


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
    """Encode a signed 32-bit number, zig-zag, so that small negative numbers are short too."""
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ValueError(f"{value} is not a signed 32-bit number")
    return unsigned_varint((value << 1 ^ value >> 31) & _U32)


def varlong(value: int) -> bytes:
    """Encode a signed 64-bit number, zig-zag."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError(f"{value} is not a signed 64-bit number")
    return unsigned_varint((value << 1 ^ value >> 63) & _U64)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return an unsigned 32-bit number and the position after it."""
    return _read(buffer, position, 5, _U32)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return a signed 32-bit number (zig-zag) and the position after it."""
    value, position = _read(buffer, position, 5, _U32)
    return value >> 1 ^ -(value & 1), position


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return a signed 64-bit number (zig-zag) and the position after it."""
    value, position = _read(buffer, position, 10, _U64)
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
        raise MalformedMessage(f"a varint at {position} is cut off by the end") from None
    raise MalformedMessage(f"a varint at {position} is longer than {bytes_max} bytes")
