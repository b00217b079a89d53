"""Planning of compaction on the loop, and the messages between the broker and the cleaner process."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.log.config import LONG_MAX
from ottla.log.offset_index import MutableOffsetIndex
from ottla.log.segment import LogSegment

if TYPE_CHECKING:
    from ottla.log.partition_log import PartitionLog


class CompactionPlan(NamedTuple):
    """The cleanable part of one log: from the first dirty offset to the first segment that must stay."""

    segments: tuple[LogSegment, ...]
    """All before `end_offset`, including clean ones."""
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Whether `max.compaction.lag.ms` has passed, so that the dirty ratio does not matter."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class CompactionRequest(NamedTuple):
    """A cleaner run over one log."""

    directory: str
    bases: tuple[int, ...]
    """Base offsets of the segments before `end_offset`, in order."""
    sizes: tuple[int, ...]
    index_sizes: tuple[int, ...]
    """Size of the larger index of each segment, in bytes."""
    first_dirty_offset: int
    end_offset: int
    """Base offset of the first segment that must not be cleaned."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    key_memory_bytes: int
    """Once the keys take this much memory, this run adds no more."""
    bytes_per_second: float
    producers: tuple[tuple[int, int, int], ...] = ()
    """Id of each active producer, last offset of its records or -1, and epoch."""
    seed: int = 0

    def encode(self) -> bytes:
        import json  # here and below: a node that never compacts need not load it

        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, data: bytes) -> "CompactionRequest":
        import json

        fields = json.loads(data)
        lists = {name: tuple(fields[name]) for name in ("bases", "sizes", "index_sizes")}
        return cls(**{**fields, **lists, "producers": tuple(tuple(producer) for producer in fields["producers"])})


class SegmentGroupCleaned(NamedTuple):
    """The files of one group are complete: the segments with these base offsets become one."""

    bases: tuple[int, ...]
    size: int


class Cleaned(NamedTuple):
    """The run is complete."""

    end_offset: int
    """The log is clean up to here."""
    keys: int
    read_bytes: int
    written_bytes: int


class CleaningFailed(NamedTuple):
    """The log cannot be cleaned, and a retry would fail too."""

    reason: str


class SegmentsMissing(NamedTuple):
    """A segment was deleted meanwhile: plan again."""

    reason: str


Report = SegmentGroupCleaned | Cleaned | CleaningFailed | SegmentsMissing
_REPORTS: dict[str, Any] = {
    report.__name__: report for report in (SegmentGroupCleaned, Cleaned, CleaningFailed, SegmentsMissing)
}


def encode_report(report: Report) -> bytes:
    import json

    return json.dumps([type(report).__name__, report._asdict()]).encode()


def decode_report(data: bytes) -> Report:
    import json

    name, fields = json.loads(data)
    if "bases" in fields:
        fields["bases"] = tuple(fields["bases"])
    report: Report = _REPORTS[name](**fields)
    return report


def plan_compaction(log: "PartitionLog", *, clean_to: int | None, high_watermark: int, now_ms: int) -> CompactionPlan:
    """Plan compaction of a log that is clean up to `clean_to`. The caller compares the dirty ratio with its limit."""
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
            break  # its index is still in memory: a worker is about to write the files
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
