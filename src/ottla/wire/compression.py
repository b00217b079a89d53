"""The four compression codecs of record batches, in the framing of Kafka's clients.

Decompression takes an output limit and never allocates more than a block beyond it: a few bytes may claim to be
gigabytes.
"""

from struct import Struct
from types import ModuleType
from typing import Any

from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

GROWTH = 4
"""Initial guess of an unknown output size, as a multiple of the input; each retry multiplies it again."""
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
    """The data is not valid output of its codec."""


class DecompressionLimit(CorruptPayload):
    """The output would exceed the limit."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress data. `level` is the value of `compression.gzip.level` etc.; None is the codec's default."""
    import cramjam

    match codec:
        case 0:
            return bytes(data)
        case 1:
            return bytes(cramjam.gzip.compress(data, None if level == GZIP_LEVEL_DEFAULT else level))
        case 2:
            return _compress_xerial(memoryview(data), cramjam.snappy)
        case 3:
            # Linked blocks save little, and Apache Kafka rejects them.
            frame = cramjam.lz4.Compressor(level=_lz4_level(level), content_checksum=False, block_linked=False)
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case 4:
            return bytes(cramjam.zstd.compress(data, level))
    raise ValueError(f"unknown compression codec {codec}")


def _lz4_level(level: int | None) -> int:
    """Map a Kafka level: its default, 9, is the fast compressor; others are the slow one, here numbered 3 to 12."""
    return 0 if level is None or level == LZ4_LEVEL_DEFAULT else min(max(level, 3), 12)


def decompress(codec: int, data: Buffer, limit: int) -> bytes:
    """Decompress data. Raises DecompressionLimit if the output exceeds the limit, CorruptPayload if data is corrupt."""
    return bytes(decompress_in_place(codec, data, limit))  # no copy if it is bytes already


def decompress_in_place(codec: int, data: Buffer, limit: int) -> bytes | memoryview:
    """Like `decompress`, but return large output as a view of the buffer it was decompressed into.

    Copying 100 MB would take 50 ms, in which no other thread runs.
    """
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
    raise ValueError(f"unknown compression codec {codec}")


def _decompress_growing(codec: ModuleType, data: Buffer, limit: int, guess: int) -> bytes | memoryview:
    """Decompress into buffers that grow up to the limit. Retries cost at most a third; the library has no other
    limit."""
    import cramjam

    size = min(max(guess, GUESS_MIN), limit)
    while True:
        output = _allocate(size)
        try:
            return _result(output, codec.decompress_into(data, output))
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise CorruptPayload(str(error)) from None
        if size == limit:
            raise DecompressionLimit(f"the output exceeds {limit} bytes")
        size = min(size * GROWTH, limit)


def _allocate(size: int) -> bytearray | memoryview:
    """Allocate an output buffer; a large one uninitialized, since clearing a bytearray holds the GIL."""
    if size <= COPIED_BYTES_MAX:
        return bytearray(size)
    import numpy as np

    return memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]


def _result(output: bytearray | memoryview, size: int) -> bytes | memoryview:
    return bytes(memoryview(output)[:size]) if size <= COPIED_BYTES_MAX else memoryview(output)[:size]


def _decompress_gzip(data: Buffer, limit: int) -> bytes | memoryview:
    """Decompress concatenated members; like Java's reader, ignore trailing bytes that are not a member."""
    import cramjam

    try:
        return _decompress_growing(cramjam.gzip, data, limit, _gzip_guess(data))
    except DecompressionLimit:
        raise
    except CorruptPayload:
        return _decompress_members(bytes(data), limit)


def _decompress_members(data: bytes, limit: int) -> bytes | memoryview:
    """Decompress member by member, if a single call failed."""
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
            raise DecompressionLimit(f"the output exceeds {limit} bytes")
        if not member.eof:
            raise CorruptPayload("gzip: truncated member")
        rest = member.unused_data
        if rest[:3] != GZIP_MAGIC:
            return _result(output, len(output))


def _gzip_guess(data: Buffer) -> int:
    """Return the output size stored at the end of a gzip member, limited to gzip's maximum ratio in case it is
    wrong."""
    if len(data) < 18:
        return GUESS_MIN
    claimed: int = _little_u32.unpack_from(data, len(data) - 4)[0]
    return min(claimed, 1100 * len(data))


