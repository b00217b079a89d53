"""Columns to batches: choose partitions for all rows at once, split into chunks of bounded size, encode."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ottla.client.errors import RecordTooLargeError
from ottla.client.partitioner import SEED
from ottla.wire.batches import RECORDS_AT
from ottla.wire.column_encoding import EncodedBatch, OutgoingColumns, encode_columns, record_bounds
from ottla.wire.columns import BinaryColumn, HeaderColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ottla.client.accumulator import RecordAccumulator, TopicRoute

    Column = NDArray[np.int64]
    Hashes = NDArray[np.uint32]

CHUNK_BYTES_MAX = 4 << 20
"""Bytes encoded at a time. Larger buffers no longer fit the CPU cache and are slower."""

_M = np.uint32(0x5BD1E995)
POSITIVE = np.uint32(0x7FFF_FFFF)


# Input


def to_columns(
    accumulator: "RecordAccumulator", values: Any, keys: Any, timestamps: Any, headers: Any
) -> "tuple[OutgoingColumns, Column]":
    """Return the columns for the encoder and an upper limit of each record's size.

    Each argument is an Arrow array, a column of `wire.columns` or None.
    """
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
        raise ValueError(f"headers has {len(rows.headers.offsets) - 1} rows, but the other columns have {count}")
    return rows, record_bounds(rows) if count else np.empty(0, np.int64)


def check_partitions(topic: str, given: Any, count: int) -> "NDArray[np.int32] | None":
    """Return the given partitions, with -1 for nulls. Raises ValueError if one is below -1."""
    if given is None:
        return None
    if not isinstance(given, np.ndarray):
        given = (given.fill_null(-1) if given.null_count else given).to_numpy(zero_copy_only=False)
    if len(given) != count:
        raise ValueError(f"partitions has {len(given)} rows, but the other columns have {count}")
    if count and int(given.min()) < -1:
        raise ValueError(f"partition of topic {topic!r} must be >= 0, got {int(given.min())}")
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
    """Return milliseconds; nulls become `now_ms`. Arrow arrays may be timestamps of any unit, or milliseconds."""
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
        raise ValueError(f"timestamp must be milliseconds since 1970, got {int(found.min())}")
    return found


# Partitions


def murmur2_column(keys: BinaryColumn) -> "Hashes":
    """Return `partitioner.murmur2` of each key; the hash of a null is arbitrary.

    Each step hashes the next four bytes of all keys that still have four, so the longest key determines the number of
    steps.
    """
    starts, sizes = keys.offsets[:-1].astype(np.int64), np.diff(keys.offsets).astype(np.int64)
    hashes = np.uint32(SEED) ^ sizes.astype(np.uint32)
    steps = sizes >> 2
    octets = keys.data
    words: NDArray[np.uint32] = np.ndarray((max(len(octets) - 3, 0),), "<u4", octets, strides=(1,))
    chosen: Any = slice(None)
    for step in range(int(steps.max(initial=0))):
        if step >= int(steps.min()):
            chosen = np.flatnonzero(steps > step)
        word = words[starts[chosen] + 4 * step] * _M
        word ^= word >> np.uint32(24)
        hashes[chosen] = hashes[chosen] * _M ^ word * _M
    _hash_tails(hashes, octets, starts + (steps << 2), sizes & 3)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _hash_tails(hashes: "Hashes", octets: "NDArray[np.uint8]", at: "Column", rest: "Column") -> None:
    """Hash the last one to three bytes of keys whose length is not a multiple of four."""
    for index in (2, 1, 0):
        chosen = np.flatnonzero(rest > index)
        hashes[chosen] ^= octets[at[chosen] + index].astype(np.uint32) << np.uint32(8 * index)
    chosen = np.flatnonzero(rest > 0)
    hashes[chosen] *= _M


def key_partitions(keys: BinaryColumn, count: int) -> "NDArray[np.int32]":
    """Return the partition of each key, out of `count`."""
    return ((murmur2_column(keys) & POSITIVE) % np.uint32(count)).astype(np.int32)


def choose_partitions(
    accumulator: "RecordAccumulator",
    route: "TopicRoute",
    rows: "OutgoingColumns",
    sizes: "Column",
    given: "NDArray[np.int32] | None",
) -> "NDArray[np.int32]":
    """Return a partition for each row: the given one (unless -1), else by key, else the sticky partitions."""
    settings = accumulator.settings
    chosen = np.full(len(rows), -1, np.int32) if given is None else given.astype(np.int32)
    is_open = chosen < 0
    if not is_open.any():
        return chosen
    if settings.partitioner is not None:
        return _call_partitioner(accumulator, route, rows, chosen)
    if rows.keys is not None and not settings.ignores_keys:
        has_key = is_open if rows.keys.nulls is None else is_open & ~rows.keys.nulls
        hashed = key_partitions(rows.keys, route.count)
        if has_key.all():
            return hashed
        chosen = np.where(has_key, hashed, chosen)
        is_open &= ~has_key
    at = np.flatnonzero(is_open)
    if len(at):
        chosen[at] = accumulator.assign_unkeyed(route, np.cumsum(sizes[at]))
    return chosen


def _call_partitioner(
    accumulator: "RecordAccumulator", route: "TopicRoute", rows: "OutgoingColumns", chosen: "NDArray[np.int32]"
) -> "NDArray[np.int32]":
    """Call the user's partitioner for each row without a partition."""
    partitioner = accumulator.settings.partitioner
    assert partitioner is not None
    nothing: list[bytes | None] = [None] * len(rows)
    keys = nothing if rows.keys is None else rows.keys.tolist()
    values = nothing if rows.values is None else rows.values.tolist()
    for index in np.flatnonzero(chosen < 0).tolist():
        partition = partitioner(route.name, keys[index], values[index], route.count)
        if not 0 <= partition < route.count:
            raise ValueError(f"partitioner returned {partition}, but the topic has {route.count} partitions")
        chosen[index] = partition
    return chosen


# Batches


def split_rows(
    rows: OutgoingColumns, bounds: "NDArray[np.int64]", bytes_max: int = CHUNK_BYTES_MAX
) -> Iterator[tuple[int, int]]:
    """Yield start and end row of chunks of about `bytes_max` bytes."""
    running = np.cumsum(bounds)
    start, count = 0, len(rows)
    while start < count:
        before = int(running[start - 1]) if start else 0
        end = min(max(int(running.searchsorted(before + bytes_max, "right")), start + 1), count)
        yield start, end
        start = end


def encode_rows(
    accumulator: "RecordAccumulator",
    route: "TopicRoute",
    rows: OutgoingColumns,
    given: "NDArray[np.int32] | None",
) -> list[EncodedBatch]:
    """Encode rows into batches. Raises RecordTooLargeError for a record that exceeds the limits."""
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
