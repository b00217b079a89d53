"""Searching a log by time. These run in workers while the loop appends: they open files of their own and only read what grows."""

from collections.abc import Sequence

from ottla.log.scanning import scan_batches
from ottla.log.segment import Segment
from ottla.wire.batches import decode_records

OUTPUT_MAX = 128 << 20
"""Of a batch that is decompressed here; none larger was let in."""

Found = tuple[int, int, int]
"""Timestamp, offset and leader epoch of a record."""


def first_at_or_after(segments: Sequence[Segment], timestamp: int, start_offset: int) -> Found | None:
    """The first record, from an offset on, that is not older than a timestamp."""
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
                for record in decode_records(batch, output_max=OUTPUT_MAX):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        return record.timestamp, record.offset, header.leader_epoch
        finally:
            file.close()
    return None


def latest(segments: Sequence[Segment]) -> Found | None:
    """The first record of those with the highest timestamp; None where no record has one."""
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
            for record in decode_records(batch, output_max=OUTPUT_MAX):
                if record.timestamp == header.max_timestamp:
                    return record.timestamp, record.offset, header.leader_epoch
            return None
    finally:
        file.close()
    return None
