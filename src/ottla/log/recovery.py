"""Opening a log: which segments there are, where the last one really ends, and what its indexes and producers are.

After a clean stop the files are believed, but for a look at the tail. After a crash the last segment is read through, its torn tail is cut
off and its indexes are built anew; a closed segment whose index files are missing or cannot be right gets new ones.
"""

from dataclasses import dataclass

from ottla.base.ports import Disk
from ottla.log import epochs as leader_epochs
from ottla.log import offset_index, time_index
from ottla.log.config import LogConfig
from ottla.log.epochs import LeaderEpochs
from ottla.log.offset_index import GrowingOffsetIndex
from ottla.log.open_files import OpenFiles
from ottla.log.producer_state import SNAPSHOT_SUFFIX, ProducerTable, snapshot_path
from ottla.log.scanning import scan_fields, scan_headers
from ottla.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, Segment
from ottla.log.time_index import GrowingTimeIndex
from ottla.wire.batches import ATTRIBUTES_AT, LENGTH_OVERHEAD, BatchHeader
from ottla.wire.crc import crc32c

LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
OFFSETS_PER_SEGMENT_MAX = 0x7FFF_FFFF
EPOCH_MAX = 0x7FFF_FFFF


@dataclass(slots=True)
class LoadedLog:
    """What was found in a directory."""

    segments: list[Segment]
    log_end_offset: int
    epochs: LeaderEpochs
    producers: ProducerTable
    cut_bytes: int


def load(disk: Disk, directory: str, *, config: LogConfig, files: OpenFiles, now_ms: int, clean: bool,
         recovery_point: int | None) -> LoadedLog:
    """`recovery_point`: what lies before this offset was flushed. Without it the last segment alone is taken for doubtful after a crash."""
    names = _remove_leftovers(disk, directory)
    bases = sorted(int(name[:20]) for name in names if name.endswith(LOG_SUFFIX))
    segments = [Segment(disk, files, directory, base, created_ms=now_ms) for base in bases]
    if not segments:
        segment = Segment(disk, files, directory, 0, created_ms=now_ms)
        segment.create()
        return LoadedLog([segment], 0, leader_epochs.LeaderEpochs(), ProducerTable(), 0)
    for segment in segments:
        file = disk.open_read_only(segment.log_path)
        segment.size = file.size()
        file.close()
    cut_bytes = 0 if clean or recovery_point is None else _check_doubtful(segments, config, recovery_point)
    for segment in segments[:-1]:
        if not (segment.has_index_files() if clean else segment.are_indexes_sound(config.index_interval_bytes)):
            _index_closed(segment, config)
    last = segments[-1]
    last.is_writable = True
    last.release()
    epochs = leader_epochs.read_checkpoint(disk, directory)
    end = _resume(last) if clean else None
    if end is not None:
        epochs.truncate_from_end(end)
        producers = _load_producers(disk, directory, names, segments, end, clean=True)
    else:
        # What was known of the last segment is found anew, together with what its predecessors had not yet written down.
        epochs.truncate_from_end(last.base_offset)
        _catch_up(epochs, segments[:-1])
        producers = _load_producers(disk, directory, names, segments, last.base_offset, clean=False)
        size = last.size
        end = rebuild(last, config, epochs, producers)
        cut_bytes += size - last.size
    _remove_snapshots(disk, directory, names, end)
    first = last.first_header()
    last.first_timestamp = first.max_timestamp if first else None
    return LoadedLog(segments, end, epochs, producers, cut_bytes)


