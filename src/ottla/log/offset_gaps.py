"""Why offsets are missing between two segments: compaction removed the records, or a power cut took a file, or the end of one.

Which of them it was matters where a log is recovered whose topic is not compacted, or not any more: what follows lost records has no
ground, while what follows compacted ones must stay. Compaction leaves signs of itself. It begins at the start of the log each time, flushes
what it writes before that counts, and flushes the names of all segments, the next one's too, when it counts: up to the last segment that
bears a sign, and to the one after it, nothing can have been lost.
"""

from collections.abc import Sequence

from ottla.base.ports import Disk
from ottla.log import offset_checkpoint_file
from ottla.log.batch_scan import scan_batches
from ottla.log.offset_checkpoint_file import CLEAN_OFFSETS_FILE
from ottla.log.segment import LogSegment
from ottla.wire.batches import has_valid_checksum


class OffsetGaps:
    """Those of one log. Segments are read through for signs at the first gap, if there is one, and not again."""

    def __init__(self, disk: Disk, directory: str, segments: Sequence[LogSegment]) -> None:
        self._disk = disk
        self._directory = directory
        self._segments = segments
        self._compacted_to: int | None = None

    def is_of_compaction(self, at: int) -> bool:
        """Whether it was compaction that left the gap before a segment, given by its place among all."""
        if self._compacted_to is None:
            self._compacted_to = self._find()
        return at <= self._compacted_to

    def _find(self) -> int:
        """The last segment before which a gap is nothing to worry about.

        Where nobody has written down how far the log is clean, one sign anywhere must do for all of it: to keep what was not promised
        does less harm than to cut off what was.
        """
        clean_to = _clean_to(self._disk, self._directory)
        written = sum(segment.base_offset <= clean_to for segment in self._segments) - 1 if clean_to is not None else 0
        for at in range(len(self._segments) - 1, max(written, 0) - 1, -1):
            if _was_compacted(self._segments[at]):
                return len(self._segments) if clean_to is None else at + 1
        return written


def _was_compacted(segment: LogSegment) -> bool:
    """Whether offsets are missing within it, between its batches or in one of them. One that grew by appends alone has them all.

    What is not a whole, valid batch proves nothing: a header whose end did not reach the disk counts too few records.
    """
    next_offset = segment.base_offset
    file = segment.open_file()
    for _, header, batch in scan_batches(file, 0, file.size()):
        if header.base_offset != next_offset or header.record_count <= header.last_offset_delta:
            return header.base_offset >= next_offset and has_valid_checksum(batch)
        next_offset = header.last_offset + 1
    return False


def _clean_to(disk: Disk, directory: str) -> int | None:
    """What the checkpoint beside the log says of it; a checkpoint that cannot be read says nothing."""
    root, _, name = directory.rpartition("/")
    topic, _, index = name.rpartition("-")
    if not index.isdecimal():
        return None
    try:
        return offset_checkpoint_file.read(disk, f"{root}/{CLEAN_OFFSETS_FILE}").get((topic, int(index)))
    except ValueError:
        return None
