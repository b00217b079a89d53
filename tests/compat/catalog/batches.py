"""Batches with one defect each, in Produce's last version by topic name and in the newest."""

from collections.abc import Callable
from struct import pack_into

from ottla.wire.batches import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_ID_AT,
    RECORDS_AT,
    Record,
    build_batch,
    write_checksum,
)
from tests.compat.catalog.case import START_MS, Batch, Case, NewTopic, records
from tests.compat.catalog.sending import END_OFFSET, READ_BACK, produce

Corruption = Callable[[bytearray], bytes | bytearray]
ONE = (NewTopic("a"),)
STRICT = (NewTopic("a", 1, {"message.timestamp.before.max.ms": "1000"}),)
FAR_MS = 1 << 50
MARKER = [Record(0, START_MS, b"\0\0\0\1", b"\0\0\0\0\0\0")]


def put(position: int, code: str, value: int, *, checked: bool = True) -> Corruption:
    """Write a number into the batch. `checked` updates the checksum."""

    def corrupt(batch: bytearray) -> bytearray:
        pack_into(code, batch, position, value)
        if checked:
            write_checksum(batch)
        return batch

    return corrupt


def put_byte_in_records(index: int, value: int) -> Corruption:
    return put(RECORDS_AT + index, ">B", value)


def with_payload(payload: bytes, attributes: int) -> Corruption:
    def corrupt(batch: bytearray) -> bytearray:
        del batch[RECORDS_AT:]
        batch += payload
        pack_into(">i", batch, LENGTH_AT, len(batch) - 12)
        pack_into(">h", batch, ATTRIBUTES_AT, attributes)
        write_checksum(batch)
        return batch

    return corrupt


def trimmed(count: int) -> Corruption:
    return lambda batch: batch[:-count]


def followed_by(more: bytes) -> Corruption:
    return lambda batch: batch + more


CORRUPTIONS: dict[str, Corruption] = {
    "checksum": put(CRC_AT, ">I", 1, checked=False),
    "magic 0": put(MAGIC_AT, ">b", 0),
    "magic 1": put(MAGIC_AT, ">b", 1),
    "magic 3": put(MAGIC_AT, ">b", 3),
    "magic -1": put(MAGIC_AT, ">b", -1),
    "base offset 5": put(0, ">q", 5, checked=False),
    "base offset -1": put(0, ">q", -1, checked=False),
    "length too small": put(LENGTH_AT, ">i", 10, checked=False),
    "length too large": put(LENGTH_AT, ">i", 10_000, checked=False),
    "length one too small": put(LENGTH_AT, ">i", 70, checked=False),
    "length negative": put(LENGTH_AT, ">i", -1, checked=False),
    "cut by one byte": trimmed(1),
    "cut to its header": lambda batch: batch[:RECORDS_AT],
    "cut inside its header": lambda batch: batch[:30],
    "cut to ten bytes": lambda batch: batch[:10],
    "junk behind it": followed_by(b"junk"),
    "much junk behind it": followed_by(b"\x01" * 100),
    "another batch behind it": followed_by(bytes(build_batch(records(2)))),
    "half a batch behind it": followed_by(bytes(build_batch(records(2))[:70])),
    "leader epoch 7": put(12, ">i", 7, checked=False),
    "count too small": put(COUNT_AT, ">i", 2),
    "count too large": put(COUNT_AT, ">i", 4),
    "count zero": put(COUNT_AT, ">i", 0),
    "count negative": put(COUNT_AT, ">i", -1),
    "last offset delta too small": put(LAST_OFFSET_DELTA_AT, ">i", 1),
    "last offset delta too large": put(LAST_OFFSET_DELTA_AT, ">i", 10),
    "last offset delta negative": put(LAST_OFFSET_DELTA_AT, ">i", -1),
    "codec 5": put(ATTRIBUTES_AT, ">h", 5),
    "codec 7": put(ATTRIBUTES_AT, ">h", 7),
    "gzip that is none": with_payload(b"this is not gzip", 1),
    "snappy that is none": with_payload(b"this is not snappy", 2),
    "lz4 that is none": with_payload(b"this is not lz4 at all", 3),
    "zstd that is none": with_payload(b"this is not zstd", 4),
    "marked as control": put(ATTRIBUTES_AT, ">h", 0x20),
    "marked as transactional": put(ATTRIBUTES_AT, ">h", 0x10),
    "marked with the broker's time": put(ATTRIBUTES_AT, ">h", 0x08),
    "marked with unused bits": put(ATTRIBUTES_AT, ">h", 0x80),
    "marked with a delete horizon": put(ATTRIBUTES_AT, ">h", 0x40),
    "max timestamp too small": put(MAX_TIMESTAMP_AT, ">q", START_MS),
    "max timestamp too large": put(MAX_TIMESTAMP_AT, ">q", START_MS + 1_000_000),
    "max timestamp none": put(MAX_TIMESTAMP_AT, ">q", -1),
    "base timestamp none": put(BASE_TIMESTAMP_AT, ">q", -1),
    "producer id without an epoch": put(PRODUCER_ID_AT, ">q", 5),
    "producer epoch without an id": put(PRODUCER_ID_AT + 8, ">h", 0),
    "sequence without a producer": put(PRODUCER_ID_AT + 10, ">i", 0),
    "a record longer than its batch": put_byte_in_records(0, 0x7E),
    "a record of negative length": put_byte_in_records(0, 0x01),
    "a record with attributes": put_byte_in_records(1, 0x01),
    "offset delta of the first record": put_byte_in_records(3, 0x08),
    "a key of length -2": put_byte_in_records(4, 0x03),
    "a key longer than its record": put_byte_in_records(4, 0x7E),
}
STAMPS = {"far ahead": FAR_MS, "none": -1, "negative": -5, "zero": 0}


