"""Record batches are built and decoded; the fast and the general functions that read records agree."""

import base64
import json
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.batches import (
    BatchHeader,
    Record,
    build_batch,
    decode_records,
    has_valid_checksum,
    iterate_batches,
    read_header,
    write_checksum,
)
from ottla.wire.compression import decompress
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_boundaries import FastPathMiss, find_starts, follow_lengths, guess_boundaries, is_guessable
from ottla.wire.record_columns import collect_stats_large, collect_stats_plain
from ottla.wire.record_scan import RecordStats, collect_stats, collect_stats_fast
from ottla.wire.uniform_records import collect_stats_uniform
from ottla.wire.varint import read_varint, varint

WRITTEN = Path(__file__).parents[2] / "data" / "compressed_batches.json"
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
FIELD = st.none() | st.binary(max_size=200)
TIMESTAMP = st.integers(-1, 1 << 50)
RECORDS = st.lists(st.builds(Record, st.just(0), TIMESTAMP, FIELD, FIELD, HEADERS), min_size=1, max_size=80)


def numbered(records: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(records)]


def test_crc32c_of_the_standard_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(bytearray(b"123456789"))) == 0xE3069283


@given(records=RECORDS, base_offset=st.integers(0, 1 << 60), codec=st.sampled_from([0, 1, 2, 3, 4]))
def test_records_survive_a_round_trip(records: list[Record], base_offset: int, codec: int) -> None:
    batch = build_batch(
        records, base_offset=base_offset, codec=codec, producer_id=7, producer_epoch=1, base_sequence=5, leader_epoch=9
    )
    assert has_valid_checksum(batch)
    assert decode_records(batch) == numbered(records, base_offset)
    assert read_header(batch) == BatchHeader(
        base_offset,
        len(batch) - 12,
        9,
        2,
        struct.unpack_from(">I", batch, 17)[0],
        codec,
        len(records) - 1,
        records[0].timestamp,
        max(record.timestamp for record in records),
        7,
        1,
        5,
        len(records),
    )


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_records_are_encoded_as_by_apache_kafka(codec: str) -> None:
    """A batch that Kafka compressed and stored, compared with the same records encoded here."""
    stored = base64.b64decode(json.loads(WRITTEN.read_text())["java"][codec])
    header, records = read_header(stored), decode_records(stored)
    assert decompress(header.codec, stored[61:], 1 << 20) == payload(records)
    built = read_header(build_batch(records, codec=header.codec, leader_epoch=header.leader_epoch))
    assert built == header._replace(length=built.length, crc=built.crc)


def test_log_append_time_applies_to_all_records() -> None:
    batch = build_batch([Record(timestamp=5), Record(timestamp=9)], log_append_time=1000)
    assert [record.timestamp for record in decode_records(batch)] == [1000, 1000]
    assert read_header(batch).has_log_append_time


def test_control_and_transactional_attributes() -> None:
    header = read_header(build_batch([Record(value=b"x")], is_control=True, is_transactional=True))
    assert (header.is_control, header.is_transactional, header.attributes) == (True, True, 0x30)


@given(counts=st.lists(st.integers(1, 5), max_size=5), missing=st.integers(0, 100))
def test_iterate_batches_skips_an_incomplete_batch(counts: list[int], missing: int) -> None:
    batches = [build_batch([Record(value=b"v" * count)] * count) for count in counts]
    data = b"".join(batches)
    expected, position = [], 0
    for batch in batches:
        if position + len(batch) <= len(data) - missing:
            expected.append((position, read_header(batch)))
        position += len(batch)
    assert list(iterate_batches(data[: max(len(data) - missing, 0)])) == expected


@pytest.mark.parametrize(("position", "value"), [(16, 1), (8, 0xFF)])
def test_iterate_batches_rejects_other_bytes(position: int, value: int) -> None:
    batch = build_batch([Record(value=b"x")])
    batch[position] = value
    with pytest.raises(MalformedMessage):
        list(iterate_batches(batch))


@given(records=RECORDS, data=st.data())
def test_corrupt_records_are_decoded_or_malformed(records: list[Record], data: st.DataObject) -> None:
    batch = build_batch(records)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    write_checksum(batch)
    try:
        decode_records(batch)
    except MalformedMessage:
        return


def payload(records: list[Record]) -> bytes:
    return bytes(build_batch(records)[61:])


