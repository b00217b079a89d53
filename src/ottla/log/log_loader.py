"""Loading a log from its directory: segments, log end offset, indexes, leader epochs and producer state.

After a clean stop the files are trusted; only the tail of the last segment is checked. After a crash, segments before
the recovery point are trusted and the others are scanned: a torn tail is truncated, and indexes, leader epochs and
producer state are rebuilt. A closed segment with missing or invalid index files gets new ones.

May run in a worker: it opens its own files, and nothing else uses the log yet.
"""

from dataclasses import dataclass

from ottla.base.ports import Disk
from ottla.log import leader_epoch_cache, offset_index, time_index
from ottla.log.batch_scan import scan_batches, scan_headers
from ottla.log.compaction_segments import finish_swaps
from ottla.log.config import LONG_MAX, LogConfig
from ottla.log.file_cache import FileCache
from ottla.log.leader_epoch_cache import LeaderEpochCache
from ottla.log.offset_gaps import OffsetGaps
from ottla.log.producer_state import SNAPSHOT_SUFFIX, ProducerStateManager, snapshot_path, write_snapshot
from ottla.log.resumed_index import resume_offsets, resume_times
from ottla.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LogSegment
from ottla.log.segment_recovery import (
    OFFSETS_PER_SEGMENT_MAX,
    RecoveryInterrupted,
    ScanProgress,
    close,
    index_closed,
    recover_segment,
)

__all__ = ["OFFSETS_PER_SEGMENT_MAX", "LoadedLog", "ScanProgress", "RecoveryInterrupted", "load", "recover_segment"]

INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
OPEN_FILES_MAX = 4
"""While loading a log, which reads one segment after another."""


@dataclass(slots=True)
class LoadedLog:
    """A log as it was found in its directory."""

    segments: list[LogSegment]
    log_end_offset: int
    epochs: LeaderEpochCache
    producers: ProducerStateManager
    truncated_bytes: int
    is_flushed: bool = False
    """All records are on the disk."""
    is_saved: bool = False
    """The files are up to date: closing an unchanged log need not write any."""


def load(
    disk: Disk,
    directory: str,
    *,
    config: LogConfig,
    now_ms: int,
    clean: bool,
    recovery_point: int | None,
    progress: ScanProgress | None = None,
) -> LoadedLog:
    """Records before `recovery_point` were flushed. Without it, only the last segment is recovered after a crash."""
    files = FileCache(disk, open_files_max=OPEN_FILES_MAX)
    finish_swaps(disk, directory)
    names = _remove_leftovers(disk, directory)
    bases = sorted(int(name[:20]) for name in names if name.endswith(LOG_SUFFIX))
    segments = [LogSegment(disk, files, directory, base, created_ms=now_ms) for base in bases]
    if not segments:
        segment = LogSegment(disk, files, directory, 0, created_ms=now_ms)
        segment.create()
        return LoadedLog([segment], 0, leader_epoch_cache.LeaderEpochCache(), ProducerStateManager(), 0)
    for segment in segments:
        file = disk.open_read_only(segment.log_path)
        segment.size = file.size()
        file.close()
    last = segments[-1]
    last.is_writable = True
    loaded = _load_clean(disk, directory, config, names, segments) if clean else None
    if loaded is None:
        point = last.base_offset if clean or recovery_point is None else recovery_point
        loaded = _recover(disk, directory, config, names, segments, point, progress or ScanProgress())
    _remove_snapshots(disk, directory, names, loaded)
    last = loaded.segments[-1]
    first = last.first_header()
    last.first_timestamp = first.max_timestamp if first else None
    return loaded


def _load_clean(
    disk: Disk, directory: str, config: LogConfig, names: list[str], segments: list[LogSegment]
) -> LoadedLog | None:
    """Load the log from its files, or return None if those of the last segment are inconsistent."""
    existing = dict.fromkeys(names)
    for segment in segments[:-1]:
        stem = segment.stem.rpartition("/")[2]
        if stem + OFFSET_INDEX_SUFFIX not in existing or stem + TIME_INDEX_SUFFIX not in existing:
            index_closed(segment, config)
    end = _resume(segments[-1])
    if end is None:
        return None
    epochs = leader_epoch_cache.read_checkpoint(disk, directory)
    epochs.truncate_from_end(end)
    producers = _load_producers(disk, directory, names, segments, end, clean=True)
    return LoadedLog(segments, end, epochs, producers, 0, is_flushed=True, is_saved=True)


