"""Encode and decode snapshots of the metadata log: record batches between a header and a footer record.

The file name is the offset after the last record that the snapshot contains, and that record's epoch.
"""

import re
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from ottla.base.ports import Disk
from ottla.metadata.record_versions import record_version
from ottla.wire.batches import Record, build_batch, decode_records, has_valid_checksum, iterate_batches
from ottla.wire.errors import MalformedMessage
from ottla.wire.records.control import KRaftVersionRecord, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord
from ottla.wire.records.framing import decode_metadata_record, encode_metadata_record
from ottla.wire.schema import Message, decode, encode

BOOTSTRAP_FILE = "bootstrap.checkpoint"
SUFFIX = ".checkpoint"

LEADER_CHANGE = 2
SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4
KRAFT_VERSION = 5
KRAFT_VOTERS = 6

BATCH_RECORDS_MAX = 1000

_CONTROL_KEY = Struct(">hh")


class CorruptSnapshot(Exception):
    """The file is not a complete, valid snapshot."""


class SnapshotId(NamedTuple):
    """`end_offset` is the offset after the last record that the snapshot contains, `epoch` the epoch of that record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


class Snapshot(NamedTuple):
    records: list[Any]
    last_contained_ms: int = 0
    kraft_version: int = 0
    voters: VotersRecord | None = None


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """Return all snapshots in a metadata log's directory, newest last."""
    matches = (re.fullmatch(r"(\d{20})-(\d{10})\.checkpoint", name) for name in disk.list(directory))
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in matches if match)


def control_record(kind: int, message: Message, timestamp_ms: int) -> Record:
    return Record(timestamp=timestamp_ms, key=_CONTROL_KEY.pack(0, kind), value=encode(message, 0))


def control_type(record: Record) -> int:
    """Return the type of a control record, or -1 if the key is not a control key."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return -1
    return int(_CONTROL_KEY.unpack_from(record.key)[1])


def encode_snapshot(
    records: Sequence[Any],
    *,
    metadata_version: int,
    now_ms: int,
    epoch: int = 0,
    last_contained_ms: int = 0,
    kraft_version: int = 0,
    voters: VotersRecord | None = None,
) -> bytes:
    """Encode a snapshot file. Offsets within it count from 0."""
    first = [control_record(SNAPSHOT_HEADER, SnapshotHeaderRecord(0, last_contained_ms), now_ms)]
    if kraft_version > 0:
        first.append(control_record(KRAFT_VERSION, KRaftVersionRecord(0, kraft_version), now_ms))
        if voters is not None:
            first.append(control_record(KRAFT_VOTERS, voters, now_ms))
    batches: list[tuple[list[Record], bool]] = [(first, True)]
    for start in range(0, len(records), BATCH_RECORDS_MAX):
        chunk = records[start : start + BATCH_RECORDS_MAX]
        values = [encode_metadata_record(record, record_version(record, metadata_version)) for record in chunk]
        batches.append(([Record(timestamp=now_ms, value=value) for value in values], False))
    batches.append(([control_record(SNAPSHOT_FOOTER, SnapshotFooterRecord(0), now_ms)], True))
    data = bytearray()
    offset = 0
    for batch_records, is_control in batches:
        data += build_batch(batch_records, base_offset=offset, leader_epoch=epoch, is_control=is_control)
        offset += len(batch_records)
    return bytes(data)


def decode_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot file. Raises CorruptSnapshot unless it is complete from its header to its footer."""
    view = memoryview(data)
    records: list[Any] = []
    controls: dict[int, Record] = {}
    end = 0
    try:
        for position, header in iterate_batches(data):
            batch = view[position : position + header.size]
            if not has_valid_checksum(batch):
                raise CorruptSnapshot(f"wrong checksum of the batch at byte {position}")
            found = decode_records(batch)
            if header.is_control:
                controls |= {control_type(record): record for record in found}
            else:
                records += _metadata_records(found)
            end = position + header.size
    except MalformedMessage as error:
        raise CorruptSnapshot(str(error)) from error
    if end != len(data) or SNAPSHOT_HEADER not in controls or SNAPSHOT_FOOTER not in controls:
        raise CorruptSnapshot("header or footer is missing")
    return _snapshot(records, controls)


def _snapshot(records: list[Any], controls: dict[int, Record]) -> Snapshot:
    header = decode(SnapshotHeaderRecord, 0, controls[SNAPSHOT_HEADER].value or b"")[0]
    kraft_version, voters = 0, None
    if KRAFT_VERSION in controls:
        kraft_version = decode(KRaftVersionRecord, 0, controls[KRAFT_VERSION].value or b"")[0].k_raft_version
    if KRAFT_VOTERS in controls:
        voters = decode(VotersRecord, 0, controls[KRAFT_VOTERS].value or b"")[0]
    return Snapshot(records, header.last_contained_log_timestamp, kraft_version, voters)


def _metadata_records(records: Iterable[Record]) -> list[Any]:
    return [decode_metadata_record(record.value) for record in records if record.value is not None]
