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
from ottla.log.scanning import scan_batches, scan_headers
from ottla.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, Segment
from ottla.log.time_index import GrowingTimeIndex
from ottla.wire.batches import ATTRIBUTES_AT
from ottla.wire.crc import crc32c

LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
OFFSETS_PER_SEGMENT_MAX = 0x7FFF_FFFF


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
    end = _resume(last) if clean else None
    if end is None:
        size = last.size
        end = rebuild(last, config)
        cut_bytes += size - last.size
    first = next(iter(scan_headers(last.opened(), 0, last.size)), None)
    last.first_timestamp = first[1].max_timestamp if first else None
    epochs = _load_epochs(disk, directory, segments, end, clean=clean)
    producers = _load_producers(disk, directory, names, segments, end, clean=clean)
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


def rebuild(segment: Segment, config: LogConfig) -> int:
    """Read the segment through, build its indexes, cut off what is not a whole, valid, next batch; returns the offset after the last."""
    size = segment.size
    segment.size = 0
    segment.start_growing()
    file = segment.opened()
    next_offset = segment.base_offset
    for _, header, batch in scan_batches(file, 0, size):
        last_offset = header.base_offset + header.last_offset_delta
        if (crc32c(batch[ATTRIBUTES_AT:]) != header.crc or header.base_offset < next_offset or header.last_offset_delta < 0
                or last_offset - segment.base_offset > OFFSETS_PER_SEGMENT_MAX):
            break
        segment.on_batch(len(batch), last_offset, header.max_timestamp, config.index_interval_bytes)
        next_offset = last_offset + 1
    if segment.size < size:
        file.truncate(segment.size)
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
    position = offsets.positions[-1] if len(offsets) else 0
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
    segment.bytes_since_entry = expected - (offsets.positions[-1] if len(offsets) else 0)
    return end if expected == size else None


def _load_epochs(disk: Disk, directory: str, segments: list[Segment], end: int, *, clean: bool) -> LeaderEpochs:
    epochs = leader_epochs.read_checkpoint(disk, directory)
    epochs.truncate_from_end(end)
    if clean:
        return epochs
    # What the checkpoint lacks stands in the batches: from the first segment that starts with an epoch it does not know.
    start = len(segments) - 1
    while start > 0:
        first = next(iter(scan_headers(segments[start].opened(), 0, segments[start].size)), None)
        if first is not None and first[1].leader_epoch <= epochs.latest:
            break
        start -= 1
    for segment in segments[start:]:
        for _, header in scan_headers(segment.opened(), 0, segment.size):
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
    return epochs


def _load_producers(disk: Disk, directory: str, names: list[str], segments: list[Segment], end: int, *, clean: bool) -> ProducerTable:
    """From the newest snapshot that can be used, and the batches after it. Snapshots beyond the end are of batches that were cut off."""
    table = ProducerTable()
    start = end if clean else segments[0].base_offset  # without any snapshot after a clean stop there were no producers
    for offset in sorted((int(name[:20]) for name in names if name.endswith(SNAPSHOT_SUFFIX)), reverse=True):
        path = snapshot_path(directory, offset)
        if offset <= end and _restore(table, disk.read(path)):
            start = offset
            break
        disk.remove(path)
    for index, segment in enumerate(segments):
        segment_end = segments[index + 1].base_offset if index + 1 < len(segments) else end
        if segment_end <= start:
            continue
        found = segment.locate(start, segment.opened().read_at)
        for _, header in scan_headers(segment.opened(), found[0] if found else segment.size, segment.size):
            table.on_batch(header)
    return table


def _restore(table: ProducerTable, snapshot: bytes) -> bool:
    """False where the snapshot is damaged: an older one, or the log itself, must do."""
    try:
        table.restore(snapshot)
    except ValueError:
        return False
    return True
