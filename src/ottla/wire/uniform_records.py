"""Stats of uniform records: keys of one size, values of one size, no headers.

All bytes around their keys and values follow from the sizes of the first key and value. Each such byte is compared for
all records at once, as a slice with a step: 3 µs for 146 records of 100 bytes, without NumPy.
"""

from functools import lru_cache

from ottla.wire.record_scan import RecordStats
from ottla.wire.varint import read_varint, varint

RUN_STARTS = (0, 1 << 6, 1 << 13, 1 << 15)
"""The first records whose offset deltas take one byte, two, three: there the records grow by a byte. More records than
the last are not read here."""
LAYOUTS_MAX = 1024
"""Size of the cache of layouts."""
_SMALL_DELTAS = bytes(range(0, 128, 2))
"""Timestamp deltas of one byte that are not negative."""

_Layout = tuple[int, int, tuple[tuple[int, bytes], ...], tuple[bytes, ...]]
"""Size of a record, position of its timestamp delta, constant bytes with their positions, columns of the offset
deltas."""


def may_be_uniform(data: bytes | memoryview) -> bool:
    """Return whether the first three records have one size."""
    low = data[0]
    size = 1 + (low >> 1) if low < 128 else 2 + ((low & 127 | data[1] << 7) >> 1)
    return low == data[size] == data[2 * size]


def collect_stats_uniform(data: bytes, record_count: int) -> RecordStats | None:
    """Return the stats of uniform records with offset deltas 0, 1, 2, ... and timestamp deltas of one byte; else
    None."""
    _, position = read_varint(data, 0)
    key_size, position = read_varint(data, position + 3)
    value_size, _ = read_varint(data, position + max(key_size, 0))
    position = done = highest = 0
    lowest = 128
    for run_index, run_end in enumerate(RUN_STARTS[1:]):
        size, delta_at, constants, offset_columns = _layouts(key_size, value_size)[run_index]
        rows = min(run_end, record_count) - done
        end = position + rows * size
        for at, byte in constants:
            if data[position + at : end : size] != byte * rows:
                return None
        at = delta_at + position
        deltas = data[at:end:size]
        if deltas.strip(b"\0"):
            if deltas.translate(None, _SMALL_DELTAS):
                return None
            lowest, highest = min(lowest, min(deltas)), max(highest, max(deltas))
        else:
            lowest = 0
        for column in offset_columns:
            at += 1
            if data[at:end:size] != column[:rows]:
                return None
        position = end
        done += rows
        if done == record_count:
            return RecordStats(lowest >> 1, highest >> 1, key_size < 0, True) if end == len(data) else None
    return None


@lru_cache(LAYOUTS_MAX)
def _layouts(key_size: int, value_size: int) -> tuple[_Layout, ...]:
    return tuple(_layout(key_size, value_size, width) for width in range(1, len(RUN_STARTS)))


def _layout(key_size: int, value_size: int, width: int) -> _Layout:
    """Return the layout of records whose offset deltas take `width` bytes."""
    key, value = varint(key_size), varint(value_size)
    key_at = 2 + width
    value_at = key_at + len(key) + max(key_size, 0)
    header_at = value_at + len(value) + max(value_size, 0)
    length = varint(header_at + 1)
    constants = [
        (0, length),
        (len(length) + key_at, key),
        (len(length) + value_at, value),
        (len(length) + header_at, b"\0"),
    ]
    return (
        len(length) + header_at + 1,
        len(length) + 1,
        tuple((at + index, field[index : index + 1]) for at, field in constants for index in range(len(field))),
        _offset_columns(width),
    )


@lru_cache(len(RUN_STARTS))
def _offset_columns(width: int) -> tuple[bytes, ...]:
    deltas = [varint(delta) for delta in range(RUN_STARTS[width - 1], RUN_STARTS[width])]
    return tuple(bytes(delta[index] for delta in deltas) for index in range(width))
