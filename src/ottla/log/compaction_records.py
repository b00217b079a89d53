"""A segment's records as compaction sees them: windows of whole batches, and the fields that it needs as columns.

What Python does here it does for each batch; what is done for each record NumPy does, for all records of a window at
once.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ottla.base.ports import File
from ottla.log.offset_map import PADDING, Column, Octets
from ottla.wire.batches import ATTRIBUTES_AT, HEADER, LENGTH_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader
from ottla.wire.column_fields import read_head_fields, read_varints, skip_bytes
from ottla.wire.compression import decompress
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_boundaries import find_starts

WINDOW_BYTES = 4 << 20
LENGTH_MIN = RECORDS_AT - LENGTH_OVERHEAD
OUTPUT_BYTES_MAX = 1 << 30
"""What one batch may become when it is decompressed."""

_unpack = HEADER.unpack_from
_make = BatchHeader._make


class CorruptSegment(Exception):
    """A segment that cannot be cleaned: it holds something that is not a batch, or one that was damaged."""


class Window(NamedTuple):
    """Whole batches of a segment that follow one another."""

    data: memoryview
    batches: list[tuple[int, BatchHeader]]
    """Where each one starts in the data, and its header."""


def windows(file: File, size: int, *, window_bytes: int = WINDOW_BYTES) -> Iterator[Window]:
    """All batches of a segment; CorruptSegment where there is something else, or a checksum is wrong."""
    position = 0
    while position < size:
        data = memoryview(file.read_at(position, min(window_bytes, size - position)))
        if len(data) < RECORDS_AT:
            raise CorruptSegment(f"{file.path} has {len(data)} bytes at {position}, which are no batch")
        first_size = _unpack(data)[1] + LENGTH_OVERHEAD
        if len(data) < first_size <= size - position:
            data = memoryview(file.read_at(position, first_size))
        window = Window(data, _batches(data, position, size, file.path))
        at, last = window.batches[-1]
        position += at + last.size
        yield window


def _batches(data: memoryview, position: int, file_size: int, path: str) -> list[tuple[int, BatchHeader]]:
    """Those that the data holds as a whole; there is one at least."""
    batches: list[tuple[int, BatchHeader]] = []
    at, end = 0, len(data)
    while end - at >= RECORDS_AT:
        fields = _unpack(data, at)
        after = at + fields[1] + LENGTH_OVERHEAD
        if fields[1] < LENGTH_MIN or fields[3] != MAGIC or position + after > file_size:
            raise CorruptSegment(f"{path} has no batch at {position + at}: length {fields[1]}, magic {fields[3]}")
        if after > end:
            break
        if crc32c(data[at + ATTRIBUTES_AT : after]) != fields[4]:
            raise CorruptSegment(f"{path} has a wrong checksum at {position + at}")
        batches.append((at, _make(fields)))
        at = after
    if not batches:
        raise CorruptSegment(f"{path} has no whole batch at {position}")
    return batches


class Payloads(NamedTuple):
    """The records of some batches, decompressed, in one buffer with room behind it."""

    octets: Octets
    starts: Column
    ends: Column
    counts: Column
    base_offsets: Column


def payloads(window: Window, chosen: Sequence[int]) -> Payloads:
    """The records of the batches with these indexes. Those that are not compressed stay where they are."""
    pieces: list[bytes | memoryview] = [window.data]
    starts, ends, counts, bases = [], [], [], []
    total = len(window.data)
    for index in chosen:
        at, header = window.batches[index]
        start, end = at + RECORDS_AT, at + header.size
        if header.codec:
            try:
                piece = decompress(header.codec, window.data[start:end], OUTPUT_BYTES_MAX)
            except (MalformedMessage, ValueError) as error:
                raise CorruptSegment(f"the batch at offset {header.base_offset}: {error}") from error
            pieces.append(piece)
            start, end = total, total + len(piece)
            total = end
        starts.append(start)
        ends.append(end)
        counts.append(header.record_count)
        bases.append(header.base_offset)
    pieces.append(PADDING)
    octets = np.frombuffer(b"".join(pieces), np.uint8)
    return Payloads(octets, *(np.array(column, np.int64) for column in (starts, ends, counts, bases)))


class Rows(NamedTuple):
    """The records of a window, in order."""

    starts: Column
    attributes_at: Column
    """Behind the length."""
    ends: Column
    offsets: Column
    time_deltas: Column
    after_time: Column
    """Where the field behind the timestamp stands, which is that of the offset."""
    after_offset: Column


def read_rows(found: Payloads) -> Rows:
    """CorruptSegment where the records do not fill their batches."""
    octets = found.octets
    try:
        starts = find_starts(
            memoryview(octets),  # type: ignore[arg-type]
            found.starts.tolist(),
            found.ends.tolist(),
            found.counts.tolist(),
        )
        head = read_head_fields(octets, starts)
    except MalformedMessage as error:
        raise CorruptSegment(f"in the batches from offset {int(found.base_offsets[0])} on: {error}") from error
    offsets = np.repeat(found.base_offsets, found.counts) + head.offset_deltas
    return Rows(
        starts, head.attributes_at, head.ends, offsets, head.timestamp_deltas, head.after_timestamp, head.after_offset
    )


def read_key_places(octets: Octets, after_offset: Column, ends: Column) -> tuple[Column, Column, Column]:
    """Sizes of keys (-1 where null), where they start, and where the fields behind them do."""
    try:
        sizes, starts, after = skip_bytes(octets, after_offset)
    except MalformedMessage as error:
        raise CorruptSegment(str(error)) from error
    if bool((after >= ends).any()):
        raise CorruptSegment("a key that is longer than its record")
    return sizes, starts, after


def are_tombstones(octets: Octets, after_key: Column) -> NDArray[np.bool_]:
    """Which values are null."""
    try:
        sizes, _ = read_varints(octets, after_key)
    except MalformedMessage as error:
        raise CorruptSegment(str(error)) from error
    tombstones: NDArray[np.bool_] = sizes < 0
    return tombstones
