"""Catalog of compressed batches, with the response of Apache Kafka 4.3; also for topics with their own codec."""

import gzip
import zlib
from collections.abc import Sequence

import cramjam

from ottla.wire.compression import GZIP, LZ4, SNAPPY, XERIAL_HEADER, ZSTD, _small_xxh32, compress
from ottla.wire.varint import varint, varlong
from tests.unit.wire.batch_catalog import (
    APPEND_TIME,
    CODECS,
    CORRUPT,
    HOUR,
    LONG_VARINT,
    LONG_VARLONG,
    NONE,
    RECORD,
    TIMESTAMP,
    TOO_LARGE,
    TRANSACTIONAL,
    UNKNOWN,
    Case,
    batch,
    body,
    good,
    record,
    several,
)

PLAIN_TOPIC = {"compression.type": "uncompressed"}
GZIP_TOPIC = {"compression.type": "gzip"}
ZSTD_TOPIC = {"compression.type": "zstd"}


def packed(now: int, codec: int, payload: bytes, *, count: int = 1, **more: int) -> bytes:
    return batch(now, compress(codec, payload), count=count, attributes=codec | more.pop("attributes", 0), **more)


def _truncated(codec: int, missing: int) -> bytes:
    return compress(codec, several(50))[:-missing]


def _every_codec() -> list[Case]:
    cases = []
    for name, codec in CODECS.items():
        cases += [
            Case(f"{name}", lambda now, c=codec: good(now, 3, c)),
            Case(f"{name} bad checksum", lambda now, c=codec: packed(now, c, record(), crc_off=1), CORRUPT),
            Case(
                f"{name} offset delta 5", lambda now, c=codec: packed(now, c, record(offset_delta=varint(5))), UNKNOWN
            ),
            Case(
                f"{name} offset deltas reversed",
                lambda now, c=codec: packed(now, c, record(offset_delta=varint(1)) + record(), count=2),
                UNKNOWN,
            ),
            Case(
                f"{name} garbage",
                lambda now, c=codec: batch(now, b"this is not compressed at all", attributes=c),
                UNKNOWN,
            ),
            Case(
                f"{name} no payload",
                lambda now, c=codec: batch(now, b"", attributes=c),
                RECORD if codec == ZSTD else UNKNOWN,
            ),
            Case(
                f"{name} truncated payload",
                lambda now, c=codec: batch(now, _truncated(c, 9), count=50, attributes=c),
                UNKNOWN,
            ),
            Case(
                f"{name} payload truncated by one",
                lambda now, c=codec: batch(now, _truncated(c, 1), count=50, attributes=c),
                UNKNOWN,
            ),
            Case(
                f"{name} bytes after it",
                lambda now, c=codec: batch(now, compress(c, record()) + b"junk" * 5, attributes=c),
                NONE if codec in (GZIP, LZ4) else UNKNOWN,
            ),
            Case(
                f"{name} zeros after it",
                lambda now, c=codec: batch(now, compress(c, record()) + bytes(20), attributes=c),
                NONE if codec in (GZIP, LZ4) else UNKNOWN,
            ),
            Case(
                f"{name} twice",
                lambda now, c=codec: batch(
                    now, compress(c, record()) + compress(c, record(offset_delta=varint(1))), count=2, attributes=c
                ),
                RECORD if codec == LZ4 else NONE,
            ),
            Case(f"{name} of empty data", lambda now, c=codec: packed(now, c, b""), RECORD),
            Case(f"{name} count 2 of 1", lambda now, c=codec: packed(now, c, record(), count=2), RECORD),
            Case(f"{name} count 1 of 2", lambda now, c=codec: packed(now, c, several(2)), RECORD),
            Case(f"{name} bytes after the last record", lambda now, c=codec: packed(now, c, record() + b"\0"), RECORD),
            Case(f"{name} control batch", lambda now, c=codec: packed(now, c, record(), attributes=0x20), RECORD),
            Case(
                f"{name} ahead", lambda now, c=codec: packed(now + 2 * HOUR, c, several(2), count=2), TIMESTAMP, (0, 1)
            ),
            Case(
                f"{name} compacted",
                lambda now, c=codec: packed(now, c, record()),
                RECORD,
                (0,),
                {"cleanup.policy": "compact"},
            ),
            Case(f"{name} append time", lambda now, c=codec: good(now, 3, c), configs=APPEND_TIME),
            Case(f"{name} maximum off", lambda now, c=codec: packed(now, c, record(), max_timestamp=7)),
        ]
    return cases