def _recover(
    disk: Disk,
    directory: str,
    config: LogConfig,
    names: list[str],
    segments: list[LogSegment],
    recovery_point: int,
    progress: ScanProgress,
) -> LoadedLog:
    """Scan the segments that may not have reached the disk.

    Recovery stops at the first torn segment or missing file: that segment becomes the active one and later segments are
    deleted. Offset gaps left by compaction are kept.
    """
    index = _first_untrusted(segments, recovery_point)
    trusted = segments[:index]
    for segment in trusted:
        if not segment.are_indexes_valid(config.index_interval_bytes):
            index_closed(segment, config)
    start = segments[index].base_offset
    epochs = leader_epoch_cache.read_checkpoint(disk, directory)
    epochs.truncate_from_end(start)
    _complete_epochs_from_end(epochs, trusted)
    producers = _load_producers(disk, directory, names, segments, start, clean=False)
    gaps = OffsetGaps(disk, directory, segments)
    truncated_bytes = 0
    while True:
        segment = segments[index]
        index += 1
        size = segment.size
        segment.is_writable = True
        segment.release()
        end = recover_segment(segment, config, epochs, producers, progress)
        truncated_bytes += size - segment.size
        if index == len(segments) or segment.size < size or not _is_next(config, gaps, segments, index, end):
            break
        close(segment)
        write_snapshot(disk, directory, segments[index].base_offset, producers)
    for later in segments[index:]:
        truncated_bytes += later.size
        later.remove()
    if index < len(segments):
        # Before anything is appended: after another crash, a reappearing segment could seem to continue the new
        # records.
        disk.fsync_directory(directory)
    loaded = LoadedLog(segments[:index], end, epochs, producers, truncated_bytes)
    if config.flush_messages < LONG_MAX:
        _flush(disk, directory, [segment for segment in loaded.segments if segment.base_offset >= start])
        loaded.is_flushed = True
    return loaded


def _first_untrusted(segments: list[LogSegment], recovery_point: int) -> int:
    """Return the index of the segment with the recovery point, or of one with a corrupt transaction index."""
    last = max((index for index, segment in enumerate(segments) if segment.base_offset <= recovery_point), default=0)
    corrupt = (index for index, segment in enumerate(segments[:last]) if not segment.is_transaction_index_valid())
    return next(corrupt, last)


def _is_next(config: LogConfig, gaps: OffsetGaps, segments: list[LogSegment], index: int, end: int) -> bool:
    """Whether a segment starts at `end`, where the one before it ends, or after a gap left by compaction."""
    base_offset = segments[index].base_offset
    return end == base_offset or config.compacted or (end < base_offset and gaps.is_from_compaction(index))


def _flush(disk: Disk, directory: str, segments: list[LogSegment]) -> None:
    """Fsync recovered records that may be in the page cache only, for topics that expose flushed records only."""
    for segment in segments:
        segment.open_file().fsync()
    disk.fsync_directory(directory)


def _remove_leftovers(disk: Disk, directory: str) -> list[str]:
    """Remove files of unfinished operations and indexes without a log. Return the names of the other files."""
    names = disk.list(directory)
    logs = {name[:20]: None for name in names if name.endswith(LOG_SUFFIX)}
    remaining = []
    for name in names:
        is_orphan = name.endswith(INDEX_SUFFIXES) and name[:20] not in logs
        if is_orphan or name.endswith(LEFTOVER_SUFFIXES):
            disk.remove(f"{directory}/{name}")
        else:
            remaining.append(name)
    return remaining


