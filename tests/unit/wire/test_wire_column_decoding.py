"""Decoded columns contain the same records as `decode_records`, for all kinds of batches."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.batches import Record, build_batch, decode_records
from ottla.wire.column_decoding import FetchedPartition, decode_fetched
from ottla.wire.columns import BinaryColumn, RecordColumns
from ottla.wire.errors import MalformedMessage

TIME = 1_700_000_000_000


def rows(
    columns: RecordColumns,
) -> list[tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]:
    """Return partition, offset, timestamp, key, value and headers of each record."""
    return list(
        zip(
            columns.partitions.tolist(),
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            columns.keys.tolist(),
            columns.values.tolist(),
            columns.rows_headers(),
            strict=True,
        )
    )


def expected(
    partition: int, batch: bytes | bytearray
) -> list[tuple[int, int, int, bytes | None, bytes | None, object]]:
    return [(partition, *record) for record in decode_records(batch)]


def marker(offset: int, producer_id: int, *, is_commit: bool) -> bytearray:
    key = struct.pack(">hh", 0, int(is_commit))
    return build_batch(
        [Record(0, TIME, key, struct.pack(">hi", 0, 0))],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_control=True,
        is_transactional=True,
    )


binary = st.none() | st.binary(max_size=90) | st.sampled_from([b"x" * 63, b"x" * 64, b"y" * 8191, b"z" * 9000])
header = st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))
record = st.builds(
    Record,
    offset=st.just(0),
    timestamp=st.integers(TIME - 9000, TIME + 9000) | st.integers(-1, 1 << 60),
    key=binary,
    value=binary,
    headers=st.lists(header, max_size=3).map(tuple),
)
batch_of = st.lists(record, min_size=1, max_size=40) | st.tuples(record, st.integers(1, 200)).map(
    lambda pair: [pair[0]] * pair[1]
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 2), batch_of, st.integers(0, 4), st.none() | st.just(TIME)), max_size=6))
def test_columns_contain_the_records(drawn: list[tuple[int, list[Record], int, int | None]]) -> None:
    """For batches of any codec, in several partitions."""
    partitions = [bytearray(), bytearray(), bytearray()]
    expected_rows: list[list[object]] = [[], [], []]
    ends = [0, 0, 0]
    for index, records, codec, append_time in drawn:
        batch = build_batch(records, base_offset=ends[index], codec=codec, log_append_time=append_time)
        ends[index] += len(records) + 3
        partitions[index] += batch
        expected_rows[index] += expected(index, batch)
    columns = decode_fetched([FetchedPartition(bytes(data), 0) for data in partitions])
    assert rows(columns) == expected_rows[0] + expected_rows[1] + expected_rows[2]
    assert columns.next_offsets == [max(end - 3, 0) for end in ends]


@pytest.mark.parametrize("codec", range(5))
def test_records_before_the_fetch_offset_are_dropped(codec: int) -> None:
    """Brokers send the complete batch that contains the offset."""
    batch = build_batch([Record(value=b"%d" % index) for index in range(10)], base_offset=100, codec=codec)
    columns = decode_fetched([FetchedPartition(batch, 107)])
    assert columns.offsets.tolist() == [107, 108, 109]
    assert columns.values.tolist() == [b"7", b"8", b"9"]
    assert columns.next_offsets == [110]


def test_incomplete_last_batch_is_skipped() -> None:
    """A response may end inside a batch; the next fetch starts there."""
    first, second = (build_batch([Record(value=b"v")] * 2, base_offset=base) for base in (0, 2))
    for size in (1, 12, 60, 61, len(second) - 1):
        columns = decode_fetched([FetchedPartition(bytes(first + second[:size]), 0)])
        assert (columns.offsets.tolist(), columns.next_offsets) == ([0, 1], [2])


def test_control_batches_are_skipped_but_advance_the_next_offset() -> None:
    """The next fetch starts after a marker that is the last batch."""
    data = build_batch([Record(value=b"v")], producer_id=7, producer_epoch=0, is_transactional=True) + marker(
        1, 7, is_commit=True
    )
    columns = decode_fetched([FetchedPartition(bytes(data), 0)], read_committed=True)
    assert (columns.offsets.tolist(), columns.next_offsets) == ([0], [2])


def test_records_of_aborted_transactions_are_dropped() -> None:
    """Other producers' records and later records of the same producer stay."""

    def written(offset: int, producer: int) -> bytearray:
        return build_batch(
            [Record(value=b"%d" % producer)],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            is_transactional=True,
        )

    data = bytes(
        written(0, 1)
        + written(1, 2)
        + written(2, 1)
        + marker(3, 1, is_commit=False)
        + written(4, 1)
        + marker(5, 2, is_commit=True)
        + marker(6, 1, is_commit=True)
    )
    fetched = FetchedPartition(data, 0, [(1, 0)])
    assert decode_fetched([fetched], read_committed=True).offsets.tolist() == [1, 4]
    assert decode_fetched([fetched]).offsets.tolist() == [0, 1, 2, 4]
    assert decode_fetched([fetched], read_committed=True).next_offsets == [7]