ZSTD_RECORDS: Sequence[Case] = tuple(
    Case(f"zstd: {name}", lambda now, p=payload, n=count: packed(now, ZSTD, p, count=n), code)
    for name, payload, count, code in (
        ("empty record", b"\0", 1, RECORD),
        ("length too large", record(size=100), 1, NONE),
        ("length too large by one", record(size=11), 1, NONE),
        ("length too small", record(size=5), 1, NONE),
        ("length too small by one", record(size=8), 1, NONE),
        ("length negative", record(size=-3), 1, NONE),
        ("length of six bytes", LONG_VARINT + body(), 1, RECORD),
        ("length unterminated", b"\x80\x80", 1, RECORD),
        ("attributes", record(body(attributes=0xFF)), 1, 0),
        ("delta of eleven bytes", record(timestamp_delta=LONG_VARLONG), 1, RECORD),
        ("offset delta of six bytes", record(offset_delta=LONG_VARINT), 1, RECORD),
        ("key empty", record(key=b"\0"), 1, 0),
        ("key -2", record(key=b"\3"), 1, 0),
        ("key too long for the batch", record(key=varint(500)), 1, RECORD),
        ("key maximal", record(key=varint((1 << 31) - 1)), 1, RECORD),
        ("key of six bytes", record(key=LONG_VARINT), 1, RECORD),
        ("key into the next record", record(key=varint(6)) + record(offset_delta=varint(1)), 2, RECORD),
        ("value null", record(value=b"\1"), 1, 0),
        ("value -2", record(value=b"\3"), 1, 0),
        ("value too long for the batch", record(value=varint(500)), 1, RECORD),
        ("value into the next record", record(value=varint(8) + b"abc") + record(offset_delta=varint(1)), 2, RECORD),
        ("extra byte in a record", record(tail=b"\0"), 1, RECORD),
        ("no header count", record(headers=b""), 1, RECORD),
        ("headers", record(headers=varint(2) + b"\2a\2b" + b"\2c\1"), 1, 0),
        ("header count -1", record(headers=b"\1"), 1, RECORD),
        ("header count too large", record(headers=varint(1000)), 1, RECORD),
        ("header count one too large", record(headers=varint(2) + b"\2a\2b"), 1, RECORD),
        ("header count one too small", record(headers=varint(1) + b"\2a\2b\2c\2d"), 1, RECORD),
        ("header key null", record(headers=varint(1) + b"\1\2b"), 1, RECORD),
        ("header key empty", record(headers=varint(1) + b"\0\2b"), 1, 0),
        ("header key not UTF-8", record(headers=varint(1) + b"\2\xff\2b"), 1, 0),
        ("header key too long", record(headers=varint(1) + varint(70) + b"a\2b"), 1, RECORD),
        ("header value -2", record(headers=varint(1) + b"\2a\3"), 1, 0),
        ("header value too long", record(headers=varint(1) + b"\2a" + varint(70)), 1, RECORD),
        ("length longer than needed", bytes([0x80 | 18, 0x80, 0]) + body(), 1, 0),
    )
)


def _lz4_frame(
    payload: bytes,
    *,
    flags: int = 0x60,
    block: int = 0x40,
    checksum_off: int = 0,
    block_checksum: bytes = b"",
    tail: bytes = bytes(4),
    content_size: bytes = b"",
) -> bytes:
    """Return an lz4 frame with one stored block."""
    descriptor = bytes([flags, block]) + content_size
    check = (_small_xxh32(descriptor) >> 8 & 0xFF) ^ checksum_off
    size = (len(payload) | 0x8000_0000).to_bytes(4, "little")
    return b"\x04\x22\x4d\x18" + descriptor + bytes([check]) + size + payload + block_checksum + tail


def _linked_lz4(payload: bytes) -> bytes:
    return bytes(cramjam.lz4.compress(payload))


RAW_DEFLATE = zlib.compress(record())

