"""Records as columns: NumPy arrays of offsets, timestamps, keys, values and headers; Arrow arrays if it is
installed."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from ottla.base.ports import Buffer
from ottla.wire.batch_table import BatchTable
from ottla.wire.column_fields import each_header, gather, read_body_fields, read_head_fields
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_boundaries import find_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

Column = NDArray[np.int64]
Octets = NDArray[np.uint8]

HEADER_BYTES_MIN = 2
"""Size of the smallest header: the lengths of its key and value."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryColumn:
    """Concatenated byte strings, as in Arrow: the i-th is `data[offsets[i] : offsets[i + 1]]`, or null if `nulls[i]`.

    `column[i]` is the i-th as bytes, or None; `column[i:j]` is a column that shares the data; `tolist()` returns all.
    """

    offsets: Column
    data: Octets
    nulls: NDArray[np.bool_] | None
    """None if there are no nulls."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"BinaryColumn({len(self)} byte strings of {int(self.offsets[-1] - self.offsets[0])} bytes)"

    @overload
    def __getitem__(self, row: SupportsIndex) -> bytes | None: ...

    @overload
    def __getitem__(self, row: slice) -> "BinaryColumn": ...

    def __getitem__(self, row: SupportsIndex | slice) -> "bytes | BinaryColumn | None":
        count = len(self)
        if isinstance(row, slice):
            start, end, step = row.indices(count)
            if step != 1:
                raise ValueError(f"a column can only be sliced in steps of 1, got {step}")
            end = max(start, end)
            return BinaryColumn(
                self.offsets[start : end + 1], self.data, None if self.nulls is None else self.nulls[start:end]
            )
        at = index(row)
        if not -count <= at < count:
            raise IndexError(f"row {at} is out of range; the column has {count} rows")
        at %= count
        if self.nulls is not None and self.nulls[at]:
            return None
        return self.data[self.offsets[at] : self.offsets[at + 1]].tobytes()

    def __iter__(self) -> "Iterator[bytes | None]":
        return iter(self.tolist())

    def tolist(self) -> list[bytes | None]:
        """Return the byte strings as Python objects."""
        bounds, first = self.offsets.tolist(), int(self.offsets[0])
        data = self.data[first : bounds[-1]].tobytes()
        if first:
            bounds = (self.offsets - first).tolist()
        found: list[bytes | None] = [data[start:end] for start, end in pairwise(bounds)]
        if self.nulls is not None:
            for row in np.flatnonzero(self.nulls).tolist():
                found[row] = None
        return found

    def to_arrow(self, type_name: str = "binary") -> Any:
        """Return a `pyarrow` array of "binary" or "string", with 64-bit offsets if the data needs them."""
        import pyarrow as pa

        is_large = len(self.data) > 0x7FFF_FFFF
        arrow_type = getattr(pa, f"large_{type_name}" if is_large else type_name)()
        offsets = self.offsets if is_large else self.offsets.astype(np.int32)
        validity = None if self.nulls is None else pa.py_buffer(np.packbits(~self.nulls, bitorder="little"))
        count = -1 if self.nulls is None else int(self.nulls.sum())
        return pa.Array.from_buffers(
            arrow_type, len(self), [validity, pa.py_buffer(offsets), pa.py_buffer(self.data)], count
        )

    @classmethod
    def from_arrow(cls, array: Any) -> "BinaryColumn":
        """Return a column that shares the data of a `pyarrow` array. Raises TypeError unless it is binary or text."""
        import pyarrow as pa

        types, arrow_type = pa.types, array.type
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if (
            types.is_binary_view(arrow_type)
            or types.is_string_view(arrow_type)
            or types.is_fixed_size_binary(arrow_type)
            or types.is_null(arrow_type)
        ):
            arrow_type = pa.large_binary()
            array = array.cast(arrow_type)
        is_large = types.is_large_binary(arrow_type) or types.is_large_string(arrow_type)
        if not (is_large or types.is_binary(arrow_type) or types.is_string(arrow_type)):
            raise TypeError(f"a column of type {arrow_type} is neither binary nor text")
        _, offset_buffer, data_buffer = array.buffers()
        first, count = array.offset, len(array)
        if offset_buffer is None or not count:
            return cls(np.zeros(count + 1, np.int64), np.empty(0, np.uint8), None)
        offsets = np.frombuffer(offset_buffer, np.int64 if is_large else np.int32)[first : first + count + 1].astype(
            np.int64
        )
        data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
        nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        return cls(offsets, data, nulls)


class HeaderColumns(NamedTuple):
    """The headers of all records: those of record i are the rows `offsets[i]` to `offsets[i + 1]` of both columns."""

    offsets: Column
    keys: BinaryColumn
    values: BinaryColumn

    @classmethod
    def from_arrow(cls, array: Any) -> "HeaderColumns":
        """Convert a `pyarrow` array of lists of key and value; a null list counts as an empty one."""
        import pyarrow as pa

        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        counts = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        pairs = array.flatten()  # without the items of null lists
        keys, values = (BinaryColumn.from_arrow(field) for field in pairs.flatten())
        if keys.nulls is not None:
            raise ValueError("a header has no key")
        return cls(offsets, keys, values)

    def slice(self, start: int, end: int) -> "HeaderColumns":
        """Return the headers of a range of records."""
        offsets = self.offsets[start : end + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        return HeaderColumns(offsets - first, self.keys[first:last], self.values[first:last])


class RecordColumns:
    """The records of some partitions, partition by partition.

    `offsets`, `timestamps` (milliseconds), `timestamp_types` (0: set by the producer, 1: by the broker),
    `leader_epochs` and `partitions` (an index into the decoded partitions) have one item per record. `keys`, `values`
    and `headers` are gathered on first use. `next_offsets` and `last_epochs` have one item per partition, for its next
    fetch.
    """

    def __init__(
        self,
        data: Buffer,
        offsets: Column,
        timestamps: Column,
        batch_of_row: Column,
        append_time: NDArray[np.int8],
        epochs: NDArray[np.int32],
        partition_of_batch: NDArray[np.int32],
        key: tuple[Column, Column],
        value: tuple[Column, Column],
        headers: tuple[Column, Column],
        next_offsets: list[int],
        last_epochs: list[int],
    ) -> None:
        self.data = data
        self.offsets = offsets
        self.timestamps = timestamps
        self._batch_of_row = batch_of_row
        self._append_time, self._epochs, self._partition_of_batch = append_time, epochs, partition_of_batch
        self.key_sizes, self.key_starts = key
        self.value_sizes, self.value_starts = value
        self.header_counts, self._header_starts = headers
        self.next_offsets = next_offsets
        self.last_epochs = last_epochs

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def timestamp_types(self) -> NDArray[np.int8]:
        return self._append_time[self._batch_of_row]

    @cached_property
    def leader_epochs(self) -> NDArray[np.int32]:
        return self._epochs[self._batch_of_row]

    @cached_property
    def partitions(self) -> NDArray[np.int32]:
        return self._partition_of_batch[self._batch_of_row]

    @cached_property
    def keys(self) -> BinaryColumn:
        return self._binary(self.key_starts, self.key_sizes)

    @cached_property
    def values(self) -> BinaryColumn:
        return self._binary(self.value_starts, self.value_sizes)

    @cached_property
    def has_keys(self) -> bool:
        return bool((self.key_sizes >= 0).any())

    def gather_keys(self, first: int, last: int) -> BinaryColumn:
        """Return the keys of a range of rows."""
        return self._binary(self.key_starts[first:last], self.key_sizes[first:last])

    def gather_values(self, first: int, last: int) -> BinaryColumn:
        """Return the values of a range of rows."""
        return self._binary(self.value_starts[first:last], self.value_sizes[first:last])

    @cached_property
    def has_headers(self) -> bool:
        return bool(self.header_counts.any())

    @cached_property
    def headers(self) -> HeaderColumns:
        """The headers. Raises MalformedMessage if they extend past the end of the buffer."""
        octets = np.frombuffer(self.data, np.uint8)
        counts = self.header_counts
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        total = int(offsets[-1])
        if total * HEADER_BYTES_MIN > len(octets) or (len(counts) and int(counts.min()) < 0):
            raise MalformedMessage(f"{total} headers do not fit into {len(octets)} bytes")
        key_sizes, key_starts, sizes, starts = (np.zeros(total, np.int64) for _ in range(4))
        for number, header in enumerate(each_header(octets, counts, self._header_starts)):
            if bool((header.ends > len(octets)).any()) or int(header.key_sizes.min()) < 0:
                raise MalformedMessage("record header without a key, or longer than its record")
            targets = offsets[header.rows] + number
            key_sizes[targets], key_starts[targets] = header.key_sizes, header.key_starts
            sizes[targets], starts[targets] = header.value_sizes, header.value_starts
        return HeaderColumns(offsets, self._binary(key_starts, key_sizes), self._binary(starts, sizes))

    def _binary(self, starts: Column, sizes: Column) -> BinaryColumn:
        nulls = sizes < 0
        return BinaryColumn(*gather(np.frombuffer(self.data, np.uint8), starts, sizes), nulls if nulls.any() else None)

    def partition_bounds(self) -> list[int]:
        """Return the index of the first row of each partition, and the number of rows."""
        found: list[int] = np.searchsorted(self.partitions, np.arange(len(self.next_offsets) + 1)).tolist()
        return found

    def rows_headers(self) -> "Iterator[tuple[tuple[str, bytes | None], ...]]":
        """Yield the headers of each record."""
        if not self.has_headers:
            yield from (() for _ in range(len(self)))
            return
        keys, values, bounds = self.headers.keys, self.headers.values, self.headers.offsets.tolist()
        names = [(name or b"").decode("utf-8", "replace") for name in keys.tolist()]
        pairs = list(zip(names, values.tolist(), strict=True))
        for start, end in pairwise(bounds):
            yield tuple(pairs[start:end])

    def to_arrow(self, *, headers: bool = False) -> Any:
        """Return a `pyarrow.RecordBatch` with key, value, partition, offset, timestamp, timestamp_type and optionally
        headers."""
        import pyarrow as pa

        columns = {
            "key": self.keys.to_arrow(),
            "value": self.values.to_arrow(),
            "partition": pa.array(self.partitions),
            "offset": pa.array(self.offsets),
            "timestamp": pa.array(self.timestamps).cast(pa.timestamp("ms")),
            "timestamp_type": pa.array(self.timestamp_types),
        }
        if headers:
            columns["headers"] = self.headers_to_arrow()
        return pa.RecordBatch.from_pydict(columns)

    def headers_to_arrow(self) -> Any:
        """Return an Arrow array with a list of key (text) and value for each record."""
        import pyarrow as pa

        found = self.headers
        pairs = pa.StructArray.from_arrays(
            [found.keys.to_arrow("string"), found.values.to_arrow()], names=["key", "value"]
        )
        return pa.ListArray.from_arrays(pa.array(found.offsets.astype(np.int32)), pairs)


def decode_rows(
    data: Buffer, starts: Column, ends: Column, table: BatchTable, rows: Column, fetch_offsets: list[int]
) -> RecordColumns:
    """Decode the records of batches: rows of the table whose payloads are at `starts` to `ends` of the data."""
    octets = np.frombuffer(data, np.uint8)
    count, is_append_time, partition_of_batch = table.count[rows], table.is_append_time[rows], table.partition[rows]
    positions = find_starts(data, starts, ends, count)
    batch_of_row = np.repeat(np.arange(len(rows)), count)
    head = read_head_fields(octets, positions)
    body = read_body_fields(octets, head.after_offset)
    deltas = head.timestamp_deltas
    if is_append_time.any():
        deltas = np.where(is_append_time[batch_of_row], 0, deltas)
    timestamps = table.timestamp[rows][batch_of_row] + deltas
    offsets = table.base_offset[rows][batch_of_row] + head.offset_deltas
    counts, at = body.header_counts, body.headers_at
    is_wrong = (at != head.ends) & (counts == 0) | (at > head.ends) | (counts < 0)
    if is_wrong.any():
        raise MalformedMessage(
            f"the fields of the record at offset {offsets[int(is_wrong.argmax())]} do not end where its length says"
        )
    columns: list[Column] = [offsets, timestamps, batch_of_row, *body]
    is_requested = offsets >= np.array(fetch_offsets, np.int64)[partition_of_batch][batch_of_row]
    if not is_requested.all():
        columns = [column[is_requested] for column in columns]
    offsets, timestamps, batch_of_row, key_sizes, key_starts, value_sizes, value_starts, header_counts, at = columns
    return RecordColumns(
        data,
        offsets,
        timestamps,
        batch_of_row,
        is_append_time,
        table.leader_epoch[rows],
        partition_of_batch,
        (key_sizes, key_starts),
        (value_sizes, value_starts),
        (header_counts, at),
        table.next_offsets(fetch_offsets),
        table.last_epochs(),
    )
