"""The records of a large batch, looked at column by column with NumPy. What it cannot read it leaves to `record_walk.step_through`.

Records of one batch are often of one form: the same lengths, so that they stand at equal distances. The first of such a run is read byte
by byte, and the others are compared with it in the few places that make the form. Where forms change all the time, `record_chain` finds
the starts of the records, or they are found one by one, which takes 0.13 µs each; their fields are then read as columns.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ottla.wire.record_chain import Unusual, find_starts, scan_plain
from ottla.wire.record_walk import NO_DELTA, Extent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Column = NDArray[Any]

RUN_MIN = 24
"""Shorter runs than this do not pay."""
SHORT_RUNS_MAX = 2
"""After so many in a row the batch is taken for one of many forms."""
ROWS_AT_FIRST = 64
ROWS_GROWTH = 16
"""A run is looked for among a few records first, as most of them may be of other forms, and among many more once those were of one."""
FORMS_MAX = 256
"""Remembered: their arrays cost as much to make as a run of a hundred records to compare."""
PLAIN_MIN = 50
"""Fewer records of many forms are read faster one by one, also where they are plain."""
COLUMNS_MIN = 200
"""And these where they are not."""
_SIZES = (*(1 + (low >> 1) for low in range(128)), *(2 + (low >> 1) for low in range(128)))
"""What the first byte of a length says of the size of a record, without what a second byte adds."""
PADDING = bytes(32)
"""Behind the records, so that the columns of the last of them may be read without asking where it ends."""
HEADERS_PER_RECORD_MAX = 32
VARINT_BITS_MAX = 35


def scan(data: bytes | memoryview, record_count: int, *, wants_offsets: bool) -> Extent | None:
    """All records of a batch; None where they are of no form that is known here, or wrong."""
    import numpy as np

    try:
        found = _scan_runs(np, data, record_count, wants_offsets=wants_offsets)
        if found is not None or record_count < PLAIN_MIN:
            return found
        try:
            return scan_plain(np, data, record_count)
        except (Unusual, IndexError):
            return None if record_count < COLUMNS_MIN else _scan_columns(np, bytes(data), record_count, wants_offsets=wants_offsets)
    except (Unusual, IndexError):
        return None


def _scan_runs(np: Any, data: bytes | memoryview, record_count: int, *, wants_offsets: bool) -> Extent | None:
    if not _starts_evenly(data):
        return None
    octets = np.frombuffer(data, np.uint8)
    lowest, highest = NO_DELTA, -NO_DELTA
    has_null_key, offsets_rise = False, True
    end = len(data)
    position = done = short_runs = 0
    rows_max = ROWS_AT_FIRST
    while done < record_count:
        form = _form_at(data, position)
        if form is None:
            return None
        size, delta_at, offset_at, key_at, is_key_null, places, masks = form
        row_count = min(record_count - done, (end - position) // size, rows_max)
        rows = octets[position : position + row_count * size].reshape(row_count, size)
        shapes = rows.take(places, axis=1) & masks
        packed = shapes.tobytes()
        if packed != packed[: len(places)] * row_count:
            row_count = int((shapes != shapes[0]).any(axis=1).argmax())
            rows = rows[:row_count]
            short_runs = short_runs + 1 if row_count < RUN_MIN else 0
            if short_runs > SHORT_RUNS_MAX:
                return None
        elif row_count == rows_max:
            rows_max *= ROWS_GROWTH
        deltas = _column(np, rows, delta_at, offset_at)
        if deltas.any():
            lowest, highest = min(lowest, int(deltas.min())), max(highest, int(deltas.max()))
        else:
            lowest, highest = min(lowest, 0), max(highest, 0)
        has_null_key = has_null_key or is_key_null
        if wants_offsets and offsets_rise:
            offsets = _column(np, rows, offset_at, key_at)
            offsets_rise = bool((offsets == np.arange(done, done + row_count)).all())
        position += row_count * size
        done += row_count
    return Extent(lowest, highest, has_null_key, offsets_rise) if position == end else None


def _starts_evenly(data: bytes | memoryview) -> bool:
    """Whether the first three records are of one length: a run is not looked for where that says that there is none."""
    length, at = _read(data, 0)
    size = at + length
    return size > 0 and data[size : size + at] == data[:at] == data[2 * size : 2 * size + at]


def _form_at(data: bytes | memoryview, start: int) -> tuple[int, int, int, int, bool, Column, Column] | None:
    """Where the fields of a record are, relative to its start, and which bits another must share to be of the same form."""
    length, at = _read(data, start)
    size = length + at - start
    delta_at = at + 1 - start
    at = _after(data, at + 1)
    offset_at = at - start
    at = _after(data, at)
    key_at = at - start
    key, at = _read(data, at)
    key_end = at - start
    at += max(key, 0)
    value_at = at - start
    value, at = _read(data, at)
    value_end = at - start
    at += max(value, 0)
    if at != start + size - 1 or data[at]:
        return None  # it has headers, or is wrong
    return size, delta_at, offset_at, key_at, key < 0, *_shape(size, delta_at, key_at, key_end, value_at, value_end)


@lru_cache(maxsize=FORMS_MAX)
def _shape(size: int, delta_at: int, key_at: int, key_end: int, value_at: int, value_end: int) -> tuple[Column, Column]:
    import numpy as np

    lengths = [*range(delta_at - 1), *range(key_at, key_end), *range(value_at, value_end), size - 1]
    # Of timestamps and offsets only the bit counts that says whether the number goes on.
    numbers = [*range(delta_at, key_at)]
    return np.array(lengths + numbers), np.array([0xFF] * len(lengths) + [0x80] * len(numbers), np.uint8)


def _read(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return value >> 1 ^ -(value & 1), position
        shift += 7
        if shift >= VARINT_BITS_MAX:
            raise Unusual


def _after(data: bytes | memoryview, position: int) -> int:
    while data[position] > 127:
        position += 1
    return position + 1


def _column(np: Any, rows: Bytes, start: int, end: int) -> Column:
    """The numbers that stand in the same places of all rows."""
    if end - start == 1:
        byte = rows[:, start]
        if not byte.any():
            return byte
        value = byte.astype(np.int16)
        return value >> 1 ^ -(value & 1)
    if end - start > 9:
        raise Unusual
    value = rows[:, start].astype(np.int64) & 127
    for at in range(start + 1, end):
        value |= (rows[:, at].astype(np.int64) & 127) << 7 * (at - start)
    return value >> 1 ^ -(value & 1)


def _scan_columns(np: Any, data: bytes, record_count: int, *, wants_offsets: bool) -> Extent:
    octets = np.frombuffer(data + PADDING, np.uint8)
    try:
        starts, sizes, _ = find_starts(np, data, record_count)
        ends = starts + sizes
    except (Unusual, IndexError):
        bounds = np.frombuffer(_find_bounds(data, record_count), np.int64)
        starts, ends = bounds[:-1], bounds[1:]
    sizes, at = _read_column(np, octets, starts)
    if (at + sizes != ends).any():
        raise Unusual  # a length that is negative
    deltas, at = _read_column(np, octets, at + 1)
    offsets, at = _read_column(np, octets, at)
    keys, at = _skip_column(np, octets, at, ends)
    _, at = _skip_column(np, octets, at, ends)
    at = _skip_headers(np, octets, at, ends)
    if not (at == ends).all():
        raise Unusual
    return Extent(int(deltas.min()), int(deltas.max()), bool((keys < 0).any()),
                  not wants_offsets or bool((offsets == np.arange(record_count)).all()))


def _find_bounds(data: bytes, record_count: int) -> array[int]:
    """Where each record starts, and where the last one ends."""
    position = 0
    bounds = array("q", (position,))
    append, sizes = bounds.append, _SIZES
    for _ in repeat(None, record_count):
        low = data[position]
        if low < 128:
            position += sizes[low]
        else:
            high = data[position + 1]
            if high < 128:
                position += sizes[low] + (high << 6)
            else:
                size, position = _read(data, position)
                if size < 0:
                    raise Unusual
                position += size
        append(position)
    if position != len(data):
        raise Unusual
    return bounds


def _read_column(np: Any, octets: Bytes, at: Column) -> tuple[Column, Column]:
    """A signed number of up to five bytes at each position, and the positions after them."""
    byte = octets[at]
    value = byte.astype(np.int64)
    at = at + 1
    goes_on = byte > 127
    if goes_on.any():
        value &= 127
        shift = 7
        while True:
            byte = octets[at]
            value |= np.where(goes_on, (byte & 127).astype(np.int64) << shift, 0)
            at = at + goes_on
            goes_on = goes_on & (byte > 127)
            if not goes_on.any():
                break
            shift += 7
            if shift >= VARINT_BITS_MAX - 7:
                raise Unusual
    return value >> 1 ^ -(value & 1), at


def _skip_column(np: Any, octets: Bytes, at: Column, ends: Column) -> tuple[Column, Column]:
    """Lengths, and the positions after what they count."""
    if (at >= ends).any():
        raise Unusual
    sizes, at = _read_column(np, octets, at)
    return sizes, at + np.maximum(sizes, 0)


def _skip_headers(np: Any, octets: Bytes, at: Column, ends: Column) -> Column:
    if (at >= ends).any():
        raise Unusual
    counts, at = _read_column(np, octets, at)
    most = int(counts.max())
    if most > HEADERS_PER_RECORD_MAX or counts.min() < 0:
        raise Unusual
    for index in range(most):
        chosen = np.flatnonzero(counts > index)
        sizes, places = _skip_column(np, octets, at[chosen], ends[chosen])
        if sizes.min() < 0:
            raise Unusual
        _, at[chosen] = _skip_column(np, octets, places, ends[chosen])
    return at
