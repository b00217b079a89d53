"""Deletion of segments by age and size, oldest first. Segments with uncommitted records stay."""

from ottla.log.partition_log import PartitionLog
from ottla.log.segment import LogSegment


def segments_to_delete(log: PartitionLog, *, high_watermark: int, now_ms: int) -> int:
    """Return how many segments to delete from the start of the log; the active one too if all its records have expired.

    Segments before the log start offset are deleted under any cleanup policy.
    """
    config = log.config
    surplus = log.size_bytes - config.retention_bytes if config.deletes and config.retention_bytes >= 0 else -1
    count = 0
    for index, segment in enumerate(log.segments):
        is_last = index + 1 == len(log.segments)
        end = log.log_end_offset if is_last else log.segments[index + 1].base_offset
        if end > high_watermark or (is_last and segment.size == 0):
            break
        is_before_start = not is_last and end <= log.log_start_offset
        if not (
            is_before_start
            or surplus >= segment.size
            or (config.deletes and _is_old(segment, config.retention_ms, now_ms))
        ):
            break
        surplus -= segment.size
        count = index + 1
    return count


def _is_old(segment: LogSegment, retention_ms: int, now_ms: int) -> bool:
    """Whether the newest record has expired. Without timestamps, the age is counted from when the log was opened."""
    if retention_ms < 0:
        return False
    latest, _ = segment.latest()
    return now_ms - (latest if latest >= 0 else segment.created_ms) > retention_ms


def delete_old(log: PartitionLog, *, high_watermark: int, now_ms: int) -> list[LogSegment]:
    """Take expired segments out of the log and return them. Their files may still be read; the caller deletes them."""
    count = segments_to_delete(log, high_watermark=high_watermark, now_ms=now_ms)
    if count == 0:
        return []
    if count == len(log.segments):
        log.roll(now_ms=now_ms)  # a log always has a segment
    log.advance_start(log.segments[count].base_offset)
    return log.detach_below_start()
