"""The starts of the records of a large batch, found with NumPy instead of one after the other.

Each record says how long it is, so that each start follows from the one before: a chain that Python walks at 0.13 µs a link. But starts
can also be guessed, all of them at once: before one stands the header count of the last record and behind its length the record's
attributes, both 0 as a rule. Guesses prove nothing. That every guess is where the one before it ends does: from the first record on there
is only one chain, and whoever finds it has walked it. Where the guesses do not hold `FastPathMiss` is raised, and others read byte by byte.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ottla.wire.record_scan import RECORD_BYTES_MIN, RecordStats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

BYTES_MAX = 16 << 20
"""More than that is not looked through at once: guessing takes three times the memory."""
BYTES_MIN = 16
FLAGS_MIN = 384 << 10
"""From so many bytes on it pays to look at eight of their flags together."""
TABLE_SIZES = (256, 1 << 10, 1 << 15)
"""Of the tables of what records look like. Batches of more records are not compared with them."""
STEPPED_MAX = 50
"""Where more guesses than this are wrong it pays to sort most of them out first."""
WORD = 8
NO_SIZE = 1 << 40
"""What the table of sizes says of two bytes that are no length: nothing ends there."""
KEY_MAX = 63
"""Lengths of keys that take one byte."""


class FastPathMiss(Exception):
    """Something that is read byte by byte instead."""


def find_bounds(np: Any, data: bytes | memoryview, record_count: int, *, is_one_time: bool = False) -> Column:
    """Where each record starts, and where the last one ends: with the data. Of records that are said to be of one time fewer guesses are
    wrong."""
    end = len(data)
    if not BYTES_MIN <= end <= BYTES_MAX:
        raise FastPathMiss
    bounds = _guess(np, data, is_one_time=is_one_time)
    if not record_count < len(bounds) <= 3 * record_count + 64:
        raise FastPathMiss
    sizes = _sizes(np)[0].take(np.ndarray(end - 1, "<u2", data, 0, (1,))[bounds[:-1]])
    gaps = bounds[1:] - bounds[:-1]
    if gaps.tobytes() != sizes.tobytes():
        if len(bounds) > record_count + STEPPED_MAX:
            bounds, sizes = _leading_on(np, data, bounds, sizes)
            gaps = bounds[1:] - bounds[:-1]
        bounds = _follow(np, bounds, sizes, gaps)
    if len(bounds) != record_count + 1:
        raise FastPathMiss
    return bounds


def _guess(np: Any, data: bytes | memoryview, *, is_one_time: bool) -> Column:
    """Positions that look like the start of a record, and the end of the data."""
    end = len(data)
    flags = np.empty((end + 8) & -8, np.bool_)
    np.logical_not(np.frombuffer(data, np.uint8), flags[1 : end + 1])  # whether the byte before is 0
    if is_one_time:  # attributes and timestamp behind a length of one or two bytes
        flags[: end - 3] &= flags[3:end] & (flags[2 : end - 1] | flags[4 : end + 1])
    else:
        flags[: end - 2] &= flags[2:end] | flags[3 : end + 1]
    flags[1:RECORD_BYTES_MIN] = flags[end - 3 :] = False
    flags[0] = flags[end] = True
    return flags.nonzero()[0] if end < FLAGS_MIN else _flagged(np, flags)


def _flagged(np: Any, flags: Column) -> Column:
    """As `flags.nonzero()[0]`, in half the time where few are set: eight are looked at together, and rarely two of those are set."""
    eights = flags.view(np.uint64)
    at = (eights != 0).nonzero()[0]
    found = eights[at]
    places = []
    while len(found):
        rest = found & (found - 1)
        places.append((at << 3) + _byte_of(np, found ^ rest))
        goes_on = rest.nonzero()[0]
        at, found = at[goes_on], rest[goes_on]
    together: Column = np.concatenate(places) if places else at
    together.sort(kind="stable")
    return together


def _byte_of(np: Any, powers: Column) -> Column:
    """Which of its eight bytes a power of two is in: the exponent of the same number as a float, over eight."""
    exponents: Column = powers.astype(np.float64).view(np.int64)
    exponents >>= 52 + 3
    exponents -= 1023 >> 3
    return exponents


def _leading_on(np: Any, data: bytes | memoryview, bounds: Column, sizes: Column) -> tuple[Column, Column]:
    """Without most of the guesses that are wrong: those that say that they end where no record can."""
    end, ends = len(data), bounds[:-1] + sizes
    leads = ends < end
    leads[leads] = np.frombuffer(data, np.uint8)[ends[leads] - 1] == 0
    leads |= ends == end
    return np.append(bounds[:-1][leads], end), sizes[leads]


def _follow(np: Any, bounds: Column, sizes: Column, gaps: Column) -> Column:
    """The guesses that are on the chain which begins with the first: each starts where the one before ends."""
    is_kept = np.ones(len(bounds), np.bool_)
    reached = 0
    for index in (gaps != sizes).nonzero()[0].tolist():
        if index < reached:
            continue  # not on the chain itself
        record_end = bounds[index] + sizes[index]
        reached = int(bounds.searchsorted(record_end))
        if reached == len(bounds) or bounds[reached] != record_end:
            raise FastPathMiss
        is_kept[index + 1 : reached] = False
    return bounds[is_kept]  # type: ignore[no-any-return]


def scan_plain(np: Any, data: bytes | memoryview, bounds: Column) -> RecordStats:
    """Records without headers, keys all missing or all of one length, offset deltas 0, 1, 2 ..., timestamps close together.

    The fields before their values are compared with what those of such records are, all of them at once.
    """
    end, starts = len(data), bounds[:-1]
    sizes = bounds[1:] - starts
    fields = _length_sizes(np).take(sizes)
    words = np.ndarray(end - WORD + 1, "<u8", data, 0, (1,))[starts + fields]
    key = int(words[0]) >> 24 & 0xFF
    strict, loose, expected, field_sizes = _plain(np, key, len(starts))
    lowest = highest = 0
    if (words & strict).tobytes() != expected.tobytes():
        if (words & loose).tobytes() != expected.tobytes():
            raise FastPathMiss
        deltas = words.view(np.uint8)[1::8]
        lowest, highest = int(np.minimum.reduce(deltas)) >> 1, int(np.maximum.reduce(deltas)) >> 1
    fields += field_sizes
    fields += _sizes(np)[1].take(np.ndarray(end - 1, "<u2", data, 0, (1,))[starts + fields])
    if fields.tobytes() != sizes.tobytes() or data[-1]:
        raise FastPathMiss
    return RecordStats(lowest, highest, key == 1, True)


@lru_cache(1)
def _sizes(np: Any) -> tuple[Column, Column]:
    """Of something that begins with its length, by its first two bytes; and with a byte behind it."""
    pairs = np.arange(1 << 16)
    low, high = pairs & 0xFF, pairs >> 8
    sizes: Column = np.where(low < 128, 1 + (low >> 1), 2 + ((low & 127 | high << 7) >> 1))
    sizes[(low & 1 != 0) | (low > 127) & (high > 127)] = NO_SIZE
    return sizes, sizes + 1


@lru_cache(1)
def _length_sizes(np: Any) -> Column:
    """Of the length that a record begins with, by the record's size. One that takes more bytes than it needs is not plain."""
    return 1 + (np.arange(2 + (1 << 13)) > 1 + 63)  # type: ignore[no-any-return]


