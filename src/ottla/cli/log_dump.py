"""`ottla log dump`: the entries of a file in a data directory."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.cli.log_files import FileType, LogFile, batches, partition_name, read_bytes
from ottla.cli.records import as_text

if TYPE_CHECKING:
    from ottla.wire.batches import BatchHeader, Record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONTROLS = {
    0: "abort",
    1: "commit",
    2: "leader change",
    3: "snapshot header",
    4: "snapshot footer",
    5: "kraft version",
    6: "kraft voters",
}
METADATA_LOG = "__cluster_metadata-0"


def dump(file: LogFile, *, with_records: bool) -> Iterator[dict[str, Any]]:
    """Yield the entries of a file. Raises `ValueError` if it is corrupt."""
    match file.file_type:
        case FileType.SEGMENT | FileType.SNAPSHOT:
            yield from _segment(file, with_records=with_records)
        case FileType.OFFSET_INDEX | FileType.TIME_INDEX:
            yield from index_entries(file)
        case FileType.TRANSACTION_INDEX:
            from ottla.log import transaction_index

            for aborted in transaction_index.decode(read_bytes(file.path), file.path):
                yield aborted._asdict()
        case FileType.PRODUCERS:
            yield from _producers(file)
        case FileType.EPOCHS:
            from ottla.log import leader_epoch_cache

            for epoch, start in leader_epoch_cache.decode(read_bytes(file.path), file.path).entries():
                yield {"epoch": epoch, "start_offset": start}
        case FileType.OFFSETS:
            from ottla.log import offset_checkpoint_file

            data = read_bytes(file.path)
            offsets = offset_checkpoint_file.decode(data) if data else {}  # Kafka creates an empty file
            for (topic, index), offset in sorted(offsets.items()):
                yield {"topic": topic, "partition": index, "offset": offset}
        case FileType.JSON:
            yield json.loads(read_bytes(file.path) or b"{}")
        case FileType.PARTITION:
            yield dict(line.split(": ", 1) for line in read_bytes(file.path).decode().splitlines() if ": " in line)
        case FileType.PROPERTIES:
            lines = read_bytes(file.path).decode().splitlines()
            yield dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def batch_entry(position: int, header: "BatchHeader") -> dict[str, Any]:
    return {
        "position": position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "codec": CODECS[header.codec] if header.codec < len(CODECS) else header.codec,
        "timestamp_type": "LogAppendTime" if header.has_log_append_time else "CreateTime",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
    }


def index_entries(file: LogFile) -> Iterator[dict[str, Any]]:
    from ottla.log.offset_index import MappedOffsetIndex
    from ottla.log.time_index import MappedTimeIndex

    data, base = memoryview(read_bytes(file.path)), file.base_offset
    if file.file_type is FileType.OFFSET_INDEX:
        for relative, position in MappedOffsetIndex(base, data).entries():
            yield {"offset": base + relative, "position": position}
    else:
        for timestamp, relative in MappedTimeIndex(base, data).entries():
            yield {"timestamp": timestamp, "offset": base + relative}


def _segment(file: LogFile, *, with_records: bool) -> Iterator[dict[str, Any]]:
    from ottla.wire.batches import decode_records

    is_metadata = file.file_type is FileType.SNAPSHOT or partition_name(file.path) == METADATA_LOG
    end = 0
    for position, header, batch in batches(file.path):
        entry = batch_entry(position, header)
        if with_records:
            entry["records"] = [
                _control(record) if header.is_control else _record(record, is_metadata=is_metadata)
                for record in decode_records(batch)
            ]
        yield entry
        end = position + header.size
    if end < file.size:
        raise ValueError(f"{file.size - end} bytes at position {end} are not a complete batch")


def _control(record: "Record") -> dict[str, Any]:
    file_type = int.from_bytes(record.key[2:4], "big") if record.key is not None and len(record.key) >= 4 else -1
    entry = {"offset": record.offset, "timestamp": record.timestamp, "control": CONTROLS.get(file_type, str(file_type))}
    return entry | as_text("value", record.value)


def _record(record: "Record", *, is_metadata: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    if is_metadata and record.value is not None:
        from ottla.wire.records.framing import decode_metadata_record

        message = decode_metadata_record(record.value)
        return entry | {"type": type(message).__name__, "data": repr(message)}
    for name, data in (("key", record.key), ("value", record.value)):
        entry |= as_text(name, data)
    if record.headers:
        entry["headers"] = [{"key": name} | as_text("value", value) for name, value in record.headers]
    return entry


def _producers(file: LogFile) -> Iterator[dict[str, Any]]:
    from ottla.log.producer_state import ProducerStateManager

    table = ProducerStateManager()
    table.restore(read_bytes(file.path))
    for producer_id, producer in table.items():
        _, last_sequence, first_offset, last_offset, _ = (
            producer.batches[-1] if producer.batches else (-1, -1, -1, -1, -1)
        )
        yield {
            "producer_id": producer_id,
            "producer_epoch": producer.epoch,
            "last_sequence": last_sequence,
            "first_offset": first_offset,
            "last_offset": last_offset,
            "last_timestamp": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_first_offset": producer.transaction_first_offset,
        }
