"""Locating records in a segment, and reading cached ones with one `preadv2` into a buffer shared by all reads."""

from typing import NamedTuple

from ottla.base.ports import File
from ottla.log.segment import SCAN_BYTES, SCAN_HEADER_BYTES, LogSegment, scan
from ottla.wire.batches import LENGTH_OVERHEAD

CACHED_READ_BYTES_MAX = 256 << 10
"""Sending more with `sendfile` is cheaper."""
SKIPPED_BYTES_MAX = 64 << 10
"""Upper limit of bytes read before the requested batch, only because the index does not contain its position."""
TRUNCATE_BYTES_MIN = 32 << 10
"""Requests for less get their last incomplete batch: finding where it starts costs more than sending it.

Leaving it out took 4 to 7 % more CPU at 16 kB, and 7 to 13 % less at 64 kB."""
STEPS_MAX = 3
"""If more batches follow the last index entry, they are small, and sending an incomplete one is cheaper."""


class LogSlice(NamedTuple):
    """Bytes of a segment, to be read or sent unchanged. The file stays open as long as the slice exists."""

    file: File
    position: int
    size: int


def read_slice(
    segment: LogSegment,
    file: File,
    offset: int,
    max_bytes: int,
    limit_offset: int | None,
    end: int,
    min_one_message: bool,
    may_wait: bool,
) -> LogSlice | None:
    """Find what `PartitionLog.read` returns from one segment before position `end`. May be called in a worker.

    Raises NotCached if that needs the disk and `may_wait` is false.
    """
    read_at = file.read_at if may_wait else file.read_at_if_cached
    found = segment.locate(offset, read_at)
    if found is None:
        return None
    position, size = found
    if limit_offset is not None:
        limit = segment.locate(limit_offset, read_at)
        if limit is not None:
            end = limit[0]
    available = end - position
    if available <= 0:
        return None
    if max_bytes < available:
        available = max_bytes if max_bytes >= size else size if min_one_message else 0
    return LogSlice(file, position, available)


def read_cached(segment: LogSegment, offset: int, max_bytes: int) -> memoryview | None:
    """Return bytes from the batch that holds an offset.

    None if they are too many, not in the page cache or not found with one read, or if the batch exceeds `max_bytes`. A
    large read leaves out a last incomplete batch, which no client can use; so it also learns where the same reader's
    next request starts.
    """
    hint_offset, position = segment.next_read_hint
    skipped = 0
    if offset != hint_offset:
        if offset >= segment.tail_offset:
            found = segment.locate_in_tail(offset)
            if found is None:
                return None
            position = found[0]
        elif max_bytes > CACHED_READ_BYTES_MAX:
            return None
        else:
            position, last = (segment.offset_index or segment.offsets()).position_range(offset)
            skipped = SCAN_BYTES if last is None else last - position
            if skipped > SKIPPED_BYTES_MAX:
                return None
    size = segment.size - position
    requested = max_bytes if max_bytes < size else size
    if requested > CACHED_READ_BYTES_MAX:
        return None
    segment.was_used = True
    data = (segment.file or segment.open_file()).read_view_if_cached(position, min(requested + skipped, size))
    if data is None:
        return None
    at = 0
    while at + SCAN_HEADER_BYTES <= len(data):
        base, length, delta = scan(data, at)
        if base + delta >= offset:
            end = at + min(max_bytes, size - at)
            if not at + length + LENGTH_OVERHEAD <= end <= len(data):
                return None
            if end < size and max_bytes >= TRUNCATE_BYTES_MIN:
                end = _end_of_last_batch(segment, data, position, at, end)
            return data[at:end]
        at += length + LENGTH_OVERHEAD
    return None


def _end_of_last_batch(segment: LogSegment, data: memoryview, position: int, start: int, end: int) -> int:
    """Return where the last complete batch in `data[start:end]` ends, or `end` if that takes too many steps to find.

    `position` is the position of `data` in the segment.
    """
    at = (segment.offset_index or segment.offsets()).last_position_up_to(position + end) - position
    if at <= start:
        return end
    for _ in range(STEPS_MAX):
        if at + SCAN_HEADER_BYTES > end:
            return at
        base, length, _ = scan(data, at)
        following = at + length + LENGTH_OVERHEAD
        if following > end:
            segment.next_read_hint = base, position + at
            return at
        at = following
    return end
