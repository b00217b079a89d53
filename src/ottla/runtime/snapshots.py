"""Snapshots of the metadata log: files of batches between a header and a footer, named by the offset and epoch that they end at."""

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
    """The file is not a whole snapshot."""


class SnapshotId(NamedTuple):
    """`end_offset` is the offset after the last record that the snapshot covers, `epoch` that record's."""

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
    """All snapshots of a metadata log's directory, the newest last."""
    matches = (re.fullmatch(r"(\d{20})-(\d{10})\.checkpoint", name) for name in disk.list(directory))
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in matches if match)


def control_record(kind: int, message: Message, timestamp_ms: int) -> Record:
    return Record(timestamp=timestamp_ms, key=_CONTROL_KEY.pack(0, kind), value=encode(message, 0))


def control_type(record: Record) -> int:
    """The type of a control record; -1 where the key is not one."""
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
    """The bytes of a snapshot file; offsets within it count from 0."""
    opening = [control_record(SNAPSHOT_HEADER, SnapshotHeaderRecord(0, last_contained_ms), now_ms)]
    if kraft_version > 0:
        opening.append(control_record(KRAFT_VERSION, KRaftVersionRecord(0, kraft_version), now_ms))
        if voters is not None:
            opening.append(control_record(KRAFT_VOTERS, voters, now_ms))
    parts: list[tuple[list[Record], bool]] = [(opening, True)]
    for start in range(0, len(records), BATCH_RECORDS_MAX):
        chunk = records[start : start + BATCH_RECORDS_MAX]
        values = [encode_metadata_record(record, record_version(record, metadata_version)) for record in chunk]
        parts.append(([Record(timestamp=now_ms, value=value) for value in values], False))
    parts.append(([control_record(SNAPSHOT_FOOTER, SnapshotFooterRecord(0), now_ms)], True))
    written = bytearray()
    offset = 0
    for listed, is_control in parts:
        written += build_batch(listed, base_offset=offset, leader_epoch=epoch, is_control=is_control)
        offset += len(listed)
    return bytes(written)


def decode_snapshot(data: bytes) -> Snapshot:
    """What a snapshot file holds; CorruptSnapshot unless it is whole, from its header to its footer."""
    view = memoryview(data)
    records: list[Any] = []
    controls: dict[int, Record] = {}
    end = 0
    try:
        for position, header in iterate_batches(data):
            batch = view[position : position + header.size]
            if not has_valid_checksum(batch):
                raise CorruptSnapshot(f"the batch at byte {position} has a wrong checksum")
            found = decode_records(batch)
            if header.is_control:
                controls |= {control_type(record): record for record in found}
            else:
                records += _metadata_records(found)
            end = position + header.size
    except MalformedMessage as error:
        raise CorruptSnapshot(str(error)) from error
    if end != len(data) or SNAPSHOT_HEADER not in controls or SNAPSHOT_FOOTER not in controls:
        raise CorruptSnapshot("the file ends before its footer, or lacks its header")
    return _snapshot(records, controls)


def _snapshot(records: list[Any], controls: dict[int, Record]) -> Snapshot:
    opening = decode(SnapshotHeaderRecord, 0, controls[SNAPSHOT_HEADER].value or b"")[0]
    kraft_version, voters = 0, None
    if KRAFT_VERSION in controls:
        kraft_version = decode(KRaftVersionRecord, 0, controls[KRAFT_VERSION].value or b"")[0].k_raft_version
    if KRAFT_VOTERS in controls:
        voters = decode(VotersRecord, 0, controls[KRAFT_VOTERS].value or b"")[0]
    return Snapshot(records, opening.last_contained_log_timestamp, kraft_version, voters)


def _metadata_records(records: Iterable[Record]) -> list[Any]:
    return [decode_metadata_record(record.value) for record in records if record.value is not None]
