"""Where a log begins when it is opened: records before that were deleted, whether or not their files were."""

from ottla.base.ports import Disk
from ottla.log.batch_scan import scan_headers
from ottla.log.leader_epoch_cache import LeaderEpochCache
from ottla.log.log_loader import LoadedLog
from ottla.log.producer_state import ProducerStateManager, snapshot_path
from ottla.log.segment import LogSegment


def apply_log_start_offset(loaded: LoadedLog, start_offset: int, disk: Disk, directory: str, *, now_ms: int) -> None:
    """Give up the segments that end before the start. The last one stays, unless the whole log ends before it.

    A log may do so after a power cut took its end: it goes on at its start then, as no offset may be given twice.
    """
    segments = loaded.segments
    while len(segments) > 1 and segments[1].base_offset <= start_offset:
        _remove(segments.pop(0), disk, directory)
    if loaded.log_end_offset < start_offset:
        for segment in segments:
            _remove(segment, disk, directory)
        disk.fsync_directory(directory)
        segments[:] = [LogSegment(disk, segments[0].files, directory, start_offset, created_ms=now_ms)]
        segments[0].create()
        loaded.log_end_offset = start_offset
        loaded.epochs = LeaderEpochCache()
        loaded.producers = ProducerStateManager()
    loaded.epochs.truncate_from_start(start_offset)
    _complete_epochs(loaded, max(start_offset, segments[0].base_offset))


def _complete_epochs(loaded: LoadedLog, start_offset: int) -> None:
    """A beginning that a power cut took back was gone from the epochs already: what they lack stands in the batches."""
    known = loaded.epochs.entries()
    if not known or known[0][1] <= start_offset:
        return
    epochs = LeaderEpochCache()
    for segment in loaded.segments:
        if segment.base_offset < known[0][1]:
            for _, header in scan_headers(segment.open_file(), 0, segment.size):
                if header.leader_epoch > epochs.latest and header.leader_epoch <= known[0][0]:
                    epochs.assign(header.leader_epoch, header.base_offset)
    for epoch, start in known:
        epochs.assign(epoch, start)
    epochs.truncate_from_start(start_offset)
    loaded.epochs = epochs


def _remove(segment: LogSegment, disk: Disk, directory: str) -> None:
    segment.remove()
    if disk.exists(snapshot_path(directory, segment.base_offset)):
        disk.remove(snapshot_path(directory, segment.base_offset))
