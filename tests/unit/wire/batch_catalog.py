"""Catalog of valid and invalid batches, with the response of Apache Kafka 4.3 to each.

The responses were recorded from a real broker. `tests/compat/test_compat_batches.py` checks them against Ottla, or
against Kafka on request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack

from ottla.wire.batches import HEADER, RECORDS_AT, Record, build_batch, write_checksum
from ottla.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from ottla.wire.varint import varint, varlong

NONE, UNKNOWN, CORRUPT, TOO_LARGE, LIST_TOO_LARGE, TIMESTAMP, EPOCH, TRANSACTIONAL, RECORD = (
    0,
    -1,
    2,
    10,
    18,
    32,
    47,
    53,
    87,
)
CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
HOUR = 3_600_000
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
NO_AFTER_LIMIT = {"message.timestamp.after.max.ms": str(LONG_MAX)}


@dataclass(frozen=True, slots=True)
class Case:
    """A batch, built for the current time in milliseconds, with the expected error code and record errors."""

    name: str
    batch: Callable[[int], bytes]
    code: int = NONE
    record_errors: tuple[int, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)


def body(
    *,
    attributes: int = 0,
    timestamp_delta: bytes = b"\0",
    offset_delta: bytes = b"\0",
    key: bytes = b"\1",
    value: bytes = b"\x06abc",
    headers: bytes = b"\0",
    tail: bytes = b"",
) -> bytes:
    """Return the body of a record; each field is given as encoded bytes."""
    return bytes([attributes]) + timestamp_delta + offset_delta + key + value + headers + tail


def record(fields: bytes | None = None, *, size: int | None = None, **parts: bytes) -> bytes:
    inside = body(**parts) if fields is None else fields
    return varint(len(inside) if size is None else size) + inside


def batch(
    now: int,
    payload: bytes | None = None,
    *,
    count: int = 1,
    last_offset_delta: int | None = None,
    base_offset: int = 0,
    length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    crc_off: int = 0,
) -> bytes:
    """Return a batch with a valid checksum, whatever else is invalid."""
    payload = record() if payload is None else payload
    base_timestamp = now if base_timestamp is None else base_timestamp
    max_timestamp = base_timestamp if max_timestamp is None else max_timestamp
    last_offset_delta = count - 1 if last_offset_delta is None else last_offset_delta
    length = RECORDS_AT - 12 + len(payload) if length is None else length
    data = bytearray(RECORDS_AT) + payload
    HEADER.pack_into(
        data,
        0,
        base_offset,
        length,
        leader_epoch,
        magic,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    write_checksum(data)
    data[20] ^= crc_off
    return bytes(data)


def good(now: int, count: int = 1, codec: int = 0, **more: int) -> bytes:
    return bytes(
        build_batch(
            [Record(timestamp=now + i, key=b"k%d" % i, value=b"v" * i) for i in range(count)], codec=codec, **more
        )
    )


def several(count: int, **parts: bytes) -> bytes:
    return b"".join(record(offset_delta=varint(i), **parts) for i in range(count))


LONG_VARINT = b"\x80\x80\x80\x80\x80\x00"
LONG_VARLONG = b"\x80" * 10 + b"\x00"

FRAMING: Sequence[Case] = (
    Case("one batch", good),
    Case("one batch of three", lambda now: good(now, 3)),
    Case("nothing", lambda now: b"", RECORD),
    Case("eleven zeros", lambda now: bytes(11), RECORD),
    Case("twelve zeros", lambda now: bytes(12), CORRUPT),
    Case("seventeen zeros", lambda now: bytes(17), CORRUPT),
    Case("sixteen bytes of a batch", lambda now: good(now)[:16], RECORD),
    Case("length 13", lambda now: pack(">qii", 0, 13, 0) + b"\2" + bytes(60), CORRUPT),
    Case("length 14, complete", lambda now: pack(">qii", 0, 14, 0) + b"\2" + bytes(9), UNKNOWN),
    Case("length 38, complete", lambda now: pack(">qii", 0, 38, 0) + b"\2" + bytes(33), UNKNOWN),
    Case("length 39, complete", lambda now: pack(">qii", 0, 39, 0) + b"\2" + bytes(34), CORRUPT),
    Case("length 14, zeros after it", lambda now: pack(">qii", 0, 14, 0) + b"\2" + bytes(80), CORRUPT),
    Case("length 48", lambda now: batch(now, b"", length=48), CORRUPT),
    Case("length 48, complete", lambda now: batch(now, b"", length=48)[:60], CORRUPT),
    Case("length negative", lambda now: batch(now, length=-1), CORRUPT),
    Case("length minimal", lambda now: batch(now, length=-(1 << 31)), CORRUPT),
    Case("length beyond the end", lambda now: batch(now, length=1000), RECORD),
    Case("length that overflows", lambda now: batch(now, length=(1 << 31) - 12), UNKNOWN),
    Case("length that does not overflow", lambda now: batch(now, length=(1 << 31) - 13), RECORD),
    Case("truncated by a byte", lambda now: good(now)[:-1], RECORD),
    Case("truncated to the header", lambda now: good(now)[:61], RECORD),
    Case("truncated inside the header", lambda now: good(now)[:40], RECORD),
    Case("magic 0", lambda now: batch(now, magic=0), RECORD),
    Case("magic 1", lambda now: batch(now, magic=1), RECORD),
    Case("magic 3", lambda now: batch(now, magic=3), CORRUPT),
    Case("magic -1", lambda now: batch(now, magic=-1), CORRUPT),
    Case("then one byte", lambda now: good(now) + b"\0"),
    Case("then eleven zeros", lambda now: good(now) + bytes(11)),
    Case("then twelve zeros", lambda now: good(now) + bytes(12), CORRUPT),
    Case("then sixteen bytes that could be a batch", lambda now: good(now) + b"\x7f" * 16),
    Case("then a length that overflows", lambda now: good(now) + batch(now, length=(1 << 31) - 12), UNKNOWN),
    Case("then a hundred 0xff", lambda now: good(now) + b"\xff" * 100, CORRUPT),
    Case("then half a batch", lambda now: good(now) + good(now)[:50]),
    Case("then a batch", lambda now: good(now) + good(now), RECORD),
    Case("then a batch of magic 1", lambda now: good(now) + batch(now, magic=1), RECORD),
    Case("then half a batch of magic 9", lambda now: good(now) + batch(now, magic=9)[:60], CORRUPT),
    Case("then a length beyond the end, magic 9", lambda now: good(now) + batch(now, magic=9, length=5000), CORRUPT),
    Case("an invalid batch, then a batch", lambda now: batch(now, crc_off=1) + good(now), RECORD),
)

HEADERS: Sequence[Case] = (
    Case("base offset 1", lambda now: batch(now, base_offset=1), RECORD),
    Case("base offset -1", lambda now: batch(now, base_offset=-1), RECORD),
    Case("base offset 1 and bad checksum", lambda now: batch(now, base_offset=1, crc_off=1), RECORD),
    Case("bad checksum", lambda now: batch(now, crc_off=1), CORRUPT),
    Case("bad checksum and no records", lambda now: batch(now, count=0, crc_off=1), CORRUPT),
    Case("any leader epoch", lambda now: batch(now, leader_epoch=77)),
    Case("control batch", lambda now: batch(now, attributes=0x20), RECORD),
    Case(
        "control batch of a producer", lambda now: batch(now, attributes=0x20, producer_id=5, producer_epoch=0), RECORD
    ),
    Case("transactional batch", lambda now: batch(now, attributes=0x10), TRANSACTIONAL),
    Case("transactional batch and bad checksum", lambda now: batch(now, attributes=0x10, crc_off=1), TRANSACTIONAL),
    Case("log append time", lambda now: batch(now, attributes=0x08)),
    Case("log append time -1", lambda now: batch(now, attributes=0x08, max_timestamp=-1), TIMESTAMP, (0,)),
    Case(
        "claimed log append time out of range",
        lambda now: batch(now, attributes=0x08, max_timestamp=now + 2 * HOUR),
        TIMESTAMP,
        (0,),
    ),
    Case(
        "log append time, timestamps out of range",
        lambda now: batch(now, record(timestamp_delta=varlong(3 * HOUR)), attributes=0x08),
    ),
    Case("delete horizon", lambda now: batch(now, attributes=0x40)),
    Case("attribute bit 7", lambda now: batch(now, attributes=0x80)),
    Case("attribute bit 7, maximum off", lambda now: batch(now, attributes=0x80, max_timestamp=5)),
    Case("attribute bit 8", lambda now: batch(now, attributes=0x100)),
    Case("attribute bit 15", lambda now: batch(now, attributes=-0x8000)),
    Case("attribute bit 15, maximum off", lambda now: batch(now, attributes=-0x8000, max_timestamp=5)),
    Case("codec 5", lambda now: batch(now, attributes=5), UNKNOWN),
    Case("codec 7", lambda now: batch(now, attributes=7), UNKNOWN),
    Case("codec 5 and no records", lambda now: batch(now, attributes=5, count=0), UNKNOWN),
    Case("no records", lambda now: batch(now, b"", count=0), RECORD),
    Case("no records, last offset delta 0", lambda now: batch(now, b"", count=0, last_offset_delta=0), RECORD),
    Case("count -1", lambda now: batch(now, count=-1), RECORD),
    Case("count -1, last offset delta 0", lambda now: batch(now, count=-1, last_offset_delta=0), RECORD),
    Case("count 2 of 1", lambda now: batch(now, count=2), RECORD),
    Case("count 1 of 2", lambda now: batch(now, several(2), count=1), RECORD),
    Case("count 1 of 2, last offset delta 1", lambda now: batch(now, several(2), count=1, last_offset_delta=1), RECORD),
    Case("count 2, last offset delta 0", lambda now: batch(now, several(2), count=2, last_offset_delta=0), RECORD),
    Case("count 2, last offset delta 5", lambda now: batch(now, several(2), count=2, last_offset_delta=5), RECORD),
    Case("last offset delta -1", lambda now: batch(now, last_offset_delta=-1), RECORD),
    Case("last offset delta minimal", lambda now: batch(now, last_offset_delta=-(1 << 31)), RECORD),
    Case("count maximal", lambda now: batch(now, count=(1 << 31) - 1), RECORD),
    Case("producer epoch without an id", lambda now: batch(now, producer_epoch=0)),
    Case("sequence without an id", lambda now: batch(now, base_sequence=0)),
    Case("producer id -2", lambda now: batch(now, producer_id=-2, producer_epoch=0, base_sequence=0)),
    Case("producer id without an epoch", lambda now: batch(now, producer_id=900, base_sequence=0)),
    Case("producer epoch -2", lambda now: batch(now, producer_id=901, producer_epoch=-2, base_sequence=0), EPOCH),
    Case("producer id without a sequence", lambda now: batch(now, producer_id=902, producer_epoch=0), RECORD),
    Case("producer sequence -2", lambda now: batch(now, producer_id=903, producer_epoch=0, base_sequence=-2), RECORD),
    Case("a new producer in the middle", lambda now: batch(now, producer_id=904, producer_epoch=0, base_sequence=17)),
    Case("a new producer in a later epoch", lambda now: batch(now, producer_id=905, producer_epoch=7, base_sequence=3)),
)

TIMES: Sequence[Case] = (
    Case("no timestamp", lambda now: batch(now, base_timestamp=-1)),
    Case("no timestamp, maximum now", lambda now: batch(now, base_timestamp=-1, max_timestamp=now)),
    Case("timestamp -2", lambda now: batch(now, base_timestamp=-2)),
    Case("timestamp 0", lambda now: batch(now, base_timestamp=0)),
    Case("timestamp minimal", lambda now: batch(now, base_timestamp=LONG_MIN), TIMESTAMP, (0,)),
    Case("timestamp maximal", lambda now: batch(now, base_timestamp=LONG_MAX), TIMESTAMP, (0,)),
    Case(
        "timestamp wraps",
        lambda now: batch(now, record(timestamp_delta=varlong(1)), base_timestamp=LONG_MAX),
        TIMESTAMP,
        (0,),
    ),
    Case("maximum too low", lambda now: batch(now, max_timestamp=now - 1000)),
    Case("maximum too high", lambda now: batch(now, max_timestamp=now + 1000)),
    Case("maximum -1", lambda now: batch(now, max_timestamp=-1)),
    Case("maximum far too high", lambda now: batch(now, max_timestamp=LONG_MAX)),
    Case("negative delta", lambda now: batch(now, record(timestamp_delta=varlong(-5000)))),
    Case("an hour ahead, nearly", lambda now: batch(now + HOUR - 60_000)),
    Case("an hour ahead and more", lambda now: batch(now + HOUR + 60_000), TIMESTAMP, (0,)),
    Case(
        "the second is ahead",
        lambda now: batch(now, record() + record(timestamp_delta=varlong(2 * HOUR)) + record(), count=3),
        TIMESTAMP,
        (1,),
    ),
    Case(
        "two are ahead",
        lambda now: batch(now, (record() + record(timestamp_delta=varlong(2 * HOUR))) * 2, count=4),
        TIMESTAMP,
        (1, 3),
    ),
    Case(
        "one ahead, then a truncated record",
        lambda now: batch(now, record(timestamp_delta=varlong(2 * HOUR)) + record(size=100), count=2),
        RECORD,
    ),
    Case("delta of ten bytes", lambda now: batch(now, record(timestamp_delta=varlong(LONG_MIN + HOUR)))),
    Case("delta of eleven bytes", lambda now: batch(now, record(timestamp_delta=LONG_VARLONG)), RECORD),
    Case("before limit, inside", lambda now: batch(now - 1000), configs={"message.timestamp.before.max.ms": "60000"}),
    Case(
        "before limit, outside",
        lambda now: batch(now - 90_000),
        TIMESTAMP,
        (0,),
        {"message.timestamp.before.max.ms": "60000"},
    ),
    Case(
        "before limit, no timestamp",
        lambda now: batch(now, base_timestamp=-1),
        configs={"message.timestamp.before.max.ms": "60000"},
    ),
    Case(
        "before limit, minimal",
        lambda now: batch(now, base_timestamp=LONG_MIN),
        TIMESTAMP,
        (0,),
        {"message.timestamp.before.max.ms": "60000"},
    ),
    Case("after limit off, maximal", lambda now: batch(now, base_timestamp=LONG_MAX), configs=NO_AFTER_LIMIT),
    Case("after limit off, minimal", lambda now: batch(now, base_timestamp=LONG_MIN), configs=NO_AFTER_LIMIT),
    Case("append time", good, configs=APPEND_TIME),
    Case("append time, timestamps out of range", lambda now: batch(now + 90 * HOUR), configs=APPEND_TIME),
    Case("append time, claimed", lambda now: batch(now, attributes=8), TIMESTAMP, (0,), APPEND_TIME),
    Case(
        "append time, claimed by three",
        lambda now: batch(now, several(3), count=3, attributes=8),
        TIMESTAMP,
        (0, 1, 2),
        APPEND_TIME,
    ),
)

RECORDS: Sequence[Case] = (
    Case("no bytes", lambda now: batch(now, b""), RECORD),
    Case("empty record", lambda now: batch(now, b"\0"), RECORD),
    Case("length too large", lambda now: batch(now, record(size=100)), RECORD),
    Case("length too large by one", lambda now: batch(now, record(size=11)), RECORD),
    Case("length too small", lambda now: batch(now, record(size=5)), RECORD),
    Case("length too small by one", lambda now: batch(now, record(size=8)), RECORD),
    Case("length negative", lambda now: batch(now, record(size=-3)), RECORD),
    Case("length maximal", lambda now: batch(now, record(size=(1 << 31) - 1)), RECORD),
    Case("length of six bytes", lambda now: batch(now, LONG_VARINT + body()), UNKNOWN),
    Case("length unterminated", lambda now: batch(now, b"\x80\x80"), RECORD),
    Case("length longer than needed", lambda now: batch(now, bytes([0x80 | 18, 0x80, 0]) + body())),
    Case("attributes", lambda now: batch(now, record(body(attributes=0xFF)))),
    Case("offset delta 5", lambda now: batch(now, record(offset_delta=varint(5)))),
    Case("offset delta negative", lambda now: batch(now, record(offset_delta=varint(-5)))),
    Case("offset deltas reversed", lambda now: batch(now, record(offset_delta=varint(1)) + record(), count=2)),
    Case("offset delta of six bytes", lambda now: batch(now, record(offset_delta=LONG_VARINT)), RECORD),
    Case("key empty", lambda now: batch(now, record(key=b"\0"))),
    Case("key null", lambda now: batch(now, record(key=b"\1"))),
    Case("key -2", lambda now: batch(now, record(key=b"\3"))),
    Case("key too long for the batch", lambda now: batch(now, record(key=varint(500))), RECORD),
    Case("key maximal", lambda now: batch(now, record(key=varint((1 << 31) - 1))), RECORD),
    Case("key of six bytes", lambda now: batch(now, record(key=LONG_VARINT)), RECORD),
    Case("key into the next record", lambda now: batch(now, record(key=varint(6)) + record(), count=2), RECORD),
    Case("value null", lambda now: batch(now, record(value=b"\1"))),
    Case("value empty", lambda now: batch(now, record(value=b"\0"))),
    Case("value -2", lambda now: batch(now, record(value=b"\3"))),
    Case("value too long for the batch", lambda now: batch(now, record(value=varint(500))), RECORD),
    Case(
        "value into the next record",
        lambda now: batch(now, record(value=varint(8) + b"abc") + record(), count=2),
        RECORD,
    ),
    Case("extra byte in a record", lambda now: batch(now, record(tail=b"\0")), RECORD),
    Case("no header count", lambda now: batch(now, record(headers=b"")), RECORD),
    Case("headers", lambda now: batch(now, record(headers=varint(2) + b"\2a\2b" + b"\2c\1"))),
    Case("header count -1", lambda now: batch(now, record(headers=b"\1")), RECORD),
    Case("header count too large", lambda now: batch(now, record(headers=varint(1000))), RECORD),
    Case("header count one too large", lambda now: batch(now, record(headers=varint(2) + b"\2a\2b")), RECORD),
    Case("header count one too small", lambda now: batch(now, record(headers=varint(1) + b"\2a\2b\2c\2d")), RECORD),
    Case("header key null", lambda now: batch(now, record(headers=varint(1) + b"\1\2b")), RECORD),
    Case("header key empty", lambda now: batch(now, record(headers=varint(1) + b"\0\2b"))),
    Case("header key not UTF-8", lambda now: batch(now, record(headers=varint(1) + b"\2\xff\2b"))),
    Case("header key too long", lambda now: batch(now, record(headers=varint(1) + varint(70) + b"a\2b")), RECORD),
    Case("header value -2", lambda now: batch(now, record(headers=varint(1) + b"\2a\3"))),
    Case("header value too long", lambda now: batch(now, record(headers=varint(1) + b"\2a" + varint(70))), RECORD),
    Case("bytes after the last record", lambda now: batch(now, record() + b"\0"), RECORD),
    Case("compacted, all keys", lambda now: good(now, 3), configs={"cleanup.policy": "compact"}),
    Case("compacted, no key", lambda now: batch(now), RECORD, (0,), {"cleanup.policy": "compact"}),
    Case("compacted, key -2", lambda now: batch(now, record(key=b"\3")), RECORD, (0,), {"cleanup.policy": "compact"}),
    Case("compacted, empty key", lambda now: batch(now, record(key=b"\0")), configs={"cleanup.policy": "compact"}),
    Case(
        "compacted, two without keys",
        lambda now: batch(now, (record() + record(key=b"\2k")) * 2, count=4),
        RECORD,
        (0, 2),
        {"cleanup.policy": "compact,delete"},
    ),
    Case(
        "compacted, no key and far ahead",
        lambda now: batch(now + 2 * HOUR),
        RECORD,
        (0,),
        {"cleanup.policy": "compact"},
    ),
    Case(
        "compacted, one without key, one far ahead",
        lambda now: batch(now, record() + record(key=b"\2k", timestamp_delta=varlong(2 * HOUR)), count=2),
        TIMESTAMP,
        (0, 1),
        {"cleanup.policy": "compact"},
    ),
    Case(
        "maximum size",
        lambda now: batch(now, record(value=varint(500) + bytes(500))),
        configs={"max.message.bytes": "570"},
    ),
    Case(
        "a byte too large",
        lambda now: batch(now, record(value=varint(501) + bytes(501))),
        TOO_LARGE,
        (),
        {"max.message.bytes": "570"},
    ),
    Case(
        "too large and bad checksum",
        lambda now: batch(now, record(value=varint(501) + bytes(501)), crc_off=1),
        TOO_LARGE,
        (),
        {"max.message.bytes": "570"},
    ),
    Case(
        "larger than a segment",
        lambda now: batch(now, record(value=varint(1 << 20) + bytes(1 << 20))),
        LIST_TOO_LARGE,
        (),
        {"max.message.bytes": "2000000", "segment.bytes": "1048576"},
    ),
)

FRAMING_WITH_MESSAGE = (
    "twelve zeros",
    "seventeen zeros",
    "length 13",
    "length negative",
    "length minimal",
    "magic 3",
    "magic -1",
)
"""Rejected batches whose response has an error message."""


def has_log_start(case: Case) -> bool:
    """Return whether the response contains the log start offset."""
    return case.code == NONE or (
        case not in FRAMING and case.code not in (CORRUPT, TOO_LARGE, LIST_TOO_LARGE, TRANSACTIONAL)
    )


def has_message(case: Case) -> bool:
    """Return whether the response has an error message."""
    return bool(case.record_errors) or (case in FRAMING and case.name in FRAMING_WITH_MESSAGE)


STORED_DIFFERENTLY: Mapping[str, tuple[int, Callable[[int], int]]] = {
    "log append time": (0, lambda now: now),
    "log append time, timestamps out of range": (0, lambda now: now),
    "attribute bit 7, maximum off": (0, lambda now: now),
    "attribute bit 15, maximum off": (0, lambda now: now),
    "no timestamp, maximum now": (0, lambda now: -1),
    "timestamp -2": (0, lambda now: -1),
    "after limit off, minimal": (0, lambda now: -1),
    "maximum too low": (0, lambda now: now),
    "maximum too high": (0, lambda now: now),
    "maximum -1": (0, lambda now: now),
    "maximum far too high": (0, lambda now: now),
    "negative delta": (0, lambda now: now - 5000),
    "delta of ten bytes": (0, lambda now: -1),
    **{f"{name} maximum off": (codec, lambda now: now) for name, codec in CODECS.items()},
}
"""Attributes and maximum timestamp of batches that are stored with a changed header."""