def stamped(timestamp: int, codec: int = 0) -> Batch:
    return Batch([Record(0, timestamp, b"k", b"v")], codec=codec)


def mixed(codec: int) -> Batch:
    """A batch whose second record repeats the first one's offset delta."""

    def corrupt(batch: bytearray) -> bytearray:
        plain = build_batch(records(3))
        plain[RECORDS_AT + 14] = 0
        if codec:
            from ottla.wire.compression import compress

            plain[RECORDS_AT:] = compress(codec, plain[RECORDS_AT:])
            pack_into(">i", plain, LENGTH_AT, len(plain) - 12)
            pack_into(">h", plain, ATTRIBUTES_AT, codec)
        write_checksum(plain)
        return plain

    return Batch(records(3), corrupt=corrupt)


CASES = [
    *(
        Case(what, (produce(Batch(records(3), corrupt=corrupt)), END_OFFSET), ONE, versions=(3, 12, 13))
        for what, corrupt in CORRUPTIONS.items()
    ),
    *(
        Case(f"timestamp {what}", (produce(stamped(stamp)), END_OFFSET), ONE, versions=(3, 13))
        for what, stamp in STAMPS.items()
    ),
    *(
        Case(f"timestamp {what}, compressed", (produce(stamped(stamp, 1)), END_OFFSET), ONE, versions=(13,))
        for what, stamp in STAMPS.items()
    ),
    Case(
        "timestamp too far back for the topic", (produce(Batch(records(3))), END_OFFSET), STRICT, versions=(3, 7, 8, 13)
    ),
    Case(
        "timestamp too far ahead does not matter with the broker's time",
        (produce(stamped(FAR_MS)),),
        (NewTopic("a", 1, {"message.timestamp.type": "LogAppendTime"}),),
        versions=(3, 13),
    ),
    Case("offset deltas in disorder", (produce(mixed(0)), END_OFFSET), ONE, versions=(3, 13)),
    *(
        Case(f"offset deltas in disorder, codec {codec}", (produce(mixed(codec)), END_OFFSET), ONE, versions=(7, 13))
        for codec in (1, 2, 3, 4)
    ),
    Case("a control batch", (produce(Batch(MARKER, is_control=True)), END_OFFSET), ONE, versions=(3, 13)),
    Case(
        "junk behind a batch is not kept",
        (produce(Batch(records(2), corrupt=followed_by(b"junk"))), READ_BACK),
        ONE,
        versions=(13,),
    ),
]
