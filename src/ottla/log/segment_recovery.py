"""Reading a segment through: where it really ends, and what its indexes, leader epochs and producers are."""

from collections.abc import Callable

from ottla.base.ports import File
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
OF_TRANSACTIONS = CONTROL_BIT | TRANSACTIONAL_BIT


class RecoveryInterrupted(InterruptedError):
    """Nobody waits for the log any more. Its files are as a crash would leave them, and the next recovery begins anew."""


class Progress:
    """How many bytes have been read through so far. One thread counts, another looks, and may want no more of it."""

    __slots__ = ("_is_stopping", "done_bytes")

    def __init__(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._is_stopping = is_stopping
        self.done_bytes = 0

    def tell(self, done_bytes: int) -> None:
        """RecoveryInterrupted where that is to be all."""
        self.done_bytes = done_bytes
        if self._is_stopping():
            raise RecoveryInterrupted("the recovery was stopped")


def recover_segment(
    segment: LogSegment,
    config: LogConfig,
    epochs: LeaderEpochCache,
    producers: ProducerStateManager,
    progress: Progress,
) -> int:
    """Read the segment through, build its indexes, cut off what is not a whole, valid, next batch; returns the offset after the last.

    The indexes grow here as in `LogSegment.on_batch`, in a loop of their own: a gigabyte of small batches has six million of them, and a
    microsecond for each is six seconds.
    """
    size = segment.size
    segment.start_growing()
    offsets, times = segment.offset_index, segment.time_index
    assert isinstance(offsets, MutableOffsetIndex), segment.stem
    assert isinstance(times, MutableTimeIndex), segment.stem
    file = segment.open_file()
    next_offset = base = segment.base_offset
    offset_max = base + OFFSETS_PER_SEGMENT_MAX
    interval, latest_epoch = config.index_interval_bytes, epochs.latest
    entry_position = end = 0
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
        if at - entry_position > interval:
            offsets.append(last_offset, at)
            times.maybe_append(highest, highest_offset)
            entry_position = at
            progress.tell(done_before + at)
        end = at + length + LENGTH_OVERHEAD
        next_offset = last_offset + 1
        if leader_epoch > latest_epoch:
            epochs.assign(leader_epoch, base_offset)
            latest_epoch = leader_epoch
        if producer_id >= 0:
            if attributes & OF_TRANSACTIONS:
                aborted = producers.on_batch(BatchHeader._make(fields), batch)
                if aborted is not None:
                    segment.on_aborted(aborted)
            else:
                producers.remember(producer_id, epoch, sequence, last_delta + 1, base_offset, max_timestamp)
    segment.size = end
    segment.entry_position = entry_position
    segment.max_timestamp, segment.max_timestamp_offset = highest, highest_offset
    segment.start_tail(next_offset)
    progress.done_bytes = done_before + size
    if end < size:
        _cut_off(file, end)
    return next_offset


def _cut_off(file: File, end: int) -> None:
    file.truncate(end)
    file.fsync()  # before anything is appended: what was cut off could come back behind it


def index_closed(segment: LogSegment, config: LogConfig) -> None:
    """New index files for a closed segment. Its batches are left alone: they were flushed, and damage there is for its readers to see."""
    size = segment.size
    segment.size = 0
    segment.start_growing()
    segment.aborted = None  # which transactions are open where the segment begins is not known here
    for position, header in scan_headers(segment.open_file(), 0, size):
        segment.size = position
        segment.on_batch(position + header.size, header.last_offset, header.max_timestamp, config.index_interval_bytes)
    segment.size = size
    close(segment)


def close(segment: LogSegment) -> None:
    """The segment is no longer the last: its indexes are put into files, which serve from now on."""
    segment.is_writable = False
    segment.finish_indexes()
    segment.write_indexes()
    segment.use_index_files()
    segment.release()