SHAPES = st.sampled_from(
    [
        lambda i: Record(timestamp=1000, value=b"x" * 100),
        lambda i: Record(timestamp=1000 + i, value=b"x" * 100),
        lambda i: Record(timestamp=1000 - i, key=b"k", value=b"x" * 20),
        lambda i: Record(timestamp=1000 + i * 50, key=b"%d" % i, value=b"x" * (i * 37 % 150)),
        lambda i: Record(timestamp=1000, key=None if i % 7 else b"key", value=b"x" * (i % 3)),
        lambda i: Record(timestamp=1000 + (i << 30), value=None),
        lambda i: Record(timestamp=1000, key=b"k" * 300, value=b"v" * 20_000),
        lambda i: Record(timestamp=1000, value=b"x" * 100, headers=(("trace", b"12"), ("n", None))[: i % 3]),
        lambda i: Record(timestamp=1000 + i % 5, value=(b"%d\0\0\0a\0" % i) * (i * 7 % 20 + 1)),
        lambda i: Record(timestamp=1000 + i % 60, key=b"%08d" % i, value=sha256(b"%d" % i).digest() * (1 + i * 13 % 7)),
        lambda i: Record(timestamp=1000, key=b"%08d" % i, value=bytes(i * 13 % 70)),
        lambda i: Record(timestamp=1000 + i % 50, value=b"\0\0\0\0\5" + sha256(b"%d" % i).digest()[: 20 + i % 12]),
        lambda i: Record(timestamp=1000, value=bytes(64 if i % 2 else 100) + sha256(b"%d" % i).digest()),
    ]
)


@settings(deadline=None)
@given(shape=SHAPES, count=st.integers(1, 700), data=st.data())
def test_fast_and_general_functions_agree(shape: object, count: int, data: st.DataObject) -> None:
    """A fast function may return None, but any other result is that of the general one, also for corrupt records."""
    plain = bytearray(payload([shape(i) for i in range(count)]))  # type: ignore[operator]
    for _ in range(data.draw(st.integers(0, 2))):
        plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
    octets = bytes(plain)
    try:
        expected: RecordStats | None = collect_stats(octets, count)
    except MalformedMessage:
        expected = None
    for found in (
        collect_stats_fast(octets, count, check_offsets=True),
        collect_stats_large(octets, count, check_offsets=True),
    ):
        assert found is None or found == expected


@pytest.mark.parametrize("size", [lambda i: 100, lambda i: 60 + i * 31 % 90])
def test_negative_length_among_many_is_found(size: Callable[[int], int]) -> None:
    """It differs from the valid one in a bit that does not move the end of the record."""
    records = [Record(timestamp=1000, value=b"x" * size(i)) for i in range(500)]
    octets = bytearray(payload(records))
    octets[len(payload(records[:250]))] ^= 1
    assert collect_stats_large(bytes(octets), 500, check_offsets=False) is None
    assert collect_stats_fast(bytes(octets), 500) is None


@pytest.mark.parametrize("count", [51, 64, 65, 300, 9000])
@pytest.mark.parametrize("shape", ["equal", "mixed", "headers"])
def test_large_batches_of_common_records_are_read_fast(count: int, shape: str) -> None:
    """None would be correct but slow."""
    if shape != "equal" and count < 200:
        return
    size = {"equal": lambda i: 100, "mixed": lambda i: 60 + i * 31 % 90, "headers": lambda i: 60}[shape]
    records = [
        Record(timestamp=1000 + i // 300, value=b"x" * size(i), headers=(("a", b"b"),) if shape == "headers" else ())
        for i in range(count)
    ]
    assert collect_stats_large(payload(records), count, check_offsets=True) == RecordStats(
        0, (count - 1) // 300, True, True
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda i: Record(
            timestamp=1000, value=b"x" * 100, headers=(("trace", b"0" * 16), ("kind", None), ("", b""))[: i % 4]
        ),
        lambda i: Record(timestamp=1000, key=b"key", value=b"x" * 10, headers=(("t" * 70, b"0" * 200),)),
        lambda i: Record(timestamp=1000 + 40 * i, value=b"x" * (90 + i % 9)),
        lambda i: Record(timestamp=1000 + 40 * i, key=b"key", value=b"", headers=(("a", b"b"),)),
    ],
)
def test_headers_and_timestamps_far_apart_are_read_fast(make: Callable[[int], Record]) -> None:
    """None would be correct but slow."""
    records = [make(i) for i in range(150)]
    assert collect_stats_fast(payload(records), 150, check_offsets=True) == collect_stats(payload(records), 150)


