"""Scanning the batches of a segment file in windows, for opening, recovery, compaction and searches by time."""

from collections.abc import Iterator

from ottla.base.ports import File
from ottla.wire.batches import HEADER, LENGTH_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader

WINDOW_BYTES = 1 << 20
LENGTH_MIN = RECORDS_AT - LENGTH_OVERHEAD

_unpack = HEADER.unpack_from
_make = BatchHeader._make


def scan_fields(
    file: File, position: int, end: int, *, window_bytes: int = WINDOW_BYTES
) -> Iterator[tuple[int, tuple[int, ...], memoryview]]:
    """Yield position, header fields and bytes of each batch from a position on, up to the first incomplete batch."""
    while end - position >= RECORDS_AT:
        window = memoryview(file.read_at(position, min(window_bytes, end - position)))
        at, available = 0, len(window)
        if available < RECORDS_AT:
            return  # the file is shorter than `end`
        while available - at >= RECORDS_AT:
            fields = _unpack(window, at)
            length = fields[1]
            size = length + LENGTH_OVERHEAD
            if length < LENGTH_MIN or fields[3] != MAGIC or position + at + size > end:
                return
            if at + size > available:
                if at:
                    break
                window = memoryview(file.read_at(position, size))  # a batch that is larger than a window
                available = len(window)
                if available < size:
                    return
            yield position + at, fields, window[at : at + size]
            at += size
        position += at


def scan_batches(
    file: File, position: int, end: int, *, window_bytes: int = WINDOW_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Like `scan_fields`, with named header fields."""
    for at, fields, batch in scan_fields(file, position, end, window_bytes=window_bytes):
        yield at, _make(fields), batch


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Like `scan_batches`, without the bytes."""
    for at, fields, _ in scan_fields(file, position, end):
        yield at, _make(fields)
