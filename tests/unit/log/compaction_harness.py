"""Compaction without a node: one run over a log, with the steps of broker and cleaner process in one call."""

from ottla.log.compaction import serve
from ottla.log.compaction_plan import (
    Cleaned,
    CleaningFailed,
    CompactionPlan,
    CompactionRequest,
    SegmentGroupCleaned,
    SegmentsMissing,
    decode_report,
    plan_compaction,
)
from ottla.log.compaction_segments import SegmentSwap, remove_deleted_segments, remove_unfinished
from ottla.log.partition_log import PartitionLog
from ottla.wire.batches import Record, build_batch

MARKER_KEYS = {"abort": b"\0\0\0\0", "commit": b"\0\0\0\1"}
MARKER_VALUE = bytes(6)


def request(log: PartitionLog, plan: CompactionPlan, *, now_ms: int, **changes: object) -> CompactionRequest:
    config = log.config
    compaction = CompactionRequest(
        directory=log.directory,
        bases=tuple(segment.base_offset for segment in plan.segments),
        sizes=tuple(segment.size for segment in plan.segments),
        index_sizes=tuple(segment.index_bytes() for segment in plan.segments),
        first_dirty_offset=plan.first_dirty_offset,
        end_offset=plan.end_offset,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        key_memory_bytes=1 << 27,
        bytes_per_second=float("inf"),
        producers=tuple(
            (producer_id, producer.batches[-1][3] if producer.batches else -1, producer.epoch)
            for producer_id, producer in log.producers.items()
        ),
    )
    return compaction._replace(**changes)


def clean(
    log: PartitionLog, clean_to: int | None = None, *, now_ms: int, **changes: object
) -> Cleaned | CleaningFailed | SegmentsMissing | None:
    """Run the cleaner. Return None if there is nothing to clean."""
    log.flush()
    plan = plan_compaction(log, clean_to=clean_to, high_watermark=log.log_end_offset, now_ms=now_ms)
    if not plan.dirty_bytes:
        return None
    remove_unfinished(log.disk, log.directory)
    for step in serve(log.disk, request(log, plan, now_ms=now_ms, **changes).encode()):
        if isinstance(step, float):
            continue
        report = decode_report(step)
        if not isinstance(report, SegmentGroupCleaned):
            return report
        swap = SegmentSwap(log, report.bases, report.size, now_ms=now_ms)
        assert swap.begin()
        log.disk.fsync_directory(log.directory)
        assert swap.replace()
        swap.mark_deleted(swap.old)
        swap.finish()
        log.disk.fsync_directory(log.directory)
        remove_deleted_segments(swap.old)
    raise AssertionError("no final report")


def append_marker(log: PartitionLog, outcome: str, producer_id: int, *, producer_epoch: int = 0, now_ms: int) -> int:
    """Append a transaction marker, as a coordinator does."""
    offset = log.log_end_offset
    batch = build_batch(
        [Record(timestamp=now_ms, key=MARKER_KEYS[outcome], value=MARKER_VALUE)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=0,
        is_control=True,
        is_transactional=True,
    )
    log.append_preassigned(batch, now_ms=now_ms)
    return offset


def append_records(
    log: PartitionLog,
    records: list[tuple[bytes | None, bytes | None]],
    *,
    now_ms: int,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = 0,
    base_sequence: int = -1,
    transactional: bool = False,
    log_append_time: int | None = None,
) -> int:
    """Append one preassigned batch."""
    offset = log.log_end_offset
    batch = build_batch(
        [Record(timestamp=now_ms + at, key=key, value=value) for at, (key, value) in enumerate(records)],
        base_offset=offset,
        codec=codec,
        producer_id=producer_id,
        leader_epoch=0,
        producer_epoch=producer_epoch if producer_id >= 0 else -1,
        base_sequence=base_sequence,
        is_transactional=transactional,
        log_append_time=log_append_time,
    )
    log.append_preassigned(batch, now_ms=now_ms)
    return offset