@pytest.mark.parametrize("key", [None, b"", b"a key of some length"])
@pytest.mark.parametrize("count", [50, 100, 600, 9000])
@pytest.mark.parametrize("times", [1, 3])
def test_plain_records_of_random_bytes_are_read_fast(count: int, key: bytes | None, times: int) -> None:
    """Some random bytes look like the start of a record; these guesses are excluded."""
    bytes_of = Random(count)
    records = [
        Record(timestamp=1000 + i % times, key=key, value=bytes_of.randbytes(bytes_of.randint(50, 150)))
        for i in range(count)
    ]
    octets = payload(records)
    bounds = numpy.append(follow_lengths(octets, [0], [len(octets)], [count]), len(octets))
    assert is_guessable(numpy, octets, bounds)
    if key == b"":  # too many wrong guesses: the bytes around the length of the key are 0
        with pytest.raises(FastPathMiss):
            guess_boundaries(numpy, octets, count)
    else:
        assert guess_boundaries(numpy, octets, count).tolist() == bounds.tolist()
        assert guess_boundaries(numpy, octets, count, same_timestamp=times == 1).tolist() == bounds.tolist()
    assert collect_stats_plain(numpy, octets, bounds) == RecordStats(0, times - 1, key is None, True)
    for data, wrong_count in ((octets, count - 1), (octets, count + 1), (octets + b"\0", count)):
        with pytest.raises(FastPathMiss):
            guess_boundaries(numpy, data, wrong_count)
        with pytest.raises(MalformedMessage):
            follow_lengths(data, [0], [len(data)], [wrong_count])
    assert collect_stats_large(octets, count, check_offsets=True, same_timestamp=True) in (
        None,
        RecordStats(0, times - 1, key is None, True),
    )
    assert collect_stats_large(octets, count, check_offsets=True) == RecordStats(0, times - 1, key is None, True)


@pytest.mark.parametrize("length_bytes", [2, 3])
def test_lengths_that_are_longer_than_needed_are_not_misread(length_bytes: int) -> None:
    """Read one byte too early, these records look plain: the attributes as timestamp, the timestamp as offset, and so
    on. The fields of the second kind end one byte after their record."""
    valid, invalid, count = bytearray(), bytearray(), 60
    for index in range(count):
        body = b"\0" + varint(index) + varint(-1) + varint(2) + b"\4\4" + varint(2) + b"vv" + b"\0"
        length = bytes((varint(len(body))[0] | 128, *[128] * (length_bytes - 2), 0))
        valid += length + body
        body = b"\0" + varint(index) + varint(-1) + varint(40 + index % 3) + bytes(40 + index % 3) + b"\0"
        invalid += bytes((varint(len(body))[0] | 128, *[128] * (length_bytes - 2), 0)) + body
    expected = collect_stats(bytes(valid), count)
    assert (expected.max_timestamp_delta, expected.has_consecutive_offsets, expected.has_null_key) == (59, False, False)
    assert collect_stats_large(bytes(valid), count, check_offsets=True) in (None, expected)
    with pytest.raises(MalformedMessage):
        collect_stats(bytes(invalid), count)
    assert collect_stats_large(bytes(invalid), count, check_offsets=True) is None
    for octets in (bytes(valid), bytes(invalid)):
        with pytest.raises(FastPathMiss):
            guess_boundaries(numpy, octets, count)


@settings(deadline=None)
@given(
    batches=st.lists(st.tuples(SHAPES, st.just(1) | st.integers(1, 700)), min_size=1, max_size=5), gap=st.integers(0, 3)
)
def test_starts_of_the_records_of_many_batches_are_found(batches: list[tuple[object, int]], gap: int) -> None:
    data, expected, starts, ends = bytearray(), [], [], []
    for shape, count in batches:
        data += b"\xff" * gap
        starts.append(len(data))
        base = build_batch([shape(i) for i in range(count)])[61:]  # type: ignore[operator]
        position = 0
        for _ in range(count):
            expected.append(len(data) + position)
            size, position = read_varint(base, position)
            position += size
        data += base
        ends.append(len(data))
    counts = [count for _, count in batches]
    assert find_starts(memoryview(data), *map(numpy.array, (starts, ends, counts))).tolist() == expected
    for index in range(len(batches)):
        for wrong in (-1, 1):
            changed = [count + wrong * (at == index) for at, count in enumerate(counts)]
            if changed[index]:
                with pytest.raises(MalformedMessage):
                    find_starts(memoryview(data), *map(numpy.array, (starts, ends, changed)))


@pytest.mark.parametrize("count", [21, 64, 65, 300])
@pytest.mark.parametrize("key", [None, b"", b"k" * 200])
@pytest.mark.parametrize("value", [None, b"", b"v" * 100, b"v" * 9000])
def test_uniform_records_are_read_fast(count: int, key: bytes | None, value: bytes | None) -> None:
    octets = payload([Record(timestamp=1000 + i // 50, key=key, value=value) for i in range(count)])
    assert collect_stats_uniform(octets, count) == RecordStats(0, (count - 1) // 50, key is None, True)
    assert collect_stats_uniform(octets + b"\0", count) is None
    size = len(octets) // count
    for position in range((count - 2) * size, len(octets)):
        changed = bytearray(octets)
        changed[position] ^= 1
        found = collect_stats_uniform(bytes(changed), count)
        try:
            assert found in (None, collect_stats(bytes(changed), count))
        except MalformedMessage:
            assert found is None
        if size > 1000:
            break
