"""Records of a segment for compaction: windows of complete batches, with the needed fields in columns.

Python code runs once per batch; NumPy processes all records of a window at once.
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
"""Upper limit of a decompressed batch."""

_unpack = HEADER.unpack_from
_make = BatchHeader._make


class CorruptSegment(Exception):
    """The segment cannot be cleaned: it contains a corrupt batch, or bytes that are not a batch."""


class Window(NamedTuple):
    """Consecutive complete batches of a segment."""

    data: memoryview
    batches: list[tuple[int, BatchHeader]]
    """Position in the data, and header, of each batch."""


def read_windows(file: File, size: int, *, window_bytes: int = WINDOW_BYTES) -> Iterator[Window]:
    """Yield all batches of a segment. Raises CorruptSegment if there are other bytes, or a checksum is wrong."""
    position = 0
    while position < size:
        data = memoryview(file.read_at(position, min(window_bytes, size - position)))
        if len(data) < RECORDS_AT:
            raise CorruptSegment(f"{file.path}: {len(data)} bytes at position {position} are not a batch")
        first_size = _unpack(data)[1] + LENGTH_OVERHEAD
        if len(data) < first_size <= size - position:
            data = memoryview(file.read_at(position, first_size))
        window = Window(data, _batches(data, position, size, file.path))
        at, last = window.batches[-1]
        position += at + last.size
        yield window


def _batches(data: memoryview, position: int, file_size: int, path: str) -> list[tuple[int, BatchHeader]]:
    """Return the complete batches in the data, of which there is at least one."""
    batches: list[tuple[int, BatchHeader]] = []
    at, end = 0, len(data)
    while end - at >= RECORDS_AT:
        fields = _unpack(data, at)
        after = at + fields[1] + LENGTH_OVERHEAD
        if fields[1] < LENGTH_MIN or fields[3] != MAGIC or position + after > file_size:
            raise CorruptSegment(f"{path}: no batch at position {position + at}: length {fields[1]}, magic {fields[3]}")
        if after > end:
            break
        if crc32c(data[at + ATTRIBUTES_AT : after]) != fields[4]:
            raise CorruptSegment(f"{path}: wrong checksum at position {position + at}")
        batches.append((at, _make(fields)))
        at = after
    if not batches:
        raise CorruptSegment(f"{path}: no complete batch at position {position}")
    return batches


class Payloads(NamedTuple):
    """The decompressed records of some batches, in one buffer with padding at its end."""

    octets: Octets
    starts: Column
    ends: Column
    counts: Column
    base_offsets: Column


def read_payloads(window: Window, chosen: Sequence[int]) -> Payloads:
    """Decompress the batches with these indexes. Uncompressed records are read from the window in place."""
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
                raise CorruptSegment(f"batch at offset {header.base_offset}: {error}") from error
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
    """The records of a window, in order; positions are in its buffer."""

    starts: Column
    attributes_at: Column
    """After the length."""
    ends: Column
    offsets: Column
    time_deltas: Column
    after_time: Column
    """Position of the offset delta."""
    after_offset: Column


def read_rows(found: Payloads) -> Rows:
    """Locate the records. Raises CorruptSegment if they do not fill their batches."""
    octets = found.octets
    try:
        starts = find_starts(memoryview(octets), found.starts, found.ends, found.counts)  # type: ignore[arg-type]
        head = read_head_fields(octets, starts)
    except MalformedMessage as error:
        raise CorruptSegment(f"batches from offset {int(found.base_offsets[0])} on: {error}") from error
    offsets = np.repeat(found.base_offsets, found.counts) + head.offset_deltas
    return Rows(
        starts, head.attributes_at, head.ends, offsets, head.timestamp_deltas, head.after_timestamp, head.after_offset
    )


def locate_keys(octets: Octets, after_offset: Column, ends: Column) -> tuple[Column, Column, Column]:
    """Return the sizes of keys (-1 for null), their positions, and the positions after them."""
    try:
        sizes, starts, after = skip_bytes(octets, after_offset)
    except MalformedMessage as error:
        raise CorruptSegment(str(error)) from error
    if bool((after >= ends).any()):
        raise CorruptSegment("a key exceeds its record")
    return sizes, starts, after


def are_tombstones(octets: Octets, after_key: Column) -> NDArray[np.bool_]:
    """Return which records have a null value."""
    try:
        sizes, _ = read_varints(octets, after_key)
    except MalformedMessage as error:
        raise CorruptSegment(str(error)) from error
    tombstones: NDArray[np.bool_] = sizes < 0
    return tombstones
