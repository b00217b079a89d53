"""Walking the batches of a segment's file, in windows: what opening, rebuilding and searching by time have in common."""

from collections.abc import Iterator

from ottla.base.ports import File
from ottla.wire.batches import HEADER, LENGTH_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader

WINDOW_BYTES = 1 << 20
LENGTH_MIN = RECORDS_AT - LENGTH_OVERHEAD

_unpack = HEADER.unpack_from
_make = BatchHeader._make


def scan_batches(file: File, position: int, end: int, *, window_bytes: int = WINDOW_BYTES) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of each batch from a position on. Ends before the first bytes that cannot be a whole batch."""
    while end - position >= RECORDS_AT:
        window = memoryview(file.read_at(position, min(window_bytes, end - position)))
        at, available = 0, len(window)
        while available - at >= RECORDS_AT:
            header = _make(_unpack(window, at))
            size = header.length + LENGTH_OVERHEAD
            if header.length < LENGTH_MIN or header.magic != MAGIC or position + at + size > end:
                return
            if at + size > available:
                break
            yield position + at, header, window[at : at + size]
            at += size
        else:
            if available < RECORDS_AT:
                return  # the file is shorter than it was said to be
        if at == 0:
            size = HEADER.unpack_from(window, 0)[1] + LENGTH_OVERHEAD  # one batch that is larger than a window
            window = memoryview(file.read_at(position, size))
            if len(window) < size:
                return
            yield position, _make(_unpack(window, 0)), window
            at = size
        position += at


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """As `scan_batches`, where the records do not matter."""
    for at, header, _ in scan_batches(file, position, end):
        yield at, header