def test_offsets_with_gaps_are_kept() -> None:
    """Compaction leaves batches with gaps between offset deltas, and empty batches."""
    from ottla.wire.batches import COUNT_AT, LAST_OFFSET_DELTA_AT, LENGTH_AT, RECORDS_AT, write_checksum

    complete = build_batch([Record(value=b"a"), Record(value=b"b"), Record(value=b"c")], base_offset=10)
    size = (len(complete) - RECORDS_AT) // 3
    without_middle = complete[: RECORDS_AT + size] + complete[RECORDS_AT + 2 * size :]
    struct.pack_into(">i", without_middle, LENGTH_AT, len(without_middle) - 12)
    struct.pack_into(">i", without_middle, COUNT_AT, 2)
    write_checksum(without_middle)
    empty = complete[:RECORDS_AT]
    struct.pack_into(">q", empty, 0, 13)
    struct.pack_into(">i", empty, LENGTH_AT, len(empty) - 12)
    struct.pack_into(">i", empty, COUNT_AT, 0)
    struct.pack_into(">i", empty, LAST_OFFSET_DELTA_AT, 4)
    write_checksum(empty)
    columns = decode_fetched([FetchedPartition(bytes(without_middle + empty), 0)])
    assert (columns.offsets.tolist(), columns.values.tolist(), columns.next_offsets) == ([10, 12], [b"a", b"c"], [18])


def test_corrupt_batch_is_malformed() -> None:
    """Detected by its checksum, or by its fields if checksums are not checked."""
    batch = build_batch([Record(value=b"value %d" % index) for index in range(50)])
    for at in (61, 70, 100, len(batch) - 1):
        corrupt = bytearray(batch)
        corrupt[at] ^= 0x10
        with pytest.raises(MalformedMessage):
            decode_fetched([FetchedPartition(bytes(corrupt), 0)])
    short = bytearray(batch)
    short[61] = 126
    with pytest.raises(MalformedMessage):
        decode_fetched([FetchedPartition(bytes(short), 0)], check_crcs=False)


@settings(deadline=None, max_examples=200)
@given(st.lists(record, min_size=1, max_size=30), st.data())
def test_corrupt_batch_without_checksum_check_is_decoded_or_malformed(
    records: list[Record], data: st.DataObject
) -> None:
    """Never another error."""
    batch = build_batch(records)
    for _ in range(3):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        columns = decode_fetched([FetchedPartition(bytes(batch), 0)], check_crcs=False)
        rows(columns)
    except MalformedMessage:
        return
    assert len(columns) <= len(records)


def test_empty_response_has_no_rows() -> None:
    columns = decode_fetched([FetchedPartition(b"", 5)])
    assert (rows(columns), columns.next_offsets, columns.partition_bounds()) == ([], [5], [0, 0])


def test_partition_bounds() -> None:
    """Including partitions without records."""
    one, two = build_batch([Record(value=b"1")] * 3), build_batch([Record(value=b"2")] * 2, leader_epoch=4)
    columns = decode_fetched([FetchedPartition(one, 0), FetchedPartition(b"", 9), FetchedPartition(two, 0)])
    assert columns.partition_bounds() == [0, 3, 3, 5]
    assert columns.last_epochs == [-1, -1, 4]
    assert columns.leader_epochs.tolist() == [-1, -1, -1, 4, 4]


@pytest.mark.parametrize("filling", [b"text", b"\0", b"\0\1\0"])
@pytest.mark.parametrize("codec", [0, 4])
def test_many_records_of_different_sizes(codec: int, filling: bytes) -> None:
    """With values that look like the boundary of records, and values that do not."""
    records = [
        Record(0, TIME + 7 * index, b"k" * (index % 5) if index % 3 else None, filling * (index * 7919 % 97))
        for index in range(2000)
    ]
    batch = build_batch(records, codec=codec)
    assert rows(decode_fetched([FetchedPartition(batch, 0)])) == expected(0, batch)


def test_binary_column_supports_indexes_and_slices() -> None:
    """Like a list; a slice is a column that shares the data."""
    strings = [b"one", None, b"", b"four", b"five"]
    offsets = np.array([0, 3, 3, 3, 7, 11], np.int64)
    column = BinaryColumn(
        offsets, np.frombuffer(b"onefourfive", np.uint8), np.array([each is None for each in strings])
    )
    assert (len(column), column.tolist(), list(column)) == (5, strings, strings)
    assert [column[row] for row in range(-5, 5)] == strings + strings
    assert column[np.int64(3)] == b"four"
    some = column[1:4]
    assert (len(some), some.tolist(), some[0], some[-1], some.data is column.data) == (
        3,
        strings[1:4],
        None,
        b"four",
        True,
    )
    assert column[3:].tolist() == [b"four", b"five"]
    assert column[4:2].tolist() == []
    assert repr(column[3:]) == "BinaryColumn(2 byte strings of 8 bytes)"
    for row in (5, -6):
        with pytest.raises(IndexError, match=f"row {row} is out of range; the column has 5 rows"):
            column[row]
    with pytest.raises(ValueError, match="steps of 1, got 2"):
        column[::2]
