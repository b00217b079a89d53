"""Classifies offset gaps between segments: compaction removed the records, or a power failure took a file or its end.

Recovery of a topic that is not compacted (any more) needs to know: records after lost ones must be deleted, records
after compacted ones must stay. Each compaction starts at the beginning of the log, fsyncs new segments before it swaps
them in, and then fsyncs the directory with the names of all segments. So nothing was lost up to the last segment with
traces of compaction, and the start of the next one.
"""

from collections.abc import Sequence

from ottla.base.ports import Disk
from ottla.log import offset_checkpoint_file
from ottla.log.batch_scan import scan_batches
from ottla.log.offset_checkpoint_file import CLEAN_OFFSETS_FILE
from ottla.log.segment import LogSegment
from ottla.wire.batches import has_valid_checksum


class OffsetGaps:
    """The gaps of one log. The first call scans its segments for traces of compaction."""

    def __init__(self, disk: Disk, directory: str, segments: Sequence[LogSegment]) -> None:
        self._disk = disk
        self._directory = directory
        self._segments = segments
        self._last_allowed: int | None = None

    def is_from_compaction(self, index: int) -> bool:
        """Whether compaction left the gap before the segment with this index."""
        if self._last_allowed is None:
            self._last_allowed = self._find_last_allowed()
        return index <= self._last_allowed

    def _find_last_allowed(self) -> int:
        """Return the index of the last segment that a gap may precede.

        Without an entry in the cleaner checkpoint, one trace anywhere allows gaps everywhere: keeping records that were
        not acknowledged does less harm than deleting acknowledged ones.
        """
        clean_to = _clean_to(self._disk, self._directory)
        known = sum(segment.base_offset <= clean_to for segment in self._segments) - 1 if clean_to is not None else 0
        for index in range(len(self._segments) - 1, max(known, 0) - 1, -1):
            if _was_compacted(self._segments[index]):
                return len(self._segments) if clean_to is None else index + 1
        return known


def _was_compacted(segment: LogSegment) -> bool:
    """Whether offsets are missing between its batches or within one. A segment written by appends alone has none
    missing.

    Only valid batches count as evidence: a torn batch may have a header with too few records.
    """
    next_offset = segment.base_offset
    file = segment.open_file()
    for _, header, batch in scan_batches(file, 0, file.size()):
        if header.base_offset != next_offset or header.record_count <= header.last_offset_delta:
            return header.base_offset >= next_offset and has_valid_checksum(batch)
        next_offset = header.last_offset + 1
    return False


def _clean_to(disk: Disk, directory: str) -> int | None:
    """Return the log's offset in the cleaner checkpoint, or None if there is none or the file is corrupt."""
    root, _, name = directory.rpartition("/")
    topic, _, index = name.rpartition("-")
    if not index.isdecimal():
        return None
    try:
        return offset_checkpoint_file.read(disk, f"{root}/{CLEAN_OFFSETS_FILE}").get((topic, int(index)))
    except ValueError:
        return None
