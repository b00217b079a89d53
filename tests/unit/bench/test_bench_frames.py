"""The benchmark's hand-written requests, checked with an independent codec."""

import io
import struct

import crc32c
import pytest
from kafka.record import MemoryRecords
from kio.schema.fetch.v17.request import FetchRequest
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.produce.v13.request import ProduceRequest
from kio.serial import entity_reader

from bench import frames

TOPIC_ID = bytes(range(16))


def body_of(frame: bytes) -> tuple[tuple[int, int], io.BytesIO]:
    """Return API key, version, and the body after the flexible header."""
    size, key, version, _, client = struct.unpack_from(">ihhih", frame)
    assert size == len(frame) - 4
    return (key, version), io.BytesIO(frame[14 + client + 1 :])


def decoded(entity, frame):
    _, body = body_of(frame)
    message = body.read()
    result = entity_reader(entity)(message, 0)
    value, end = result if isinstance(result, tuple) else (result.value, result.offset)
    assert end == len(message)
    return value


@pytest.mark.parametrize("records", [1, 10, 600])
def test_produce_contains_one_batch_with_a_valid_checksum(records):
    frame = frames.produce(TOPIC_ID, frames.batch(records, 100))
    assert body_of(frame)[0] == (0, 13)
    request = decoded(ProduceRequest, frame)
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert (topic.topic_id.bytes, partition.index, request.acks, request.transactional_id) == (TOPIC_ID, 0, 1, None)
    batch = bytes(partition.records)
    length, _, magic, crc, _, last_delta = struct.unpack_from(">iibIhi", batch, 8)
    assert (length + 12, magic, last_delta + 1) == (len(batch), 2, records)
    assert crc == crc32c.crc32c(batch[21:])


def test_produce_contains_partition_and_acks():
    request = decoded(ProduceRequest, frames.produce(TOPIC_ID, frames.batch(1, 10), partition=999, acks=-1))
    assert (request.topic_data[0].partition_data[0].index, request.acks) == (999, -1)


@pytest.mark.parametrize("codec", frames.CODECS)
def test_compressed_batch_contains_the_same_records(codec):
    """Checked with kafka-python's decoder: all values, in order."""
    values = frames.events(100)
    batch = frames.batch_of(values, codec)
    (records,) = list(MemoryRecords(batch))
    assert records.validate_crc()
    assert [bytes(record.value) for record in records] == values
    assert struct.unpack_from(">h", batch, 21)[0] == frames.CODECS.index(codec)


def test_events_compress_like_application_data():
    plain, packed = (len(frames.batch_of(frames.events(100), codec)) for codec in ("none", "zstd"))
    assert 0.2 < packed / plain < 0.5


def test_metadata_requests_all_topics():
    frame = frames.metadata_of_all()
    assert body_of(frame)[0] == (3, 12)
    request = decoded(MetadataRequest, frame)
    assert (request.topics, request.allow_auto_topic_creation) == (None, False)


def test_metadata_topic_count():
    brokers = b"\3" + 2 * (
        struct.pack(">i", 1) + frames.compact_string("localhost") + struct.pack(">i", 9092) + b"\0\0"
    )
    response = (
        struct.pack(">ibi", 1, 0, 0)
        + brokers
        + frames.compact_string("cluster")
        + struct.pack(">i", 1)
        + frames.uvarint(1001)
    )
    assert frames.metadata_topic_count(response) == 1000


def test_fetch_requests_one_partition_from_an_offset():
    frame = frames.fetch(TOPIC_ID, 42, 1 << 16)
    assert body_of(frame)[0] == (1, 17)
    request = decoded(FetchRequest, frame)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.topic_id.bytes, partition.partition, partition.fetch_offset, partition.partition_max_bytes) == (
        TOPIC_ID,
        0,
        42,
        1 << 16,
    )
    assert (request.max_bytes, request.session_id, request.session_epoch) == (1 << 16, 0, -1)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31 - 1])
def test_varint_round_trip(value):
    written = frames.uvarint(value)
    assert frames.read_uvarint(bytearray(written + b"\xff"), 0) == (value, len(written))


def test_read_fetch_returns_the_next_offset():
    """With two complete batches of 35 records and a torn third, the next offset is the third's."""
    batch = bytearray(frames.batch(35, 100))
    batch[:8] = struct.pack(">q", 100)
    records = bytes(batch) * 2 + bytes(batch[:50])
    head = struct.pack(">ihqqq", 0, 0, 1000, 1000, 0) + b"\0" + struct.pack(">i", -1)
    partition = head + frames.uvarint(len(records) + 1) + records + b"\0"
    response = struct.pack(">ibihi", 1, 0, 0, 0, 0) + b"\2" + TOPIC_ID + b"\2" + partition + b"\0\0"
    assert frames.read_fetch(bytearray(response)) == frames.Fetched(
        high_watermark=1000, size=len(records), next_offset=170
    )


def test_read_fetch_raises_on_an_error_code():
    partition = struct.pack(">ihqqq", 0, 3, -1, -1, -1) + b"\0" + struct.pack(">i", -1) + b"\1\0"
    response = struct.pack(">ibihi", 1, 0, 0, 0, 0) + b"\2" + TOPIC_ID + b"\2" + partition + b"\0\0"
    with pytest.raises(frames.BrokerError, match="error 3"):
        frames.read_fetch(bytearray(response))
