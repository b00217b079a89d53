"""The four codecs of record batches, in the frames that Kafka's clients write and read.

Decompression has a maximum that it never allocates more than a block beyond: a few bytes may claim to be gigabytes.
"""

from struct import Struct
from types import ModuleType
from typing import Any

from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

GROWTH = 4
"""Where the size of the output is not known it is guessed to be so many times that of the input, and so many times more if that fails."""
GUESS_MIN = 4096
COPIED_BYTES_MAX = 1 << 20

GZIP_LEVEL_DEFAULT = -1
GZIP_MAGIC = b"\x1f\x8b\x08"
XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER = XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
XERIAL_BLOCK_BYTES = 32 << 10

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_LEVEL_DEFAULT = 9
LZ4_STORED_BIT = 0x8000_0000
LZ4_VERSION = 0x40
LZ4_INDEPENDENT = 0x20
LZ4_BLOCK_CHECKSUMS = 0x10
LZ4_CONTENT_SIZE = 0x08
LZ4_CONTENT_CHECKSUM = 0x04
_LZ4_BLOCK_MAX = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}

_big_u32 = Struct(">I")
_little_u32 = Struct("<I")


class CorruptPayload(MalformedMessage):
    """The bytes are not what their codec writes."""


class DecompressionLimit(CorruptPayload):
    """The output would be larger than it may be."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`level` is as `compression.gzip.level` and its like give it; without one the codec's default is taken."""
    import cramjam

    match codec:
        case 0:
            return bytes(data)
        case 1:
            return bytes(cramjam.gzip.compress(data, None if level == GZIP_LEVEL_DEFAULT else level))
        case 2:
            return _compress_xerial(memoryview(data), cramjam.snappy)
        case 3:
            # Blocks that lean on one another save little, and Apache Kafka refuses them.
            frame = cramjam.lz4.Compressor(level=_lz4_level(level), content_checksum=False, block_linked=False)
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case 4:
            return bytes(cramjam.zstd.compress(data, level))
    raise ValueError(f"no codec has the number {codec}")


def _lz4_level(level: int | None) -> int:
    """Kafka's default, 9, means the fast way; every other level asks for the thorough one, which this library numbers from 3 to 12."""
    return 0 if level is None or level == LZ4_LEVEL_DEFAULT else min(max(level, 3), 12)


def decompress(codec: int, data: Buffer, limit: int) -> bytes:
    """At most `limit` bytes. DecompressionLimit where there would be more, CorruptPayload where the input is damaged."""
    return bytes(decompress_in_place(codec, data, limit))  # which copies nothing that is bytes already


def decompress_in_place(codec: int, data: Buffer, limit: int) -> bytes | memoryview:
    """The same; where it is much, a view of what it was decompressed into: to copy a hundred megabytes takes 50 ms, in which no other
    thread runs."""
    import cramjam

    match codec:
        case 0:
            return bytes(data)
        case 1:
            return _decompress_gzip(data, limit)
        case 2:
            return _decompress_snappy(memoryview(data), limit, cramjam.snappy)
        case 3:
            return _decompress_lz4(memoryview(data), limit, cramjam.lz4)
        case 4:
            return _decompress_growing(cramjam.zstd, data, limit, GROWTH * len(data)) if len(data) else b""
    raise ValueError(f"no codec has the number {codec}")


def _decompress_growing(codec: ModuleType, data: Buffer, limit: int, guess: int) -> bytes | memoryview:
    """Into buffers that grow up to the limit. Starting again costs a third of the work at most, and the library has no other bound."""
    import cramjam

    size = min(max(guess, GUESS_MIN), limit)
    while True:
        output = _room(size)
        try:
            return _taken(output, codec.decompress_into(data, output))
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise CorruptPayload(str(error)) from None
        if size == limit:
            raise DecompressionLimit(f"more than {limit} bytes")
        size = min(size * GROWTH, limit)


def _room(size: int) -> bytearray | memoryview:
    """Much memory is taken as it comes: a bytearray is cleared first, and while Python does so no other thread runs."""
    if size <= COPIED_BYTES_MAX:
        return bytearray(size)
    import numpy as np

    return memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]


def _taken(output: bytearray | memoryview, size: int) -> bytes | memoryview:
    return bytes(memoryview(output)[:size]) if size <= COPIED_BYTES_MAX else memoryview(output)[:size]


def _decompress_gzip(data: Buffer, limit: int) -> bytes | memoryview:
    """Members one after another. What follows them and is no member is not looked at, as Java's reader does not."""
    import cramjam

    try:
        return _decompress_growing(cramjam.gzip, data, limit, _gzip_guess(data))
    except DecompressionLimit:
        raise
    except CorruptPayload:
        return _decompress_members(bytes(data), limit)


def _decompress_members(data: bytes, limit: int) -> bytes | memoryview:
    """The slow and patient way: where one call could not make sense of the whole."""
    import zlib

    output = bytearray()
    rest = data
    while True:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            output += member.decompress(rest, limit + 1 - len(output))
        except zlib.error as error:
            raise CorruptPayload(f"gzip: {error}") from None
        if len(output) > limit:
            raise DecompressionLimit(f"more than {limit} bytes")
        if not member.eof:
            raise CorruptPayload("gzip: a member is cut off by the end")
        rest = member.unused_data
        if rest[:3] != GZIP_MAGIC:
            return _taken(output, len(output))


