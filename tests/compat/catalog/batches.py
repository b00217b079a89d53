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
    "bad checksum": put(CRC_AT, ">I", 1, checked=False),
    "magic 0": put(MAGIC_AT, ">b", 0),
    "magic 1": put(MAGIC_AT, ">b", 1),
    "magic 3": put(MAGIC_AT, ">b", 3),
    "magic -1": put(MAGIC_AT, ">b", -1),
    "base offset 5": put(0, ">q", 5, checked=False),
    "base offset -1": put(0, ">q", -1, checked=False),
    "length too small": put(LENGTH_AT, ">i", 10, checked=False),
    "length too large": put(LENGTH_AT, ">i", 10_000, checked=False),
    "length too small by one": put(LENGTH_AT, ">i", 70, checked=False),
    "negative length": put(LENGTH_AT, ">i", -1, checked=False),
    "truncated by a byte": trimmed(1),
    "truncated to the header": lambda batch: batch[:RECORDS_AT],
    "truncated inside the header": lambda batch: batch[:30],
    "truncated to ten bytes": lambda batch: batch[:10],
    "then four bytes of garbage": followed_by(b"junk"),
    "then 100 bytes of garbage": followed_by(b"\x01" * 100),
    "then a batch": followed_by(bytes(build_batch(records(2)))),
    "then half a batch": followed_by(bytes(build_batch(records(2))[:70])),
    "leader epoch 7": put(12, ">i", 7, checked=False),
    "count too small": put(COUNT_AT, ">i", 2),
    "count too large": put(COUNT_AT, ">i", 4),
    "count 0": put(COUNT_AT, ">i", 0),
    "count -1": put(COUNT_AT, ">i", -1),
    "last offset delta too small": put(LAST_OFFSET_DELTA_AT, ">i", 1),
    "last offset delta too large": put(LAST_OFFSET_DELTA_AT, ">i", 10),
    "last offset delta -1": put(LAST_OFFSET_DELTA_AT, ">i", -1),
    "codec 5": put(ATTRIBUTES_AT, ">h", 5),
    "codec 7": put(ATTRIBUTES_AT, ">h", 7),
    "invalid gzip data": with_payload(b"this is not gzip", 1),
    "invalid snappy data": with_payload(b"this is not snappy", 2),
    "invalid lz4 data": with_payload(b"this is not lz4 at all", 3),
    "invalid zstd data": with_payload(b"this is not zstd", 4),
    "control attribute": put(ATTRIBUTES_AT, ">h", 0x20),
    "transactional attribute": put(ATTRIBUTES_AT, ">h", 0x10),
    "log append time attribute": put(ATTRIBUTES_AT, ">h", 0x08),
    "unused attribute bit": put(ATTRIBUTES_AT, ">h", 0x80),
    "delete horizon attribute": put(ATTRIBUTES_AT, ">h", 0x40),
    "max timestamp too small": put(MAX_TIMESTAMP_AT, ">q", START_MS),
    "max timestamp too large": put(MAX_TIMESTAMP_AT, ">q", START_MS + 1_000_000),
    "max timestamp -1": put(MAX_TIMESTAMP_AT, ">q", -1),
    "base timestamp -1": put(BASE_TIMESTAMP_AT, ">q", -1),
    "producer id without an epoch": put(PRODUCER_ID_AT, ">q", 5),
    "producer epoch without an id": put(PRODUCER_ID_AT + 8, ">h", 0),
    "sequence without a producer": put(PRODUCER_ID_AT + 10, ">i", 0),
    "record longer than the batch": put_byte_in_records(0, 0x7E),
    "record of negative length": put_byte_in_records(0, 0x01),
    "record with attributes": put_byte_in_records(1, 0x01),
    "wrong offset delta of the first record": put_byte_in_records(3, 0x08),
    "key length -2": put_byte_in_records(4, 0x03),
    "key longer than the record": put_byte_in_records(4, 0x7E),
}
TIMESTAMPS = {"far in the future": FAR_MS, "-1": -1, "-5": -5, "0": 0}


def with_timestamp(timestamp: int, codec: int = 0) -> Batch:
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
        Case(description, (produce(Batch(records(3), corrupt=corrupt)), END_OFFSET), ONE, versions=(3, 12, 13))
        for description, corrupt in CORRUPTIONS.items()
    ),
    *(
        Case(f"timestamp {description}", (produce(with_timestamp(timestamp)), END_OFFSET), ONE, versions=(3, 13))
        for description, timestamp in TIMESTAMPS.items()
    ),
    *(
        Case(
            f"timestamp {description}, compressed",
            (produce(with_timestamp(timestamp, 1)), END_OFFSET),
            ONE,
            versions=(13,),
        )
        for description, timestamp in TIMESTAMPS.items()
    ),
    Case(
        "timestamp before message.timestamp.before.max.ms",
        (produce(Batch(records(3))), END_OFFSET),
        STRICT,
        versions=(3, 7, 8, 13),
    ),
    Case(
        "timestamp far in the future, log append time",
        (produce(with_timestamp(FAR_MS)),),
        (NewTopic("a", 1, {"message.timestamp.type": "LogAppendTime"}),),
        versions=(3, 13),
    ),
    Case("repeated offset delta", (produce(mixed(0)), END_OFFSET), ONE, versions=(3, 13)),
    *(
        Case(f"repeated offset delta, codec {codec}", (produce(mixed(codec)), END_OFFSET), ONE, versions=(7, 13))
        for codec in (1, 2, 3, 4)
    ),
    Case("control batch", (produce(Batch(MARKER, is_control=True)), END_OFFSET), ONE, versions=(3, 13)),
    Case(
        "garbage after a batch is not stored",
        (produce(Batch(records(2), corrupt=followed_by(b"junk"))), READ_BACK),
        ONE,
        versions=(13,),
    ),
]
