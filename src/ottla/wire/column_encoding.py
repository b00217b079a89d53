"""Encoder of columns into record batches, for the column producer and Spark's sink, without Python code per record.

It is the inverse of `column_decoding`. The sizes of all fields are computed first, as columns; they give the position
of each field. Then each field is written for all records at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ottla.wire.batches import RECORDS_AT
from ottla.wire.column_fields import copy_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ottla.wire.columns import BinaryColumn, HeaderColumns

    Column = NDArray[np.int64]
    Octets = NDArray[np.uint8]

ATTRIBUTES_BYTES = 1


@dataclass(frozen=True, slots=True)
class OutgoingColumns:
    """Records to encode. A column that is None contains only nulls; without `headers` no record has any."""

    timestamps: Column
    """Milliseconds since 1970, one per record."""
    values: BinaryColumn | None
    keys: BinaryColumn | None = None
    headers: HeaderColumns | None = None

    def __len__(self) -> int:
        return len(self.timestamps)

    def slice(self, start: int, end: int) -> OutgoingColumns:
        """Return a range of the records; nothing is copied."""
        return OutgoingColumns(
            self.timestamps[start:end],
            None if self.values is None else self.values[start:end],
            None if self.keys is None else self.keys[start:end],
            None if self.headers is None else self.headers.slice(start, end),
        )


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The records of one batch after space for its header. `buffer` is a view of a buffer shared by all batches."""

    partition: int
    buffer: memoryview
    count: int
    base_timestamp: int
    max_timestamp: int


class _Sizes(NamedTuple):
    """The sizes of the fields of each record; those of key and value are -1 for nulls."""

    key: Column
    value: Column
    header_count: Column | None
    header: Column | None
    """Size of each header of all records, with its lengths."""
    fixed: Column
    """Size of a record without its length and deltas, which depend on its batch."""


class _Layout(NamedTuple):
    """The rows of each batch: batch b has the rows `order[starts[b]:ends[b]]`."""

    order: Column
    starts: list[int]
    ends: list[int]


def encode_columns(rows: OutgoingColumns, partitions: NDArray[Any], *, bytes_max: int) -> list[EncodedBatch]:
    """Encode rows into batches of one partition each, in the order of the rows.

    A batch has at most `bytes_max` bytes; a larger record gets a batch of its own.
    """
    if not len(rows):
        return []
    sizes = _measure(rows)
    bounds = _bounds(rows, sizes)
    layout = _lay_out(partitions, bounds, bytes_max)
    return _write(rows, sizes, layout, partitions)


def record_bounds(rows: OutgoingColumns) -> Column:
    """Return an upper limit of the size of each record in any batch."""
    return _bounds(rows, _measure(rows))


def _measure(rows: OutgoingColumns) -> _Sizes:
    count = len(rows)
    fixed = np.full(count, ATTRIBUTES_BYTES, np.int64)
    key, value = _field_sizes(rows.keys, count), _field_sizes(rows.values, count)
    for field in (key, value):
        fixed += varint_sizes(zigzag(field))
        fixed += np.maximum(field, 0)
    if rows.headers is None:
        fixed += 1
        return _Sizes(key, value, None, None, fixed)
    offsets = rows.headers.offsets
    counts = np.diff(offsets)
    each = np.zeros(int(offsets[-1]), np.int64)
    for column in (rows.headers.keys, rows.headers.values):
        field = _field_sizes(column, len(each))
        each += varint_sizes(zigzag(field))
        each += np.maximum(field, 0)
    fixed += varint_sizes(zigzag(counts))
    fixed += np.diff(_running_sums(each)[offsets])
    return _Sizes(key, value, counts, each, fixed)


def _field_sizes(column: BinaryColumn | None, count: int) -> Column:
    if column is None:
        return np.full(count, -1, np.int64)
    sizes: Column = np.diff(column.offsets).astype(np.int64, copy=False)
    return sizes if column.nulls is None else np.where(column.nulls, -1, sizes)


def _bounds(rows: OutgoingColumns, sizes: _Sizes) -> Column:
    span = int(rows.timestamps.max()) - int(rows.timestamps.min())
    deltas = _size_of(2 * span + 1) + _size_of(2 * len(rows))
    return sizes.fixed + (deltas + _size_of(2 * (int(sizes.fixed.max()) + deltas)))


def _lay_out(partitions: NDArray[Any], bounds: Column, bytes_max: int) -> _Layout:
    """Assign rows to batches; the rows of a partition stay in order."""
    order: Column
    if int(partitions.min()) == int(partitions.max()):
        order = np.arange(len(partitions))
        edges = [0, len(partitions)]
    else:
        order = np.argsort(partitions, kind="stable")
        ordered = partitions[order]
        edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(partitions)]
        bounds = bounds[order]
    running = _running_sums(bounds)
    available = max(bytes_max - RECORDS_AT, 1)
    starts, ends = [], []
    for start, end in pairwise(edges):
        at = start
        while at < end:
            until = int(running.searchsorted(int(running[at]) + available, "right")) - 1
            until = min(max(until, at + 1), end)
            starts.append(at)
            ends.append(until)
            at = until
    return _Layout(order, starts, ends)


