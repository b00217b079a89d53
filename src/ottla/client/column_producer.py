"""Columns on their way: cut into split_rows of bounded size, given partitions, encoded and put into the queues of their partitions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ottla.client.column_partitioning import choose_partitions
from ottla.client.errors import RecordTooLargeError
from ottla.wire.batches import RECORDS_AT
from ottla.wire.column_encoding import EncodedBatch, OutgoingColumns, encode_columns, record_bounds
from ottla.wire.columns import BinaryColumn, HeaderColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ottla.client.accumulator import RecordAccumulator, TopicRoute

    Column = NDArray[np.int64]

CHUNK_BYTES_MAX = 4 << 20
"""As much is encoded at once. More is slower: the buffer no longer stays in the processor's cache."""


def to_columns(
    accumulator: "RecordAccumulator", values: Any, keys: Any, timestamps: Any, headers: Any
) -> "tuple[OutgoingColumns, Column]":
    """Columns as the encoder takes them, and how large each record is at most. Each may be an Arrow array, a column of `wire.columns`,
    or None."""
    value_column, key_column = as_binary(values), as_binary(keys)
    counts = {len(column.offsets) - 1 for column in (value_column, key_column) if column is not None}
    if timestamps is not None:
        counts.add(len(timestamps))
    if len(counts) != 1:
        raise ValueError(f"the columns have {' and '.join(map(str, sorted(counts))) or 'no'} rows")
    count = counts.pop()
    rows = OutgoingColumns(
        as_timestamps(timestamps, count, accumulator.now_wall_ms()), value_column, key_column, as_headers(headers)
    )
    if rows.headers is not None and len(rows.headers.offsets) != count + 1:
        raise ValueError(f"there are {count} rows, and headers of {len(rows.headers.offsets) - 1}")
    return rows, record_bounds(rows) if count else np.empty(0, np.int64)


def check_partitions(topic: str, given: Any, count: int) -> "NDArray[np.int32] | None":
    """The partitions that are given, -1 where none is; a number that can be none is refused."""
    if given is None:
        return None
    if not isinstance(given, np.ndarray):
        given = (given.fill_null(-1) if given.null_count else given).to_numpy(zero_copy_only=False)
    if len(given) != count:
        raise ValueError(f"there are {count} rows, and partitions for {len(given)}")
    if count and int(given.min()) < -1:
        raise ValueError(f"partitions of topic {topic!r} are numbered from 0, so {int(given.min())} is none")
    numbers: NDArray[np.int32] = given.astype(np.int32)
    return numbers


def as_binary(column: Any) -> BinaryColumn | None:
    if column is None or isinstance(column, BinaryColumn):
        return column
    return BinaryColumn.from_arrow(column)


def as_headers(column: Any) -> HeaderColumns | None:
    if column is None or isinstance(column, HeaderColumns):
        return column
    return HeaderColumns.from_arrow(column)


def as_timestamps(timestamps: Any, count: int, now_ms: int) -> "NDArray[np.int64]":
    """Milliseconds; now where there are none. Those of Arrow may be timestamps of any unit, or numbers of milliseconds."""
    if timestamps is None:
        return np.full(count, now_ms, np.int64)
    if isinstance(timestamps, np.ndarray):
        found = timestamps.astype(np.int64)
    else:
        import pyarrow as pa

        if pa.types.is_timestamp(timestamps.type):
            timestamps = timestamps.cast(pa.timestamp("ms", timestamps.type.tz), safe=False)
        numbers = timestamps.cast(pa.int64())
        found = (numbers.fill_null(now_ms) if numbers.null_count else numbers).to_numpy(zero_copy_only=False)
    if count and int(found.min()) < 0:
        raise ValueError(f"a timestamp is milliseconds since 1970, not {int(found.min())}")
    return found


def split_rows(
    rows: OutgoingColumns, bounds: "NDArray[np.int64]", bytes_max: int = CHUNK_BYTES_MAX
) -> Iterator[tuple[int, int]]:
    """First and last row of split_rows of about so many bytes."""
    running = np.cumsum(bounds)
    start, count = 0, len(rows)
    while start < count:
        before = int(running[start - 1]) if start else 0
        end = min(max(int(running.searchsorted(before + bytes_max, "right")), start + 1), count)
        yield start, end
        start = end


def encode_rows(
    accumulator: "RecordAccumulator", route: "TopicRoute", rows: OutgoingColumns, given: "NDArray[np.int32] | None"
) -> list[EncodedBatch]:
    """The batches of some rows. A record that no request can hold is refused, with its place."""
    settings = accumulator.settings
    bounds = record_bounds(rows)
    partitions = choose_partitions(accumulator, route, rows, bounds, given)
    largest = int(bounds.max(initial=0))
    if RECORDS_AT + largest > min(settings.request_size_max, settings.buffer_memory):
        where = f"partition {int(partitions[int(bounds.argmax())])} of topic {route.name!r}"
        name, limit = min(
            ("max.request.size", settings.request_size_max),
            ("buffer.memory", settings.buffer_memory),
            key=lambda n: n[1],
        )
        raise RecordTooLargeError(f"A record of {largest} bytes for {where} is larger than {name}, {limit}.")
    bytes_max = min(max(settings.batch_size, 1), settings.request_size_max)
    return encode_columns(rows, partitions, bytes_max=bytes_max)
