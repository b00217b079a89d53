"""Recovery of one segment by a scan of all its batches: its valid end, indexes, leader epochs and producer state."""

from collections.abc import Callable

from ottla.log.batch_scan import scan_fields, scan_headers
from ottla.log.config import LogConfig
from ottla.log.leader_epoch_cache import LeaderEpochCache
from ottla.log.offset_index import MutableOffsetIndex
from ottla.log.producer_state import ProducerStateManager
from ottla.log.segment import LogSegment
from ottla.log.time_index import MutableTimeIndex
from ottla.wire.batches import ATTRIBUTES_AT, CONTROL_BIT, LENGTH_OVERHEAD, TRANSACTIONAL_BIT, BatchHeader
from ottla.wire.crc import crc32c

OFFSETS_PER_SEGMENT_MAX = 0x7FFF_FFFF
TRANSACTION_BITS = CONTROL_BIT | TRANSACTIONAL_BIT


class RecoveryInterrupted(InterruptedError):
    """The node is shutting down. The files are as a crash would leave them; the next start recovers the log again."""


class ScanProgress:
    """Counts the bytes scanned so far. One thread counts, another reads the count and may stop the recovery."""

    __slots__ = ("_is_stopping", "done_bytes")

    def __init__(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._is_stopping = is_stopping
        self.done_bytes = 0

    def report(self, done_bytes: int) -> None:
        """Set the count. Raises RecoveryInterrupted if the recovery is to stop."""
        self.done_bytes = done_bytes
        if self._is_stopping():
            raise RecoveryInterrupted("log recovery was interrupted")


def recover_segment(
    segment: LogSegment,
    config: LogConfig,
    epochs: LeaderEpochCache,
    producers: ProducerStateManager,
    progress: ScanProgress,
) -> int:
    """Scan the segment, rebuild its indexes and truncate it at the first invalid batch. Return the offset after its
    last batch.

    This loop repeats the indexing of `LogSegment.on_batch`, as 1 GB of small batches has six million of them: a
    microsecond each is six seconds.
    """
    size = segment.size
    segment.start_indexes()
    offsets, times = segment.offset_index, segment.time_index
    assert isinstance(offsets, MutableOffsetIndex), segment.stem
    assert isinstance(times, MutableTimeIndex), segment.stem
    file = segment.open_file()
    next_offset = base = segment.base_offset
    offset_max = base + OFFSETS_PER_SEGMENT_MAX
    interval, latest_epoch = config.index_interval_bytes, epochs.latest
    last_entry_position = end = 0
    highest, highest_offset = -1, base
    done_before = progress.done_bytes
    for at, fields, batch in scan_fields(file, 0, size):
        (
            base_offset,
            length,
            leader_epoch,
            _,
            crc,
            attributes,
            last_delta,
            _,
            max_timestamp,
            producer_id,
            epoch,
            sequence,
            _,
        ) = fields
        last_offset = base_offset + last_delta
        if (
            base_offset < next_offset
            or last_delta < 0
            or last_offset > offset_max
            or crc32c(batch[ATTRIBUTES_AT:]) != crc
        ):
            break
        if max_timestamp > highest:
            highest, highest_offset = max_timestamp, last_offset
        if at - last_entry_position > interval:
            offsets.append(last_offset, at)
            times.maybe_append(highest, highest_offset)
            last_entry_position = at
            progress.report(done_before + at)
        end = at + length + LENGTH_OVERHEAD
        next_offset = last_offset + 1
        if leader_epoch > latest_epoch:
            epochs.assign(leader_epoch, base_offset)
            latest_epoch = leader_epoch
        if producer_id >= 0:
            if attributes & TRANSACTION_BITS:
                aborted = producers.on_batch(BatchHeader._make(fields), batch)
                if aborted is not None:
                    segment.on_aborted(aborted)
            else:
                producers.add_batch(producer_id, epoch, sequence, last_delta + 1, base_offset, max_timestamp)
    segment.size = end
    segment.last_entry_position = last_entry_position
    segment.max_timestamp, segment.max_timestamp_offset = highest, highest_offset
    segment.reset_tail(next_offset)
    progress.done_bytes = done_before + size
    if end < size:
        file.truncate(end)
        file.fsync()  # before anything is appended: after another crash, the truncated bytes could reappear after it
    return next_offset


def index_closed(segment: LogSegment, config: LogConfig) -> None:
    """Rebuild the index files of a closed segment. Its flushed batches are not validated: readers detect corruption."""
    size = segment.size
    segment.size = 0
    segment.start_indexes()
    segment.aborted = None  # unknown here: it depends on the transactions that are open where the segment starts
    for position, header in scan_headers(segment.open_file(), 0, size):
        segment.size = position
        segment.on_batch(position + header.size, header.last_offset, header.max_timestamp, config.index_interval_bytes)
    segment.size = size
    close(segment)


def close(segment: LogSegment) -> None:
    """Write the index files of a segment that is no longer the last, and use them from now on."""
    segment.is_writable = False
    segment.finish_indexes()
    segment.write_indexes()
    segment.use_index_files()
    segment.release()
