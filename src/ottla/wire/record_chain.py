"""The starts of the records of a large batch, found with NumPy instead of one after the other.

Each record says how long it is, so that each start follows from the one before: a chain that Python walks at 0.13 µs a link. But starts
can also be guessed, all of them at once: before one stands the header count of the last record and behind its length the record's
attributes, both 0 as a rule. Guesses prove nothing. That every guess is where the one before it ends does: from the first record on there
is only one chain, and whoever finds it has walked it. Where the guesses do not hold `Unusual` is raised, and others read byte by byte.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ottla.wire.record_walk import RECORD_BYTES_MIN, Extent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

BYTES_MAX = 16 << 20
"""More than that is not looked through at once: guessing takes three times the memory."""
BYTES_MIN = 16
FLAGS_MIN = 1 << 16
"""From so many bytes on it pays to look at eight of their flags together."""
TABLE_SIZES = (256, 1 << 10, 1 << 15)
"""Of the tables of what records look like. Batches of more records are not compared with them."""
STEPPED_MAX = 1000
"""Among more guesses than this so many are wrong that it pays to sort most of them out first."""
WORD = 8
NO_SIZE = 1 << 40
"""What the table of sizes says of two bytes that are no length: nothing ends there."""
KEY_MAX = 63
"""Lengths of keys that take one byte."""


class Unusual(Exception):
    """Something that is read byte by byte instead."""


def find_starts(np: Any, data: bytes | memoryview, record_count: int) -> tuple[Column, Column, Column]:
    """Where each record starts, how many bytes it takes with its length, and the first eight of them; the last ends with the data."""
    end = len(data)
    if not BYTES_MIN <= end <= BYTES_MAX:
        raise Unusual
    starts, may_be_last = _guess(np, data)
    if not record_count <= len(starts) <= 2 * record_count + 64:
        raise Unusual
    words, sizes = _read_heads(np, data, starts)
    if len(starts) != record_count or not _is_chain(starts, sizes, end):
        is_kept = _follow(np, starts, sizes, may_be_last)
        starts, sizes, words = starts[is_kept], sizes[is_kept], words[is_kept]
        if len(starts) != record_count or not _is_chain(starts, sizes, end):
            raise Unusual
    return starts, sizes, words


def _read_heads(np: Any, data: bytes | memoryview, starts: Column) -> tuple[Column, Column]:
    """The first eight bytes of each record, and what they say of its size."""
    words = np.ndarray(len(data) - WORD + 1, "<u8", data, 0, (1,))[starts]
    return words, _sizes(np)[0].take(words.view(np.uint16)[::4])


def _is_chain(starts: Column, sizes: Column, end: int) -> bool:
    """Whether each record starts where the one before ends: the only proof that there is."""
    return (starts[1:] - starts[:-1]).tobytes() == sizes[:-1].tobytes() and bool(starts[-1] + sizes[-1] == end)


def _guess(np: Any, data: bytes | memoryview) -> tuple[Column, Column]:
    """Positions that look like the start of a record, and for each byte whether it may be the last of one."""
    end = len(data)
    flags = np.empty((end + 7) & -8, np.bool_)
    np.logical_not(np.frombuffer(data, np.uint8), flags[:end])
    np.logical_and(flags[: end - 3], flags[2 : end - 1] | flags[3:end], flags[: end - 3])
    flags[: RECORD_BYTES_MIN - 1] = flags[end - 3 :] = False
    last_bytes = flags.nonzero()[0] if end < FLAGS_MIN else _flagged(np, flags)
    starts = np.empty(len(last_bytes) + 1, np.int64)
    starts[0] = 0
    np.add(last_bytes, 1, starts[1:])
    flags[end - 1] = True
    return starts, flags[:end]


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


def _follow(np: Any, starts: Column, sizes: Column, may_be_last: Column) -> Column:
    """Which of the guesses are on the chain that begins with the first. Most that are not lead nowhere; the others are stepped over."""
    ends = starts + sizes
    if len(starts) > STEPPED_MAX:
        may_lead = ends <= len(may_be_last)
        may_lead[may_lead] = may_be_last[ends[may_lead] - 1]
        on_way = may_lead.nonzero()[0]
        starts, ends = starts[on_way], ends[on_way]
    else:
        on_way = np.arange(len(starts))
    is_kept = np.ones(len(starts), np.bool_)
    reached = 0
    for index in (ends[:-1] != starts[1:]).nonzero()[0].tolist():
        if index < reached:
            continue    # not on the chain itself
        reached = int(starts.searchsorted(ends[index]))
        is_kept[index + 1 : reached] = False
        if reached < len(starts) and starts[reached] != ends[index]:
            raise Unusual
    return on_way[is_kept]  # type: ignore[no-any-return]


def scan_plain(np: Any, data: bytes | memoryview, starts: Column, sizes: Column, words: Column) -> Extent:
    """Records without headers, keys all missing or all of one length, offset deltas 0, 1, 2 ..., timestamps close together.

    The fields before their values are compared with what those of such records are, all of them at once.
    """
    _, value_sizes, length_sizes, shifts = _sizes(np)
    firsts = words.view(np.uint8)[::8]
    lengths = length_sizes.take(firsts)
    words = words >> shifts.take(firsts)
    key = int(words[0]) >> 24 & 0xFF
    strict, loose, expected, field_sizes = _plain(np, key, len(starts))
    lowest = highest = 0
    if (words & strict).tobytes() != expected.tobytes():
        if (words & loose).tobytes() != expected.tobytes():
            raise Unusual
        deltas = words.view(np.uint8)[1::8]
        lowest, highest = int(np.minimum.reduce(deltas)) >> 1, int(np.maximum.reduce(deltas)) >> 1
    fields = field_sizes + lengths
    fields += value_sizes.take(np.ndarray(len(data) - 1, "<u2", data, 0, (1,))[starts + fields])
    if fields.tobytes() != sizes.tobytes() or data[-1]:
        raise Unusual
    return Extent(lowest, highest, key == 1, True)


@lru_cache(1)
def _sizes(np: Any) -> tuple[Column, Column, Column, Column]:
    """Of something that begins with its length: its size, and with a byte behind it, by its first two bytes; the length's, by its first.

    The last is the same in bits.
    """
    pairs = np.arange(1 << 16)
    low, high = pairs & 0xFF, pairs >> 8
    sizes = np.where(low < 128, 1 + (low >> 1), 2 + ((low & 127 | high << 7) >> 1))
    sizes[(low & 1 != 0) | (low > 127) & (high > 127)] = NO_SIZE
    length_sizes = 1 + (np.arange(1 << 8) >> 7)
    return sizes, sizes + 1, length_sizes, (8 * length_sizes).astype(np.uint64)


def _plain(np: Any, key: int, record_count: int) -> tuple[Column, Column, Column, Column]:
    """For each record: the bits to compare (those of the timestamp, or only that it is small), what they are, the size of those fields."""
    strict, loose, expected, field_sizes = _plain_table(np, key, _table_size(record_count))
    return strict[:record_count], loose[:record_count], expected[:record_count], field_sizes[:record_count]


def _table_size(record_count: int) -> int:
    for size in TABLE_SIZES:
        if record_count <= size:
            return size
    raise Unusual


@lru_cache(8)
def _plain_table(np: Any, key: int, count: int) -> tuple[Column, Column, Column, Column]:
    if key != 1 and (key & 1 or key >> 1 > KEY_MAX):
        raise Unusual
    twice = np.arange(count, dtype=np.uint64) << 1
    is_wide, is_wider = twice > 127, twice > 0x3FFF
    offsets = np.where(is_wider, twice & 127 | (twice >> 7 & 127) << 8 | twice >> 14 << 16 | 0x8080,
                       np.where(is_wide, twice & 127 | twice >> 7 << 8 | 0x80, twice))
    offset_sizes = 1 + is_wide.astype(np.uint64) + is_wider
    key_shifts = 16 + 8 * offset_sizes
    expected = offsets << 16 | np.uint64(key) << key_shifts
    strict = (np.uint64(0x100) << key_shifts) - 0x100
    loose = strict & ~np.uint64(0x7E00)
    return strict, loose, expected, (3 + offset_sizes + (0 if key == 1 else key >> 1)).astype(np.int64)