def _compress_xerial(data: memoryview, snappy: Any) -> bytes:
    """Compress to the stream format of the Java library, which Kafka uses: a header, then blocks with sizes."""
    parts = [XERIAL_HEADER]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts.append(_big_u32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit: int, snappy: Any) -> bytes | memoryview:
    """Decompress the Java library's stream format, or one raw block, which its reader accepts too."""
    if data[:8] != XERIAL_MAGIC or len(data) < len(XERIAL_HEADER):
        return _snappy_block(data, limit, snappy)
    output = bytearray()
    position, end = len(XERIAL_HEADER), len(data)
    while position < end:
        if end - position < 4:
            raise CorruptPayload("snappy: truncated block size")
        size: int = _big_u32.unpack_from(data, position)[0]
        if data[position : position + 8] == XERIAL_MAGIC:
            position += len(XERIAL_HEADER)  # concatenated streams
            continue
        position += 4
        if size > end - position:
            raise CorruptPayload("snappy: truncated block")
        output += _snappy_block(data[position : position + size], limit - len(output), snappy)
        position += size
    return _result(output, len(output))


def _snappy_block(block: memoryview, limit: int, snappy: Any) -> bytes:
    import cramjam

    try:
        if snappy.decompress_raw_len(block) > limit:
            raise DecompressionLimit(f"the output exceeds {limit} bytes")
        return bytes(snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptPayload(str(error)) from None


def _decompress_lz4(data: memoryview, limit: int, lz4: Any) -> bytes | memoryview:
    """Decompress one frame, block by block. Ignores bytes after it, and the value of the content checksum."""
    position, block_max, flags = _read_lz4_header(data)
    end = len(data)
    output = bytearray()
    scratch = bytearray(block_max)
    check_bytes = 4 if flags & LZ4_BLOCK_CHECKSUMS else 0
    while True:
        if end - position < 4:
            raise CorruptPayload("lz4: truncated frame")
        head: int = _little_u32.unpack_from(data, position)[0]
        if head == 0:
            if flags & LZ4_CONTENT_CHECKSUM and end - position < 8:
                raise CorruptPayload("lz4: truncated frame")
            return _result(output, len(output))
        size = head & ~LZ4_STORED_BIT
        block_end = position + 4 + size + check_bytes
        if size > block_max or block_end > end:
            raise CorruptPayload("lz4: truncated block, or larger than the frame allows")
        output += _lz4_block(data[position:block_end], size, flags, scratch, lz4)
        if len(output) > limit:
            raise DecompressionLimit(f"the output exceeds {limit} bytes")
        position = block_end


def _lz4_block(block: memoryview, size: int, flags: int, scratch: bytearray, lz4: Any) -> memoryview:
    """Return the content of one block, which begins with its size; it may be a view of `scratch`."""
    import cramjam

    try:
        if flags & LZ4_BLOCK_CHECKSUMS:
            # The library checks the checksums of frames only: make one of this block.
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
    """Return where the blocks start, the maximum size of a block, and the flags of the frame."""
    if len(data) < 7 or data[:4] != LZ4_MAGIC:
        raise CorruptPayload("lz4: not a frame")
    flags, block_code = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or block_code & 0x8F or (block_code >> 4) not in _LZ4_BLOCK_MAX:
        raise CorruptPayload(f"lz4: invalid frame descriptor {flags:02x} {block_code:02x}")
    if not flags & LZ4_INDEPENDENT:
        raise CorruptPayload("lz4: linked blocks are not supported")
    end = 6 + (8 if flags & LZ4_CONTENT_SIZE else 0)
    if len(data) <= end or data[end] != _small_xxh32(bytes(data[4:end])) >> 8 & 0xFF:
        raise CorruptPayload("lz4: wrong checksum of the frame descriptor")
    return end + 1, _LZ4_BLOCK_MAX[block_code >> 4], flags


def _small_xxh32(data: bytes) -> int:
    """Return the xxHash of fewer than 16 bytes with seed 0, which is enough for frame descriptors."""
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
