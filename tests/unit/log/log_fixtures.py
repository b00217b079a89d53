"""Helpers of the log tests: batches with known contents, and logs on a real disk."""

from collections.abc import Sequence
from pathlib import Path

from ottla.base.ids import Uuid
from ottla.base.ports import Disk
from ottla.io.disk import RealDisk
from ottla.log.config import LogConfig
from ottla.log.file_cache import FileCache
from ottla.log.partition_log import PartitionLog
from ottla.wire.batches import Record, build_batch, decode_records, iterate_batches

NOW = 1_700_000_000_000
TOPIC_ID = Uuid(b"0123456789abcdef")


def open_log(
    directory: Path | str,
    *,
    clean: bool = True,
    disk: Disk | None = None,
    now_ms: int = NOW,
    recovery_point: int | None = None,
    files: FileCache | None = None,
    topic_id: Uuid = TOPIC_ID,
    config: LogConfig | None = None,
    **configs: object,
) -> PartitionLog:
    return PartitionLog.open(
        disk or RealDisk(),
        str(directory),
        config=config or LogConfig(**configs),
        topic_id=topic_id,
        now_ms=now_ms,
        clean=clean,
        recovery_point=recovery_point,
        files=files,
    )


def batch(
    *values: bytes,
    timestamp: int = NOW,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> memoryview:
    records = [Record(timestamp=timestamp, value=value) for value in values or (b"v",)]
    return memoryview(
        build_batch(
            records, codec=codec, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=base_sequence
        )
    )


def stamped(timestamps: Sequence[int], *, codec: int = 0) -> memoryview:
    return memoryview(
        build_batch([Record(timestamp=timestamp, value=b"x" * 20) for timestamp in timestamps], codec=codec)
    )


def append(log: PartitionLog, records: memoryview | None = None, *, leader_epoch: int = 0, now_ms: int = NOW) -> int:
    return log.append(batch() if records is None else records, leader_epoch=leader_epoch, now_ms=now_ms)[0]


def stored_batches(log: PartitionLog) -> list[bytes]:
    """Return all batches from the files of all segments."""
    found = []
    for segment in log.segments:
        data = log.disk.read(segment.log_path)
        found += [data[position : position + header.size] for position, header in iterate_batches(data)]
        assert len(data) == segment.size
    return found


def stored_records(log: PartitionLog) -> list[Record]:
    return [record for stored in stored_batches(log) for record in decode_records(stored)]


def read_all(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> list[Record]:
    """Read from an offset to the end, as a consumer does."""
    records: list[Record] = []
    while (found := log.read(offset, max_bytes, limit_offset=log.log_end_offset, min_one_message=True)) is not None:
        data = found.file.read_at(found.position, found.size)
        for position, header in iterate_batches(data):
            records += [
                record for record in decode_records(data[position : position + header.size]) if record.offset >= offset
            ]
            offset = max(offset, header.last_offset + 1)
    return records


def index_entries(log: PartitionLog) -> list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]:
    return [(segment.offsets().entries(), segment.times().entries()) for segment in log.segments]
