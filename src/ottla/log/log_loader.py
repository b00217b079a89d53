"""Opening a log: which segments there are, where the last one really ends, and what its indexes and producers are.

After a clean stop the files are believed, but for a look at the tail. After a crash what lies before the recovery point is believed too;
the segment that holds it and all that follow are read through: a torn tail is cut off, and indexes, leader epochs and producers are built
anew. A closed segment whose index files are missing or cannot be right gets new ones.

All of this may run in a worker: it uses files of its own, and nobody knows the log yet.
"""

from dataclasses import dataclass

from ottla.base.ports import Disk
from ottla.log import leader_epoch_cache as leader_epochs
from ottla.log import offset_index, time_index
from ottla.log.batch_scan import scan_batches, scan_headers
from ottla.log.compaction_swap import finish_swaps
from ottla.log.config import LONG_MAX, LogConfig
from ottla.log.file_cache import FileCache
from ottla.log.leader_epoch_cache import LeaderEpochCache
from ottla.log.offset_gaps import OffsetGaps
from ottla.log.producer_state import SNAPSHOT_SUFFIX, ProducerStateManager, snapshot_path, write_snapshot
from ottla.log.resumed_index import resume_offsets, resume_times
from ottla.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, LogSegment
from ottla.log.segment_recovery import (
    OFFSETS_PER_SEGMENT_MAX,
    Progress,
    RecoveryInterrupted,
    close,
    index_closed,
    recover_segment,
)

__all__ = ["OFFSETS_PER_SEGMENT_MAX", "LoadedLog", "Progress", "RecoveryInterrupted", "load", "recover_segment"]

INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
OPEN_FILES_MAX = 4
"""Of a log that is being opened: it looks at one segment after another."""


@dataclass(slots=True)
class LoadedLog:
    """What was found in a directory."""

    segments: list[LogSegment]
    log_end_offset: int
    epochs: LeaderEpochCache
    producers: ProducerStateManager
    truncated_bytes: int
    is_flushed: bool = False
    """All that was found is on the disk."""
    is_as_stored: bool = False
    """The files say what the log is: nothing needs to be written before something changes."""


def load(
    disk: Disk,
    directory: str,
    *,
    config: LogConfig,
    now_ms: int,
    clean: bool,
    recovery_point: int | None,
    progress: Progress | None = None,
) -> LoadedLog:
    """`recovery_point`: what lies before this offset was flushed. Without it the last segment alone is taken for doubtful after a crash."""
    files = FileCache(disk, open_files_max=OPEN_FILES_MAX)
    finish_swaps(disk, directory)
    names = _remove_leftovers(disk, directory)
    bases = sorted(int(name[:20]) for name in names if name.endswith(LOG_SUFFIX))
    segments = [LogSegment(disk, files, directory, base, created_ms=now_ms) for base in bases]
    if not segments:
        segment = LogSegment(disk, files, directory, 0, created_ms=now_ms)
        segment.create()
        return LoadedLog([segment], 0, leader_epochs.LeaderEpochCache(), ProducerStateManager(), 0)
    for segment in segments:
        file = disk.open_read_only(segment.log_path)
        segment.size = file.size()
        file.close()
    last = segments[-1]
    last.is_writable = True
    loaded = _load_clean(disk, directory, config, names, segments) if clean else None
    if loaded is None:
        point = last.base_offset if clean or recovery_point is None else recovery_point
        loaded = _recover(disk, directory, config, names, segments, point, progress or Progress())
    _remove_snapshots(disk, directory, names, loaded)
    last = loaded.segments[-1]
    first = last.first_header()
    last.first_timestamp = first.max_timestamp if first else None
    return loaded


def _load_clean(
    disk: Disk, directory: str, config: LogConfig, names: list[str], segments: list[LogSegment]
) -> LoadedLog | None:
    """The log as its files say it is; None where those of the last segment do not fit together."""
    there = dict.fromkeys(names)
    for segment in segments[:-1]:
        stem = segment.stem.rpartition("/")[2]
        if stem + OFFSET_INDEX_SUFFIX not in there or stem + TIME_INDEX_SUFFIX not in there:
            index_closed(segment, config)
    end = _resume(segments[-1])
    if end is None:
        return None
    epochs = leader_epochs.read_checkpoint(disk, directory)
    epochs.truncate_from_end(end)
    producers = _load_producers(disk, directory, names, segments, end, clean=True)
    return LoadedLog(segments, end, epochs, producers, 0, is_flushed=True, is_as_stored=True)