FRAMES: Sequence[Case] = (
    Case(
        "snappy as one raw block",
        lambda now: batch(now, bytes(cramjam.snappy.compress_raw(record())), attributes=SNAPPY),
    ),
    Case(
        "snappy in Google's frames",
        lambda now: batch(now, bytes(cramjam.snappy.compress(record())), attributes=SNAPPY),
        UNKNOWN,
    ),
    Case("snappy header alone", lambda now: batch(now, XERIAL_HEADER, attributes=SNAPPY), RECORD),
    Case(
        "snappy of another version",
        lambda now: batch(
            now, XERIAL_HEADER[:8] + b"\0\0\0\7\0\0\0\1" + compress(SNAPPY, record())[16:], attributes=SNAPPY
        ),
    ),
    Case(
        "snappy of an incompatible version",
        lambda now: batch(
            now, XERIAL_HEADER[:8] + b"\0\0\0\7\0\0\0\7" + compress(SNAPPY, record())[16:], attributes=SNAPPY
        ),
    ),
    Case(
        "snappy with an empty block",
        lambda now: batch(now, XERIAL_HEADER + b"\0\0\0\1\0" + compress(SNAPPY, record())[16:], attributes=SNAPPY),
    ),
    Case(
        "snappy with a block of no bytes",
        lambda now: batch(now, XERIAL_HEADER + bytes(4) + compress(SNAPPY, record())[16:], attributes=SNAPPY),
        UNKNOWN,
    ),
    Case("lz4 linked blocks", lambda now: batch(now, _linked_lz4(record()), attributes=LZ4), UNKNOWN),
    Case("lz4 stored", lambda now: batch(now, _lz4_frame(record()), attributes=LZ4)),
    Case(
        "lz4 bad header checksum", lambda now: batch(now, _lz4_frame(record(), checksum_off=1), attributes=LZ4), UNKNOWN
    ),
    Case(
        "lz4 content size",
        lambda now: batch(now, _lz4_frame(record(), flags=0x68, content_size=bytes(8)), attributes=LZ4),
    ),
    Case("lz4 reserved bit", lambda now: batch(now, _lz4_frame(record(), flags=0x62), attributes=LZ4), UNKNOWN),
    Case(
        "lz4 dictionary",
        lambda now: batch(now, _lz4_frame(record(), flags=0x61, content_size=bytes(4)), attributes=LZ4),
        UNKNOWN,
    ),
    Case("lz4 version 2", lambda now: batch(now, _lz4_frame(record(), flags=0xA0), attributes=LZ4), UNKNOWN),
    Case("lz4 block size 3", lambda now: batch(now, _lz4_frame(record(), block=0x30), attributes=LZ4), UNKNOWN),
    Case("lz4 block size 7", lambda now: batch(now, _lz4_frame(record(), block=0x70), attributes=LZ4)),
    Case(
        "lz4 block descriptor bits", lambda now: batch(now, _lz4_frame(record(), block=0x41), attributes=LZ4), UNKNOWN
    ),
    Case(
        "lz4 bad block checksum",
        lambda now: batch(now, _lz4_frame(record(), flags=0x70, block_checksum=bytes(4)), attributes=LZ4),
        UNKNOWN,
    ),
    Case(
        "lz4 good block checksum",
        lambda now: batch(
            now,
            _lz4_frame(record(), flags=0x70, block_checksum=_small_xxh32(record()).to_bytes(4, "little")),
            attributes=LZ4,
        ),
    ),
    Case(
        "lz4 bad content checksum",
        lambda now: batch(now, _lz4_frame(record(), flags=0x64, tail=bytes(8)), attributes=LZ4),
    ),
    Case("lz4 no end mark", lambda now: batch(now, _lz4_frame(record(), tail=b""), attributes=LZ4), UNKNOWN),
    Case(
        "lz4 no content checksum at the end",
        lambda now: batch(now, _lz4_frame(record(), flags=0x64), attributes=LZ4),
        UNKNOWN,
    ),
    Case("gzip of Python", lambda now: batch(now, gzip.compress(record()), attributes=GZIP)),
    Case("zlib instead of gzip", lambda now: batch(now, RAW_DEFLATE, attributes=GZIP), UNKNOWN),
    Case("gzip bad trailer", lambda now: batch(now, gzip.compress(record())[:-1] + b"\7", attributes=GZIP), UNKNOWN),
    Case(
        "zstd skippable frame first",
        lambda now: batch(now, b"\x50\x2a\x4d\x18\x02\0\0\0ab" + compress(ZSTD, record()), attributes=ZSTD),
    ),
    Case("wrong codec", lambda now: batch(now, compress(GZIP, record()), attributes=ZSTD), UNKNOWN),
)

