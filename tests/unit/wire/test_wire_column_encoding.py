"""Batches encoded from columns equal those of `build_batch`, byte for byte."""

from random import Random

import numpy as np
import pytest

from ottla.wire.batches import RECORDS_AT, Record, build_batch
from ottla.wire.column_encoding import EncodedBatch, OutgoingColumns, encode_columns, record_bounds
from ottla.wire.columns import BinaryColumn, HeaderColumns


def binary(strings: list[bytes | None]) -> BinaryColumn:
    sizes = [len(each or b"") for each in strings]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nulls = np.array([each is None for each in strings], np.bool_)
    return BinaryColumn(
        offsets, np.frombuffer(b"".join(each or b"" for each in strings), np.uint8), nulls if nulls.any() else None
    )


def columns(records: list[Record]) -> OutgoingColumns:
    headers = None
    if any(record.headers for record in records):
        pairs = [pair for record in records for pair in record.headers]
        offsets = np.concatenate([[0], np.cumsum([len(record.headers) for record in records])]).astype(np.int64)
        headers = HeaderColumns(
            offsets, binary([name.encode() for name, _ in pairs]), binary([content for _, content in pairs])
        )
    return OutgoingColumns(
        np.array([record.timestamp for record in records], np.int64),
        binary([record.value for record in records]),
        binary([record.key for record in records]),
        headers,
    )


def rebuilt(batch: EncodedBatch, records: list[Record]) -> bytes:
    """Return the payload of the same records from `build_batch`."""
    assert batch.base_timestamp == records[0].timestamp
    assert batch.max_timestamp == max(record.timestamp for record in records)
    return bytes(build_batch(records)[RECORDS_AT:])


def random_records(rng: Random, count: int, *, with_headers: bool) -> list[Record]:
    def some(limit: int) -> bytes | None:
        return None if rng.random() < 0.1 else rng.randbytes(rng.choice((0, 1, 5, 63, 64, 127, 128, 300, limit)))

    def header() -> tuple[str, bytes | None]:
        return "x" * rng.choice((0, 1, 70)), some(9)

    return [
        Record(
            timestamp=rng.choice((0, 5, 1 << 41, 1_700_000_000_000)),
            key=some(20),
            value=some(9000),
            headers=tuple(header() for _ in range(rng.choice((0, 1, 3)))) if with_headers else (),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("with_headers", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_encoded_batches_equal_those_of_build_batch(seed: int, with_headers: bool) -> None:
    """For any sizes, nulls, timestamps and headers; the rows of a partition stay in order."""
    rng = Random(seed)
    records = random_records(rng, rng.choice((1, 2, 70, 400)), with_headers=with_headers)
    partitions = np.array([rng.randrange(1 + seed % 4) for _ in records], np.int32)
    bytes_max = rng.choice((200, 10_000, 1 << 20))
    batches = encode_columns(columns(records), partitions, bytes_max=bytes_max)
    left = {
        partition: [r for r, p in zip(records, partitions.tolist(), strict=True) if p == partition]
        for partition in range(4)
    }
    for batch in batches:
        taken, left[batch.partition] = left[batch.partition][: batch.count], left[batch.partition][batch.count :]
        assert bytes(batch.buffer[RECORDS_AT:]) == rebuilt(batch, taken)
        assert bytes(batch.buffer[:RECORDS_AT]) == bytes(RECORDS_AT)
        assert len(batch.buffer) <= bytes_max or batch.count == 1
    assert left == {0: [], 1: [], 2: [], 3: []}


def test_no_rows_give_no_batches() -> None:
    assert encode_columns(columns([]), np.empty(0, np.int32), bytes_max=100) == []


def test_missing_columns_are_encoded_as_nulls() -> None:
    """The smallest record is a tombstone without a key."""
    rows = OutgoingColumns(np.array([7, 7], np.int64), None)
    (batch,) = encode_columns(rows, np.zeros(2, np.int32), bytes_max=1000)
    assert bytes(batch.buffer[RECORDS_AT:]) == rebuilt(batch, [Record(timestamp=7), Record(timestamp=7)])


def test_record_bounds_are_close_upper_limits() -> None:
    """No record is larger than its bound, or more than 16 bytes smaller."""
    records = random_records(Random(3), 300, with_headers=True)
    rows = columns(records)
    bounds = record_bounds(rows)
    for batch in encode_columns(rows, np.arange(300, dtype=np.int32), bytes_max=1 << 20):
        size = len(batch.buffer) - RECORDS_AT
        assert size <= bounds[batch.partition] <= size + 16


def test_sliced_columns_are_encoded() -> None:
    """Offsets may start anywhere, as in a slice of an Arrow array."""
    complete = binary([b"left out", b"one", b"three"])
    rows = OutgoingColumns(np.array([1, 1], np.int64), BinaryColumn(complete.offsets[1:], complete.data, None))
    (batch,) = encode_columns(rows, np.zeros(2, np.int32), bytes_max=1000)
    assert bytes(batch.buffer[RECORDS_AT:]) == rebuilt(
        batch, [Record(timestamp=1, value=b"one"), Record(timestamp=1, value=b"three")]
    )