def _gzip_guess(data: Buffer) -> int:
    """A gzip member ends with the size of its output. It may lie, so that it is believed up to what gzip can reach at best."""
    if len(data) < 18:
        return GUESS_MIN
    claimed: int = _little_u32.unpack_from(data, len(data) - 4)[0]
    return min(claimed, 1100 * len(data))


def _compress_xerial(data: memoryview, snappy: Any) -> bytes:
    """Kafka's snappy is the stream format of the Java library: a header, then blocks with their sizes."""
    parts = [XERIAL_HEADER]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts.append(_big_u32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit: int, snappy: Any) -> bytes | memoryview:
    """The Java library's stream, or else one bare block, which its reader takes too."""
    if data[:8] != XERIAL_MAGIC or len(data) < len(XERIAL_HEADER):
        return _snappy_block(data, limit, snappy)
    output = bytearray()
    position, end = len(XERIAL_HEADER), len(data)
    while position < end:
        if end - position < 4:
            raise CorruptPayload("snappy: a block without its size")
        size: int = _big_u32.unpack_from(data, position)[0]
        if data[position : position + 8] == XERIAL_MAGIC:
            position += len(XERIAL_HEADER)  # streams may follow one another
            continue
        position += 4
        if size > end - position:
            raise CorruptPayload("snappy: a block is cut off by the end")
        output += _snappy_block(data[position : position + size], limit - len(output), snappy)
        position += size
    return _taken(output, len(output))


def _snappy_block(block: memoryview, limit: int, snappy: Any) -> bytes:
    import cramjam

    try:
        if snappy.decompress_raw_len(block) > limit:
            raise DecompressionLimit("more bytes than may be")
        return bytes(snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptPayload(str(error)) from None


def _decompress_lz4(data: memoryview, limit: int, lz4: Any) -> bytes | memoryview:
    """One frame, block by block. What follows it is not looked at, nor is the checksum of the contents, though it must be there."""
    position, block_max, flags = _read_lz4_header(data)
    end = len(data)
    output = bytearray()
    scratch = bytearray(block_max)
    check_bytes = 4 if flags & LZ4_BLOCK_CHECKSUMS else 0
    while True:
        if end - position < 4:
            raise CorruptPayload("lz4: the frame is cut off by the end")
        head: int = _little_u32.unpack_from(data, position)[0]
        if head == 0:
            if flags & LZ4_CONTENT_CHECKSUM and end - position < 8:
                raise CorruptPayload("lz4: the frame is cut off by the end")
            return _taken(output, len(output))
        size = head & ~LZ4_STORED_BIT
        block_end = position + 4 + size + check_bytes
        if size > block_max or block_end > end:
            raise CorruptPayload("lz4: a block is larger than it may be, or cut off by the end")
        output += _lz4_block(data[position:block_end], size, flags, scratch, lz4)
        if len(output) > limit:
            raise DecompressionLimit(f"more than {limit} bytes")
        position = block_end


def _lz4_block(block: memoryview, size: int, flags: int, scratch: bytearray, lz4: Any) -> memoryview:
    """The contents of one block, which begins with its size. They may lie in `scratch`."""
    import cramjam

    try:
        if flags & LZ4_BLOCK_CHECKSUMS:
            # The library checks those of whole frames: one is made of this block.
            descriptor = bytes([LZ4_VERSION | LZ4_INDEPENDENT | LZ4_BLOCK_CHECKSUMS, 0x70])
            frame = LZ4_MAGIC + descriptor + bytes([_small_xxh32(descriptor) >> 8 & 0xFF]) + block + bytes(4)
            return memoryview(scratch)[: lz4.decompress_into(frame, scratch)]
        contents = block[4 : 4 + size]
        if block[3] & 0x80:
            return contents
        return memoryview(scratch)[: lz4.decompress_block_into(contents, scratch, output_len=len(scratch))]
    except cramjam.DecompressionError as error:
        raise CorruptPayload(f"lz4: {error}") from None


def _read_lz4_header(data: memoryview) -> tuple[int, int, int]:
    """Where the blocks start, how large each may become, and the flags of the frame."""
    if len(data) < 7 or data[:4] != LZ4_MAGIC:
        raise CorruptPayload("lz4: no frame")
    flags, block_code = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or block_code & 0x8F or (block_code >> 4) not in _LZ4_BLOCK_MAX:
        raise CorruptPayload(f"lz4: a frame descriptor {flags:02x} {block_code:02x} that has no meaning")
    if not flags & LZ4_INDEPENDENT:
        raise CorruptPayload("lz4: blocks that depend on one another")
    end = 6 + (8 if flags & LZ4_CONTENT_SIZE else 0)
    if len(data) <= end or data[end] != _small_xxh32(bytes(data[4:end])) >> 8 & 0xFF:
        raise CorruptPayload("lz4: the checksum of the frame descriptor is wrong")
    return end + 1, _LZ4_BLOCK_MAX[block_code >> 4], flags


def _small_xxh32(data: bytes) -> int:
    """xxHash of fewer than 16 bytes, seed 0: all that a frame descriptor needs."""
    mask = 0xFFFF_FFFF
    value = 374761393 + len(data)
    position = 0
    while len(data) - position >= 4:
        value = value + _little_u32.unpack_from(data, position)[0] * 3266489917 & mask
        value = (value << 17 | value >> 15) * 668265263 & mask
        position += 4
    for byte in data[position:]:
        value = value + byte * 374761393 & mask
        value = (value << 11 | value >> 21) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16