@lru_cache(64)
def _plain(np: Any, key: int, record_count: int) -> tuple[Column, Column, Column, Column]:
    """For each record: the bits to compare (those of the timestamp, or only that it is small), what they are, the size of those fields."""
    strict, loose, expected, field_sizes = _plain_table(np, key, _table_size(record_count))
    return strict[:record_count], loose[:record_count], expected[:record_count], field_sizes[:record_count]


def _table_size(record_count: int) -> int:
    for size in TABLE_SIZES:
        if record_count <= size:
            return size
    raise FastPathMiss


@lru_cache(8)
def _plain_table(np: Any, key: int, count: int) -> tuple[Column, Column, Column, Column]:
    if key != 1 and (key & 1 or key >> 1 > KEY_MAX):
        raise FastPathMiss
    twice = np.arange(count, dtype=np.uint64) << 1
    is_wide, is_wider = twice > 127, twice > 0x3FFF
    offsets = np.where(
        is_wider,
        twice & 127 | (twice >> 7 & 127) << 8 | twice >> 14 << 16 | 0x8080,
        np.where(is_wide, twice & 127 | twice >> 7 << 8 | 0x80, twice),
    )
    offset_sizes = 1 + is_wide.astype(np.uint64) + is_wider
    key_shifts = 16 + 8 * offset_sizes
    expected = offsets << 16 | np.uint64(key) << key_shifts
    strict = (np.uint64(0x100) << key_shifts) - 0x100
    loose = strict & ~np.uint64(0x7E00)
    return strict, loose, expected, (3 + offset_sizes + (0 if key == 1 else key >> 1)).astype(np.int64)