def _write(rows: OutgoingColumns, sizes: _Sizes, layout: _Layout, partitions: NDArray[Any]) -> list[EncodedBatch]:
    order = layout.order
    starts = np.array(layout.starts, np.int64)
    counts = np.array(layout.ends, np.int64) - starts
    times = rows.timestamps[order]
    base_times = times[starts]
    time_deltas = zigzag(times - np.repeat(base_times, counts))
    offset_deltas = (np.arange(len(order)) - np.repeat(starts, counts)) << 1
    time_sizes, offset_sizes = varint_sizes(time_deltas), varint_sizes(offset_deltas)
    lengths = sizes.fixed[order] + time_sizes + offset_sizes
    length_sizes = varint_sizes(lengths << 1)
    positions = _running_sums(lengths + length_sizes)
    positions += RECORDS_AT * (
        np.searchsorted(starts, np.arange(len(order) + 1), "right")
    )  # a header before the first record of each batch
    target = np.zeros(int(positions[-1]), np.uint8)
    at = positions[:-1].copy()
    write_varints(target, at, lengths << 1, length_sizes)
    at += length_sizes + ATTRIBUTES_BYTES  # attributes are 0
    write_varints(target, at, time_deltas, time_sizes)
    at += time_sizes
    write_varints(target, at, offset_deltas, offset_sizes)
    at += offset_sizes
    by_row = np.empty_like(at)
    by_row[order] = at
    _write_fields(target, by_row, rows, sizes)
    return list(_batches(target, positions, layout, partitions, times))


def _write_fields(target: Octets, at: Column, rows: OutgoingColumns, sizes: _Sizes) -> None:
    """Write keys, values and headers; `at` is where those of each row begin."""
    for column, field in ((rows.keys, sizes.key), (rows.values, sizes.value)):
        at = _write_bytes(target, at, column, field)
    headers = rows.headers
    if headers is None:
        return  # the header count is 0
    assert sizes.header is not None
    assert sizes.header_count is not None
    counts = zigzag(sizes.header_count)
    count_sizes = varint_sizes(counts)
    write_varints(target, at, counts, count_sizes)
    before = _running_sums(sizes.header)
    first = at + count_sizes - before[headers.offsets[:-1]]
    positions = np.repeat(first, sizes.header_count) + before[:-1]
    for column in (headers.keys, headers.values):
        positions = _write_bytes(target, positions, column, _field_sizes(column, len(positions)))


def _write_bytes(target: Octets, at: Column, column: BinaryColumn | None, field: Column) -> Column:
    """Write byte strings with their lengths; return the positions after them."""
    numbers = zigzag(field)
    length_sizes = varint_sizes(numbers)
    write_varints(target, at, numbers, length_sizes)
    at = at + length_sizes
    if column is None:
        return at
    copy_pieces(column.data, column.offsets[:-1], target, at, field)
    at += np.maximum(field, 0)
    return at


def _batches(
    target: Octets, positions: Column, layout: _Layout, partitions: NDArray[Any], times: Column
) -> Iterator[EncodedBatch]:
    view = memoryview(target.data)
    firsts = positions[layout.starts].tolist()
    for index, (start, end) in enumerate(zip(layout.starts, layout.ends, strict=True)):
        begin = firsts[index] - RECORDS_AT
        until = firsts[index + 1] - RECORDS_AT if index + 1 < len(firsts) else len(target)
        partition = int(partitions[layout.order[start]])
        yield EncodedBatch(partition, view[begin:until], end - start, int(times[start]), int(times[start:end].max()))


# Numbers


def zigzag(numbers: Column) -> Column:
    """Encode signed numbers for varints. Numbers over 62 bits become negative, which stands for a large unsigned
    number."""
    return numbers << 1 ^ numbers >> 63


def varint_sizes(numbers: Column) -> Column:
    """Return the size of each varint; `numbers` are results of `zigzag`, or lengths times two."""
    sizes = np.ones(len(numbers), np.int64)
    if not len(numbers):
        return sizes
    unsigned = numbers.view(np.uint64)
    largest = int(unsigned.max())
    limit = 1 << 7
    while largest >= limit:
        sizes += unsigned >= np.uint64(limit)
        limit <<= 7
    return sizes


def write_varints(target: Octets, at: Column, numbers: Column, sizes: Column) -> None:
    """Write each number at its position in a buffer of zeros."""
    if not len(numbers):
        return
    unsigned = numbers.view(np.uint64)
    widest = int(sizes.max())
    if widest == 1:
        target[at] = unsigned
        return
    for index in range(widest):
        if index and int(sizes.min()) <= index:
            chosen = np.flatnonzero(sizes > index)
            unsigned, sizes, at = unsigned[chosen], sizes[chosen], at[chosen]
        byte = (unsigned >> np.uint64(7 * index)).astype(np.uint8) & 127
        byte |= (sizes > index + 1).view(np.uint8) << 7
        target[at + index] = byte


def _size_of(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _running_sums(sizes: Column) -> Column:
    """Return for each item the sum of all items before it, then the total."""
    sums = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums
