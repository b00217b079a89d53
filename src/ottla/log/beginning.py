"""Where a log begins when it is opened: records before that were deleted, whether or not their files were."""

from ottla.base.ports import Disk
from ottla.log.epochs import LeaderEpochs
from ottla.log.open_files import OpenFiles
from ottla.log.producer_state import ProducerTable, snapshot_path
from ottla.log.recovery import LoadedLog
from ottla.log.segment import Segment


def begin_at(loaded: LoadedLog, start_offset: int, disk: Disk, directory: str, files: OpenFiles, *, now_ms: int) -> None:
    """Give up the segments that end before the start. The last one stays, unless the whole log ends before it.

    A log may do so after a power cut took its end: it goes on at its start then, as no offset may be given twice.
    """
    segments = loaded.segments
    while len(segments) > 1 and segments[1].base_offset <= start_offset:
        _remove(segments.pop(0), disk, directory)
    if loaded.log_end_offset < start_offset:
        for segment in segments:
            _remove(segment, disk, directory)
        segments[:] = [Segment(disk, files, directory, start_offset, created_ms=now_ms)]
        segments[0].create()
        loaded.log_end_offset = start_offset
        loaded.epochs = LeaderEpochs()
        loaded.producers = ProducerTable()
    loaded.epochs.truncate_from_start(start_offset)


def _remove(segment: Segment, disk: Disk, directory: str) -> None:
    segment.remove()
    if disk.exists(snapshot_path(directory, segment.base_offset)):
        disk.remove(snapshot_path(directory, segment.base_offset))