def _resume(segment: LogSegment) -> int | None:
    """Load the indexes of the last segment for further appends. Return its end offset, or None if they do not fit."""
    if not segment.has_index_files():
        return None
    size = segment.size
    offset_data, time_data = segment.map_index(OFFSET_INDEX_SUFFIX), segment.map_index(TIME_INDEX_SUFFIX)
    if not offset_index.is_valid_index(offset_data, size) or not time_index.is_valid_index(time_data):
        return None
    if not segment.is_transaction_index_valid():
        return None
    aborted = segment.aborted_transactions()
    offsets, times = resume_offsets(segment.base_offset, offset_data), resume_times(segment.base_offset, time_data)
    position = offsets.last_position()
    segment.start_indexes()
    segment.offset_index, segment.time_index, segment.aborted = offsets, times, aborted
    segment.max_timestamp, segment.max_timestamp_offset = times.last() or (-1, segment.base_offset)
    end = segment.base_offset
    expected = position
    for at, header in scan_headers(segment.open_file(), position, size):
        end = header.base_offset + header.last_offset_delta + 1
        if header.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = header.max_timestamp, end - 1
        expected = at + header.size
    segment.size = size
    segment.reset_tail(end)
    segment.last_entry_position = offsets.last_position()
    return end if expected == size else None


def _complete_epochs_from_end(epochs: LeaderEpochCache, closed: list[LogSegment]) -> None:
    """Add epochs that the checkpoint lacks, from the batches after the last segment that starts with a known epoch."""
    start = len(closed)
    while start > 0:
        start -= 1
        first = closed[start].first_header()
        if first is not None and first.leader_epoch <= epochs.latest:
            break
    for segment in closed[start:]:
        last = segment.last_header()
        if last is None or last.leader_epoch <= epochs.latest:
            continue  # epochs never decrease, so this segment has no new one
        for _, header in scan_headers(segment.open_file(), 0, segment.size):
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)


def _load_producers(
    disk: Disk, directory: str, names: list[str], segments: list[LogSegment], end: int, *, clean: bool
) -> ProducerStateManager:
    """Load the state before an offset from the newest valid snapshot and the batches after it."""
    producers = ProducerStateManager()
    start = end if clean else segments[0].base_offset  # no snapshot after a clean stop: there were no producers
    for offset in reversed(_snapshot_offsets(names)):
        if offset <= end and _restore(producers, disk.read(snapshot_path(directory, offset))):
            start = offset
            break
    for index, segment in enumerate(segments):
        segment_end = segments[index + 1].base_offset if index + 1 < len(segments) else end
        if segment_end <= start or segment.base_offset >= end:
            continue
        found = segment.locate(start, segment.open_file().read_at)
        for _, header, batch in scan_batches(segment.open_file(), found[0] if found else segment.size, segment.size):
            producers.on_batch(header, batch)
    return producers


def _remove_snapshots(disk: Disk, directory: str, names: list[str], loaded: LoadedLog) -> None:
    """Remove snapshots after the log end offset. As in Kafka, keep one for each segment, and the newest."""
    bases = {segment.base_offset: None for segment in loaded.segments}
    offsets = _snapshot_offsets(names)
    newest = max((offset for offset in offsets if offset <= loaded.log_end_offset), default=-1)
    for offset in offsets:
        if offset > loaded.log_end_offset or (offset not in bases and offset != newest):
            disk.remove(snapshot_path(directory, offset))


def _snapshot_offsets(names: list[str]) -> list[int]:
    return sorted(int(name[:20]) for name in names if name.endswith(SNAPSHOT_SUFFIX))


def _restore(producers: ProducerStateManager, snapshot: bytes) -> bool:
    """Return False if the snapshot is corrupt."""
    try:
        producers.restore(snapshot)
    except ValueError:
        return False
    return True


def apply_log_start_offset(loaded: LoadedLog, start_offset: int, disk: Disk, directory: str, *, now_ms: int) -> None:
    """Remove segments that end before the log start offset. The last one stays, unless the whole log ends before that
    offset.

    That happens if a power failure took the end of the log. It then restarts at the start offset, as no offset may be
    assigned twice.
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
    _complete_epochs_from_start(loaded, max(start_offset, segments[0].base_offset))


def _complete_epochs_from_start(loaded: LoadedLog, start_offset: int) -> None:
    """Restore epochs that were removed for a log start offset which a power failure then took back."""
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