CONVERTED: Sequence[Case] = (
    *(Case(f"none to {name}", lambda now: good(now, 3), configs={"compression.type": name}) for name in CODECS),
    *(
        Case(f"{name} to none", lambda now, c=codec: good(now, 3, c), configs=PLAIN_TOPIC)
        for name, codec in CODECS.items()
    ),
    Case("lz4 to zstd", lambda now: good(now, 3, LZ4), configs=ZSTD_TOPIC),
    Case("gzip to gzip", lambda now: good(now, 3, GZIP), configs=GZIP_TOPIC),
    Case("none to none", lambda now: good(now, 3), configs=PLAIN_TOPIC),
    Case(
        "none to gzip, producer",
        lambda now: good(now, 3, producer_id=70, producer_epoch=1, base_sequence=4),
        configs=GZIP_TOPIC,
    ),
    Case("none to gzip, append time", lambda now: good(now, 3), configs=GZIP_TOPIC | APPEND_TIME),
    Case(
        "none to gzip, append time claimed",
        lambda now: batch(now, attributes=8),
        TIMESTAMP,
        (0,),
        GZIP_TOPIC | APPEND_TIME,
    ),
    Case(
        "none to gzip, descending timestamps",
        lambda now: batch(
            now, record() + record(offset_delta=b"\2", timestamp_delta=varlong(-50)), count=2, max_timestamp=now - 1
        ),
        configs=GZIP_TOPIC,
    ),
    Case("none to gzip, no timestamp", lambda now: batch(now, base_timestamp=-1), configs=GZIP_TOPIC),
    Case("none to gzip, claimed append time", lambda now: batch(now, attributes=8), configs=GZIP_TOPIC),
    Case("none to gzip, offset delta 5", lambda now: batch(now, record(offset_delta=varint(5))), configs=GZIP_TOPIC),
    Case(
        "gzip to zstd, offset delta 5",
        lambda now: packed(now, GZIP, record(offset_delta=varint(5))),
        configs=ZSTD_TOPIC,
    ),
    Case("gzip to zstd, length too large", lambda now: packed(now, GZIP, record(size=100)), RECORD, (), ZSTD_TOPIC),
    Case("gzip to zstd, length too small", lambda now: packed(now, GZIP, record(size=8)), RECORD, (), ZSTD_TOPIC),
    Case(
        "gzip to zstd, length of six bytes", lambda now: packed(now, GZIP, LONG_VARINT + body()), RECORD, (), ZSTD_TOPIC
    ),
    Case(
        "none to gzip, attributes of a record",
        lambda now: batch(now, record(body(attributes=0xFF))),
        configs=GZIP_TOPIC,
    ),
    Case("none to gzip, bit 7", lambda now: batch(now, attributes=0x80), configs=GZIP_TOPIC),
    Case("none to gzip, delete horizon", lambda now: batch(now, attributes=0x40), configs=GZIP_TOPIC),
    Case(
        "none to gzip, headers",
        lambda now: batch(now, record(headers=varint(2) + b"\2a\2b" + b"\2\xff\1")),
        configs=GZIP_TOPIC,
    ),
    Case("none to gzip, key -2", lambda now: batch(now, record(key=b"\3", value=b"\3")), configs=GZIP_TOPIC),
    Case(
        "none to gzip, header value -2",
        lambda now: batch(now, record(headers=varint(1) + b"\2a\3")),
        configs=GZIP_TOPIC,
    ),
    Case("none to gzip, control", lambda now: batch(now, attributes=0x20), RECORD, (), GZIP_TOPIC),
    Case(
        "none to gzip, transactional without a producer",
        lambda now: batch(now, attributes=0x10),
        TRANSACTIONAL,
        (),
        GZIP_TOPIC,
    ),
    Case(
        "gzip to none, then too large",
        lambda now: packed(now, GZIP, record(value=varint(1000) + bytes(1000))),
        TOO_LARGE,
        (),
        {"compression.type": "uncompressed", "max.message.bytes": "500"},
    ),
)

COMPRESSED: Sequence[Case] = (*_every_codec(), *ZSTD_RECORDS, *FRAMES)