def _remove_leftovers(disk: Disk, directory: str) -> list[str]:
    """Files of work that was not finished, and indexes without a log."""
    names = disk.list(directory)
    logs = {name[:20]: None for name in names if name.endswith(LOG_SUFFIX)}
    kept = []
    for name in names:
        is_orphan = name.endswith((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)) and name[:20] not in logs
        if is_orphan or name.endswith(LEFTOVER_SUFFIXES):
            disk.remove(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept


def _check_doubtful(segments: list[Segment], config: LogConfig, recovery_point: int) -> int:
    """Read closed segments through that may not have reached the disk; returns how many bytes were lost.

    A torn one becomes the last, and so does one whose successor's file is gone: what follows has no ground. Compacted logs have gaps.
    """
    for index, segment in enumerate(segments[:-1]):
        next_base = segments[index + 1].base_offset
        if next_base <= recovery_point:
            continue
        size = segment.size
        segment.is_writable = True
        end = rebuild(segment, config)
        if segment.size < size or (end != next_base and not config.compacted):
            cut_bytes = size - segment.size
            for later in segments[index + 1 :]:
                cut_bytes += later.size
                later.remove()
            del segments[index + 1 :]
            # Before anything is appended: a segment whose removal a power cut takes back could follow what is written next.
            segment.disk.flush_directory(segment.stem.rpartition("/")[0])
            return cut_bytes
        segment.is_writable = False
        segment.finish_indexes()
        segment.write_indexes()
        segment.offset_index = segment.time_index = None
    return 0


def _index_closed(segment: Segment, config: LogConfig) -> None:
    """New index files for a closed segment. Its batches are left alone: they were flushed, and damage there is for its readers to see."""
    size = segment.size
    segment.size = 0
    segment.start_growing()
    for position, header in scan_headers(segment.opened(), 0, size):
        segment.size = position
        segment.on_batch(header.size, header.last_offset, header.max_timestamp, config.index_interval_bytes)
    segment.size = size
    segment.finish_indexes()
    segment.write_indexes()
    segment.offset_index = segment.time_index = None


def rebuild(segment: Segment, config: LogConfig, epochs: LeaderEpochs | None = None, producers: ProducerTable | None = None) -> int:
    """Read the segment through, build its indexes, cut off what is not a whole, valid, next batch; returns the offset after the last.

    A gigabyte of small batches has six million of them: 2.5 µs are spent on each.
    """
    size = segment.size
    segment.size = 0
    segment.start_growing()
    file = segment.opened()
    next_offset = segment.base_offset
    offset_max = segment.base_offset + OFFSETS_PER_SEGMENT_MAX
    latest_epoch = epochs.latest if epochs is not None else EPOCH_MAX
    on_batch, interval = segment.on_batch, config.index_interval_bytes
    for _, fields, batch in scan_fields(file, 0, size):
        base_offset, length, leader_epoch, _, crc, _, last_offset_delta, _, max_timestamp, producer_id, *_ = fields
        last_offset = base_offset + last_offset_delta
        if (base_offset < next_offset or last_offset_delta < 0 or last_offset > offset_max or crc32c(batch[ATTRIBUTES_AT:]) != crc):
            break
        on_batch(length + LENGTH_OVERHEAD, last_offset, max_timestamp, interval)
        next_offset = last_offset + 1
        if leader_epoch > latest_epoch and epochs is not None:
            epochs.assign(leader_epoch, base_offset)
            latest_epoch = leader_epoch
        if producer_id >= 0 and producers is not None:
            producers.on_batch(BatchHeader._make(fields))
    if segment.size < size:
        file.truncate(segment.size)
        file.flush()  # before anything is appended: what was cut off could come back behind it
    return next_offset


def _resume(segment: Segment) -> int | None:
    """Take the indexes of the last segment from their files and go on from there; None where something does not fit."""
    if not segment.has_index_files():
        return None
    size = segment.size
    offset_data = segment.disk.read(segment.stem + OFFSET_INDEX_SUFFIX)
    time_data = segment.disk.read(segment.stem + TIME_INDEX_SUFFIX)
    if not offset_index.is_sound(offset_data, size) or not time_index.is_sound(time_data):
        return None
    offsets = GrowingOffsetIndex.decode(segment.base_offset, offset_data)
    times = GrowingTimeIndex.decode(segment.base_offset, time_data)
    position = offsets.last_position()
    segment.start_growing()
    segment.offset_index, segment.time_index = offsets, times
    segment.max_timestamp, segment.max_timestamp_offset = times.last() or (-1, segment.base_offset)
    end = segment.base_offset
    expected = position
    for at, header in scan_headers(segment.opened(), position, size):
        end = header.base_offset + header.last_offset_delta + 1
        if header.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = header.max_timestamp, end - 1
        expected = at + header.size
    segment.size = size
    segment.last_offset = end - 1
    segment.forget_tail()
    segment.bytes_since_entry = expected - offsets.last_position()
    return end if expected == size else None


def _catch_up(epochs: LeaderEpochs, closed: list[Segment]) -> None:
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
        for _, header in scan_headers(segment.opened(), 0, segment.size):
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)


def _load_producers(disk: Disk, directory: str, names: list[str], segments: list[Segment], end: int, *, clean: bool) -> ProducerTable:
    """The state before an offset: from the newest snapshot that can be used, and the batches after it."""
    table = ProducerTable()
    start = end if clean else segments[0].base_offset  # without any snapshot after a clean stop there were no producers
    for offset in reversed(_snapshot_offsets(names)):
        if offset <= end and _restore(table, disk.read(snapshot_path(directory, offset))):
            start = offset
            break
    for index, segment in enumerate(segments):
        segment_end = segments[index + 1].base_offset if index + 1 < len(segments) else end
        if segment_end <= start or segment.base_offset >= end:
            continue
        found = segment.locate(start, segment.opened().read_at)
        for _, header in scan_headers(segment.opened(), found[0] if found else segment.size, segment.size):
            table.on_batch(header)
    return table


def _remove_snapshots(disk: Disk, directory: str, names: list[str], end: int) -> None:
    """Those beyond the end are of batches that were cut off."""
    for offset in _snapshot_offsets(names):
        if offset > end:
            disk.remove(snapshot_path(directory, offset))


def _snapshot_offsets(names: list[str]) -> list[int]:
    return sorted(int(name[:20]) for name in names if name.endswith(SNAPSHOT_SUFFIX))


def _restore(table: ProducerTable, snapshot: bytes) -> bool:
    """False where the snapshot is damaged: an older one, or the log itself, must do."""
    try:
        table.restore(snapshot)
    except ValueError:
        return False
    return True