def _recover(
    disk: Disk,
    directory: str,
    config: LogConfig,
    names: list[str],
    segments: list[LogSegment],
    recovery_point: int,
    progress: Progress,
) -> LoadedLog:
    """Read through what may not have reached the disk.

    A torn segment becomes the last, and so does one whose successor's file is gone: what follows has no ground. OffsetGaps that compaction left
    stay.
    """
    doubtful = max(
        (index for index, segment in enumerate(segments) if segment.base_offset <= recovery_point), default=0
    )
    doubtful = next(
        (index for index, segment in enumerate(segments[:doubtful]) if not segment.is_transaction_index_valid()),
        doubtful,
    )
    believed = segments[:doubtful]
    for segment in believed:
        if not segment.are_indexes_valid(config.index_interval_bytes):
            index_closed(segment, config)
    # What was known of the doubtful segments is found anew, together with what their predecessors had not yet written down.
    start = segments[doubtful].base_offset
    epochs = leader_epochs.read_checkpoint(disk, directory)
    epochs.truncate_from_end(start)
    _catch_up(epochs, believed)
    producers = _load_producers(disk, directory, names, segments, start, clean=False)
    gaps = OffsetGaps(disk, directory, segments)
    truncated_bytes = 0
    while True:
        segment = segments[doubtful]
        doubtful += 1
        size = segment.size
        segment.is_writable = True
        segment.release()
        end = recover_segment(segment, config, epochs, producers, progress)
        truncated_bytes += size - segment.size
        if doubtful == len(segments) or segment.size < size or not _follows(config, gaps, segments, doubtful, end):
            break
        close(segment)
        write_snapshot(disk, directory, segments[doubtful].base_offset, producers)
    for later in segments[doubtful:]:
        truncated_bytes += later.size
        later.remove()
    if doubtful < len(segments):
        disk.fsync_directory(
            directory
        )  # before anything is appended: a segment that comes back could follow what is written next
    loaded = LoadedLog(segments[:doubtful], end, epochs, producers, truncated_bytes)
    if config.flush_messages < LONG_MAX:
        _flush(disk, directory, [segment for segment in loaded.segments if segment.base_offset >= start])
        loaded.is_flushed = True
    return loaded


def _follows(config: LogConfig, gaps: OffsetGaps, segments: list[LogSegment], at: int, end: int) -> bool:
    """Whether a segment goes on where the one before it ends, or after what compaction removed."""
    base_offset = segments[at].base_offset
    return end == base_offset or config.compacted or (end < base_offset and gaps.is_of_compaction(at))


def _flush(disk: Disk, directory: str, segments: list[LogSegment]) -> None:
    """Where records are shown only once they are on the disk, those that a killed process left in the page cache are put there first."""
    for segment in segments:
        segment.open_file().fsync()
    disk.fsync_directory(directory)


def _remove_leftovers(disk: Disk, directory: str) -> list[str]:
    """Files of work that was not finished, and indexes without a log."""
    names = disk.list(directory)
    logs = {name[:20]: None for name in names if name.endswith(LOG_SUFFIX)}
    kept = []
    for name in names:
        is_orphan = name.endswith(INDEX_SUFFIXES) and name[:20] not in logs
        if is_orphan or name.endswith(LEFTOVER_SUFFIXES):
            disk.remove(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept


def _resume(segment: LogSegment) -> int | None:
    """Take the indexes of the last segment from their files and go on from there; None where something does not fit."""
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
    segment.start_growing()
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
    segment.start_tail(end)
    segment.entry_position = offsets.last_position()
    return end if expected == size else None


def _catch_up(epochs: LeaderEpochCache, closed: list[LogSegment]) -> None:
    """What the checkpoint lacks stands in the batches: from the last segment on that starts with an epoch it knows."""
    start = len(closed)
    while start > 0:
        start -= 1
        first = closed[start].first_header()
        if first is not None and first.leader_epoch <= epochs.latest:
            break
    for segment in closed[start:]:
        last = segment.last_header()
        if last is None or last.leader_epoch <= epochs.latest:
            continue  # epochs rise, so that this segment has nothing new
        for _, header in scan_headers(segment.open_file(), 0, segment.size):
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)


def _load_producers(
    disk: Disk, directory: str, names: list[str], segments: list[LogSegment], end: int, *, clean: bool
) -> ProducerStateManager:
    """The state before an offset: from the newest snapshot that can be used, and the batches after it."""
    table = ProducerStateManager()
    start = end if clean else segments[0].base_offset  # without any snapshot after a clean stop there were no producers
    for offset in reversed(_snapshot_offsets(names)):
        if offset <= end and _restore(table, disk.read(snapshot_path(directory, offset))):
            start = offset
            break
    for index, segment in enumerate(segments):
        segment_end = segments[index + 1].base_offset if index + 1 < len(segments) else end
        if segment_end <= start or segment.base_offset >= end:
            continue
        found = segment.locate(start, segment.open_file().read_at)
        for _, header, batch in scan_batches(segment.open_file(), found[0] if found else segment.size, segment.size):
            table.on_batch(header, batch)
    return table


def _remove_snapshots(disk: Disk, directory: str, names: list[str], loaded: LoadedLog) -> None:
    """Those beyond the end are of batches that were cut off. Of the others one for each segment is kept, and the newest, as in Kafka."""
    bases = {segment.base_offset: None for segment in loaded.segments}
    offsets = _snapshot_offsets(names)
    newest = max((offset for offset in offsets if offset <= loaded.log_end_offset), default=-1)
    for offset in offsets:
        if offset > loaded.log_end_offset or (offset not in bases and offset != newest):
            disk.remove(snapshot_path(directory, offset))


def _snapshot_offsets(names: list[str]) -> list[int]:
    return sorted(int(name[:20]) for name in names if name.endswith(SNAPSHOT_SUFFIX))


def _restore(table: ProducerStateManager, snapshot: bytes) -> bool:
    """False where the snapshot is damaged: an older one, or the log itself, must do."""
    try:
        table.restore(snapshot)
    except ValueError:
        return False
    return True
