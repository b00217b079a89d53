"""Which part of a log may be compacted now, and whether it is worth it: looked at on the loop, by sizes and times that are known there."""

from typing import NamedTuple

from ottla.log.config import LONG_MAX
from ottla.log.offset_index import MutableOffsetIndex
from ottla.log.partition_log import PartitionLog
from ottla.log.segment import LogSegment


class CompactionPlan(NamedTuple):
    """What could be cleaned of one log: from the first dirty offset to the first segment that may not be touched."""

    segments: tuple[LogSegment, ...]
    """All before `end_offset`, the clean ones too."""
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Whether `max.compaction.lag.ms` has passed, so that the ratio does not matter."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def plan_compaction(log: PartitionLog, *, clean_to: int | None, high_watermark: int, now_ms: int) -> CompactionPlan:
    """`clean_to`: what lies before was cleaned; None where that was never done. Whoever asks compares the ratio with the topic's."""
    config = log.config
    first_dirty = (
        log.log_start_offset
        if clean_to is None or not log.log_start_offset <= clean_to <= log.log_end_offset
        else clean_to
    )
    stable = log.producers.first_unstable_offset(high_watermark)
    closed = log.segments[:-1]
    cleanable: list[LogSegment] = []
    end_offset = closed[0].base_offset if closed else log.segments[-1].base_offset
    for index, segment in enumerate(closed):
        next_base = log.segments[index + 1].base_offset
        if next_base > stable or isinstance(segment.offset_index, MutableOffsetIndex):
            break  # the latter: a worker is about to write its index files
        if (
            next_base > first_dirty
            and config.min_compaction_lag_ms > 0
            and _latest(segment) > now_ms - config.min_compaction_lag_ms
        ):
            break
        cleanable.append(segment)
        end_offset = next_base
    dirty = [segment for segment, end in _with_ends(cleanable, end_offset) if end > first_dirty]
    dirty_bytes = sum(segment.size for segment in dirty)
    return CompactionPlan(
        tuple(cleanable),
        first_dirty,
        end_offset,
        sum(segment.size for segment in cleanable) - dirty_bytes,
        dirty_bytes,
        _is_overdue(dirty, config.max_compaction_lag_ms, now_ms),
    )


def _with_ends(segments: list[LogSegment], end_offset: int) -> list[tuple[LogSegment, int]]:
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    return list(zip(segments, ends, strict=True)) if segments else []


def _latest(segment: LogSegment) -> int:
    latest, _ = segment.latest()
    return latest if latest >= 0 else segment.created_ms


def _is_overdue(dirty: list[LogSegment], max_lag_ms: int, now_ms: int) -> bool:
    if max_lag_ms == LONG_MAX:
        return False
    for segment in dirty:
        if segment.first_timestamp is None:
            first = segment.first_header()
            segment.first_timestamp = -1 if first is None else first.max_timestamp
        if 0 < segment.first_timestamp < now_ms - max_lag_ms:
            return True
    return False
