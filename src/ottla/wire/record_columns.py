"""Stats of the records of a large batch, computed with NumPy for all of them together.

Three functions, from the fastest and most special to the most general: `collect_stats_uniform` (records of one form),
`collect_stats_plain` (records without headers, as most clients send them) and `_column_stats` (any records). See ADR 6
for what each of them saves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ottla.wire.column_fields import each_header, read_body_fields, read_head_fields
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_boundaries import FastPathMiss, follow_lengths, guess_boundaries, is_guessable, prefix_sizes
from ottla.wire.record_scan import RecordStats
from ottla.wire.uniform_records import collect_stats_uniform, may_be_uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

PLAIN_MIN = 50
"""Fewer records are read faster one by one, unless they are uniform."""
COLUMNS_MIN = 150
"""Fewer records that are not plain are read faster one by one."""
COLUMN_HEADERS_MAX = 32
"""Records with more headers are read one by one: a column for each header of a single record would be slow."""
TABLE_SIZES = (1 << 8, 1 << 10, 1 << 15)
"""Sizes of the tables of plain records. Batches of more records are not compared with them."""
KEY_SIZE_MAX = 63
"""Keys whose length takes one byte."""
WORD = 8


def collect_stats_large(
    data: bytes | memoryview, record_count: int, *, check_offsets: bool, same_timestamp: bool = False
) -> RecordStats | None:
    """Return the stats of the records of a batch; None if they should be read one by one, or are invalid.

    `same_timestamp` is a hint for speed only.
    """
    try:
        if may_be_uniform(data):
            stats = collect_stats_uniform(bytes(data), record_count)
            if stats is not None:
                return stats
        if record_count < PLAIN_MIN:
            return None
        return _stats_of_mixed(data, record_count, check_offsets=check_offsets, same_timestamp=same_timestamp)
    except (FastPathMiss, IndexError, MalformedMessage):
        return None


def _stats_of_mixed(
    data: bytes | memoryview, record_count: int, *, check_offsets: bool, same_timestamp: bool
) -> RecordStats:
    import numpy as np

    try:
        bounds = guess_boundaries(np, data, record_count, same_timestamp=same_timestamp)
        may_be_plain = True
    except FastPathMiss:
        if record_count < COLUMNS_MIN and data[-1]:
            raise  # the last record has headers, as all of them probably have
        starts = follow_lengths(data, (0,), (len(data),), (record_count,), may_guess=False)
        bounds = np.append(starts, len(data))
        may_be_plain = is_guessable(np, data, bounds)
    if may_be_plain:
        try:
            return collect_stats_plain(np, data, bounds)
        except (FastPathMiss, IndexError):
            may_be_plain = False
    if record_count < COLUMNS_MIN:
        raise FastPathMiss
    return _column_stats(np, data, bounds, check_offsets=check_offsets)


def _column_stats(np: Any, data: bytes | memoryview, bounds: Column, *, check_offsets: bool) -> RecordStats:
    octets, ends = np.frombuffer(data, np.uint8), bounds[1:]
    head = read_head_fields(octets, bounds[:-1])
    body = read_body_fields(octets, head.after_offset)
    counts, record_ends = body.header_counts, body.headers_at
    if int(counts.min()) < 0 or int(counts.max()) > COLUMN_HEADERS_MAX:
        raise FastPathMiss
    for header in each_header(octets, counts, record_ends):
        if int(header.key_sizes.min()) < 0:
            raise MalformedMessage("record header without a key")
        record_ends[header.rows] = header.ends
    if not (record_ends == ends).all():
        raise MalformedMessage("a record does not end where its fields end")
    return RecordStats(
        int(head.timestamp_deltas.min()),
        int(head.timestamp_deltas.max()),
        bool((body.key_sizes < 0).any()),
        not check_offsets or bool((head.offset_deltas == np.arange(len(ends))).all()),
    )


def collect_stats_plain(np: Any, data: bytes | memoryview, bounds: Column) -> RecordStats:
    """Return the stats of plain records: no headers, keys all null or all of one length, offset deltas 0, 1, 2, ...,
    timestamp deltas of one byte. Raises FastPathMiss if they are not.

    `bounds` are guessed, or guessable, which proves that the byte before each of them, the header count, is 0, and that
    lengths take one or two bytes, as few as possible. The eight bytes after the length, which hold all fields before
    the value, are compared with what they are in such records.
    """
    end, starts = len(data), bounds[:-1]
    sizes = bounds[1:] - starts
    fields = _length_sizes(np).take(sizes)
    words = np.ndarray(end - WORD + 1, "<u8", data, 0, (1,))[starts + fields]
    key = int(words[0]) >> 24 & 0xFF
    strict, loose, expected, field_sizes = _plain_words(np, key, len(starts))
    lowest = highest = 0
    if (words & strict).tobytes() != expected.tobytes():
        if (words & loose).tobytes() != expected.tobytes():
            raise FastPathMiss
        deltas = words.view(np.uint8)[1::8]
        lowest, highest = int(np.minimum.reduce(deltas)) >> 1, int(np.maximum.reduce(deltas)) >> 1
    fields += field_sizes
    fields += prefix_sizes(np).take(np.ndarray(end - 1, "<u2", data, 0, (1,))[starts + fields])
    fields += 1
    if fields.tobytes() != sizes.tobytes() or data[-1]:
        raise FastPathMiss
    return RecordStats(lowest, highest, key == 1, True)


@lru_cache(1)
def _length_sizes(np: Any) -> Column:
    """Return the size of a record's length by the size of the record including its length."""
    return 1 + (np.arange(2 + (1 << 13)) > 1 + 63)  # type: ignore[no-any-return]


@lru_cache(64)
def _plain_words(np: Any, key: int, record_count: int) -> tuple[Column, Column, Column, Column]:
    """Return for the first eight bytes after the length of each plain record: the bits to compare if all timestamp
    deltas are 0, and if they are only small; what those bits are; and how many bytes the fields before the value's
    length take."""
    for size in TABLE_SIZES:
        if record_count <= size:
            strict, loose, expected, field_sizes = _plain_table(np, key, size)
            return strict[:record_count], loose[:record_count], expected[:record_count], field_sizes[:record_count]
    raise FastPathMiss


@lru_cache(8)
def _plain_table(np: Any, key: int, count: int) -> tuple[Column, Column, Column, Column]:
    if key != 1 and (key & 1 or key >> 1 > KEY_SIZE_MAX):
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
