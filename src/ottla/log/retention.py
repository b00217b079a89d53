"""Which segments of a log are too old, or too many: the oldest go first, and none that is not committed as a whole."""

from ottla.log.partition_log import PartitionLog
from ottla.log.segment import LogSegment


def segments_to_delete(log: PartitionLog, *, high_watermark: int, now_ms: int) -> int:
    """How many segments go, from the first on; all of them where even the active one holds nothing that should stay.

    Segments before the beginning of the log go whatever the policy says.
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
    """By the newest record; one without timestamps is as old as its file, of which it is known when it was opened."""
    if retention_ms < 0:
        return False
    latest, _ = segment.latest()
    return now_ms - (latest if latest >= 0 else segment.created_ms) > retention_ms


def delete_old(log: PartitionLog, *, high_watermark: int, now_ms: int) -> list[LogSegment]:
    """Take the segments out of the log, which begins behind them from now on. Their files may still be read; the caller removes them."""
    count = segments_to_delete(log, high_watermark=high_watermark, now_ms=now_ms)
    if count == 0:
        return []
    if count == len(log.segments):
        log.roll(now_ms=now_ms)  # a log has always one segment
    log.advance_start(log.segments[count].base_offset)
    return log.detach_below_start()
