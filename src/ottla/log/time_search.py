"""Searching a log by time. Runs in workers while the loop appends, with files of their own."""

from collections.abc import Iterator, Sequence

from ottla.base.ports import Buffer
from ottla.log.batch_scan import scan_batches
from ottla.log.segment import LogSegment
from ottla.wire.batches import BatchHeader, read_payload
from ottla.wire.record_scan import scan_records

OUTPUT_MAX = 128 << 20
"""Upper limit of a decompressed batch. Larger ones are rejected by Produce."""

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch of a record."""


def first_at_or_after(segments: Sequence[LogSegment], timestamp: int, start_offset: int) -> Found | None:
    """Return the first record at or after a timestamp and `start_offset`."""
    for segment in segments:
        if segment.latest()[0] < timestamp:
            continue
        position = segment.offsets().position_of(max(segment.times().offset_before(timestamp), start_offset))
        end = segment.size
        file = segment.disk.open_read_only(segment.log_path)
        try:
            for _, header, batch in scan_batches(file, position, end):
                if header.max_timestamp < timestamp or header.last_offset < start_offset:
                    continue
                for found, offset in _times(header, batch):
                    if found >= timestamp and offset >= start_offset:
                        return found, offset, header.leader_epoch
        finally:
            file.close()
    return None


def latest(segments: Sequence[LogSegment]) -> Found | None:
    """Return the first record with the highest timestamp, or None if no record has a timestamp."""
    ranked = [(segment.latest(), segment) for segment in segments]
    (timestamp, last_offset), segment = max(ranked, key=lambda entry: entry[0][0])
    if timestamp < 0:
        return None
    position = segment.offsets().position_of(last_offset)
    end = segment.size
    file = segment.disk.open_read_only(segment.log_path)
    try:
        for _, header, batch in scan_batches(file, position, end):
            if header.last_offset < last_offset:
                continue
            for found, offset in _times(header, batch):
                if found == header.max_timestamp:
                    return found, offset, header.leader_epoch
            return None
    finally:
        file.close()
    return None


def _times(header: BatchHeader, batch: Buffer) -> Iterator[tuple[int, int]]:
    """Yield timestamp and offset of each record. Decodes nothing else: a few kilobytes may hold a million records."""
    payload = read_payload(batch, header, output_max=OUTPUT_MAX)
    for timestamp_delta, offset_delta, *_ in scan_records(payload, header.record_count, check_lengths=False):
        timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + timestamp_delta
        yield timestamp, header.base_offset + offset_delta
