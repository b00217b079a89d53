"""Where each record of a batch starts.

Each record begins with its length, so each start follows from the one before. They are found by three methods, all
exact: a run of records of one length is compared as a slice with a step (`_append_runs`); in large batches all starts
are guessed at once with NumPy, then proved (`guess_boundaries`); the rest is followed in Python, 0.07 µs per record.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ottla.wire.column_fields import read_varints
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_scan import RECORD_BYTES_MIN
from ottla.wire.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ottla.base.ports import Buffer

    Column = NDArray[Any]

RUN_MIN = 16
"""Shorter runs of records of one length are followed one by one."""
GUESS_MIN = 300
"""Records from which on guessing is faster."""
GUESS_BYTES_MAX = 16 << 20
"""Guessing takes three times the memory of the batch."""
WRONG_GUESSES_SHARE = 16
"""Up to one wrong guess in so many records is excluded (1 µs each); if there are more, following the lengths is faster.
Random values have one in 100 to 300 records, values with a zero in front (Confluent's format) one or more in each."""
WRONG_GUESSES_MIN = 8
SPARSE_BYTES_MIN = 384 << 10
"""Flags from which on it is faster to test eight at a time."""
NO_SIZE = 1 << 40
"""Size of a record whose first bytes are not a valid length: nothing ends there."""
_SIZES = tuple(NO_SIZE if low & 1 else 1 + (low >> 1) if low < 128 else 2 + (low - 128 >> 1) for low in range(256))
"""Size of a record with its length, by the first byte. A second byte adds 64 times its value."""


class FastPathMiss(Exception):
    """These records must be read by a slower, more general function."""


def find_starts(data: Buffer, starts: Column, ends: Column, counts: Column) -> Column:
    """Return the positions of all records of batches whose payloads are at `starts` to `ends` of the data.

    Raises MalformedMessage if the records do not fill their batch.
    """
    import numpy as np

    is_single = counts == 1
    if not is_single.any():
        return follow_lengths(data, starts.tolist(), ends.tolist(), counts.tolist())
    # Batches of one record are checked together, without a Python loop: they are common in topics of low rates.
    sizes, after = read_varints(np.frombuffer(data, np.uint8), starts[is_single])
    if (after + sizes != ends[is_single]).any():
        raise MalformedMessage("the only record of a batch does not end where its batch ends")
    if is_single.all():
        return starts
    others = ~is_single
    rows = np.repeat(is_single, np.maximum(counts, 0))
    found = np.empty(len(rows), np.int64)
    found[rows] = starts[is_single]
    found[~rows] = follow_lengths(data, starts[others].tolist(), ends[others].tolist(), counts[others].tolist())
    return found


def follow_lengths(
    data: Buffer,
    starts: Sequence[int],
    ends: Sequence[int],
    counts: Sequence[int],
    *,
    may_guess: bool = True,
) -> Column:
    """Return what `find_starts` returns, batch by batch: by following lengths, or faster if there are many records."""
    import numpy as np

    found, octets, sizes = array("q"), bytes(data), _SIZES
    append = found.append
    try:
        for position, end, count in zip(starts, ends, counts, strict=True):
            if count <= 0:
                continue
            if count * RECORD_BYTES_MIN > end - position:
                raise MalformedMessage(f"{count} records do not fit into {end - position} bytes")
            at, left = position, count
            if count >= RUN_MIN:
                at, left = _append_runs(np, octets, position, end, count, found, may_guess=may_guess)
            for _ in repeat(None, left):
                append(at)
                low = octets[at]
                if low < 128:
                    at += sizes[low]
                elif (high := octets[at + 1]) < 128:
                    at += sizes[low] + (high << 6)
                else:
                    size, at = read_varint(octets, at)
                    at += size if size >= 0 else NO_SIZE
            if at != end:
                raise MalformedMessage(f"the records of a batch end {abs(end - at)} bytes away from its end")
    except IndexError:
        raise MalformedMessage("a record extends past the end of its batch") from None
    return np.frombuffer(found, np.int64) if found else np.empty(0, np.int64)


def _append_runs(
    np: Any, data: bytes, position: int, end: int, count: int, found: array[int], *, may_guess: bool
) -> tuple[int, int]:
    """Append the starts that need not be followed one by one; return where the rest begins, and how many records it
    has."""
    while count >= RUN_MIN:
        low, high = data[position], data[position + 1]
        size = _SIZES[low] if low < 128 else _SIZES[low] + (high << 6)
        run = count if low < 128 or high < 128 else 0
        for at in range(position, position + (1 if low < 128 else 2)):
            column = data[at : min(at + run * size, end) : size]
            run = len(column) - len(column.lstrip(column[:1]))
        if run >= RUN_MIN:
            found.frombytes(np.arange(position, position + run * size, size).tobytes())
            position += run * size
            count -= run
            continue
        if may_guess and count >= GUESS_MIN:
            try:
                bounds = guess_boundaries(np, memoryview(data)[position:end], count)
            except FastPathMiss:
                break
            found.frombytes((bounds[:-1] + position).tobytes())
            return end, 0
        break
    return position, count


def guess_boundaries(np: Any, data: bytes | memoryview, record_count: int, *, same_timestamp: bool = False) -> Column:
    """Return where each record starts, and where the last one ends.

    Before a record is the header count of the record before it, and after its length are its attributes; both are 0 as
    a rule. So every position between two such zeros is a guess. A guess is right if it is where the one before it ends:
    from the first record on there is only one chain, so a complete chain of `record_count` records is the same that
    following the lengths would find. Raises FastPathMiss if there is none. `same_timestamp` is a hint that all
    timestamp deltas are 0, which excludes more wrong guesses.
    """
    end = len(data)
    if not RECORD_BYTES_MIN * record_count <= end <= GUESS_BYTES_MAX:
        raise FastPathMiss
    flags = np.empty((end + 8) & -8, np.bool_)
    np.logical_not(np.frombuffer(data, np.uint8), flags[1 : end + 1])  # whether the byte before is 0
    if same_timestamp:  # after the length come the attributes and the timestamp delta
        flags[: end - 3] &= flags[3:end] & (flags[2 : end - 1] | flags[4 : end + 1])
    else:
        flags[: end - 2] &= flags[2:end] | flags[3 : end + 1]
    flags[1:RECORD_BYTES_MIN] = flags[end - 3 :] = False
    flags[0] = flags[end] = True
    bounds = flags.nonzero()[0] if end < SPARSE_BYTES_MIN else _positions_of_sparse(np, flags)
    wrong = len(bounds) - 1 - record_count
    if not 0 <= wrong <= record_count // WRONG_GUESSES_SHARE + WRONG_GUESSES_MIN:
        raise FastPathMiss
    sizes = prefix_sizes(np)[np.ndarray(end - 1, "<u2", data, 0, (1,))[bounds[:-1]]]
    gaps = bounds[1:] - bounds[:-1]
    if gaps.tobytes() != sizes.tobytes():
        bounds = _follow(np, bounds, sizes, gaps)
    if len(bounds) != record_count + 1:
        raise FastPathMiss
    return bounds


def is_guessable(np: Any, data: bytes | memoryview, bounds: Column) -> bool:
    """Return whether boundaries found by following lengths have what `guess_boundaries` proves of its own.

    This is: lengths of one or two bytes, no longer than needed, and a zero (the header count) before each boundary.
    """
    if np.frombuffer(data, np.uint8)[bounds[1:] - 1].any():
        return False
    prefixes = np.ndarray(len(data) - 1, "<u2", data, 0, (1,))[bounds[:-1]]
    return bool((prefix_sizes(np)[prefixes] == bounds[1:] - bounds[:-1]).all())


def _follow(np: Any, bounds: Column, sizes: Column, gaps: Column) -> Column:
    """Return the guesses on the chain that begins with the first one: each starts where the one before it ends."""
    on_chain = np.ones(len(bounds), np.bool_)
    reached = 0
    for index in (gaps != sizes).nonzero()[0].tolist():
        if index < reached:
            continue  # not on the chain itself
        record_end = bounds[index] + sizes[index]
        reached = int(bounds.searchsorted(record_end))
        if reached == len(bounds) or bounds[reached] != record_end:
            raise FastPathMiss
        on_chain[index + 1 : reached] = False
    return bounds[on_chain]  # type: ignore[no-any-return]


def _positions_of_sparse(np: Any, flags: Column) -> Column:
    """Return `flags.nonzero()[0]`, in half the time if few are set: eight are tested at a time, and rarely two of those
    are set."""
    eights = flags.view(np.uint64)
    at = (eights != 0).nonzero()[0]
    found = eights[at]
    positions = []
    while len(found):
        rest = found & (found - 1)
        # The lowest set bit is a power of two. As a float its exponent, divided by eight, is the index of its byte.
        exponents = (found ^ rest).astype(np.float64).view(np.int64)
        exponents >>= 52 + 3
        exponents -= 1023 >> 3
        positions.append((at << 3) + exponents)
        more = rest.nonzero()[0]
        at, found = at[more], rest[more]
    together: Column = np.concatenate(positions) if positions else at
    together.sort(kind="stable")
    return together


@lru_cache(1)
def prefix_sizes(np: Any) -> Column:
    """Return the size of something that begins with its length, including the length, by its first two bytes
    (little-endian).

    `NO_SIZE` if the length is negative, takes three bytes, or takes two bytes though one is enough.
    """
    pairs = np.arange(1 << 16)
    low, high = pairs & 0xFF, pairs >> 8
    sizes: Column = np.where(low < 128, 1 + (low >> 1), 2 + ((low & 127 | high << 7) >> 1))
    sizes[(low & 1 != 0) | (low > 127) & ((high == 0) | (high > 127))] = NO_SIZE
    return sizes
