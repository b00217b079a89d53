"""Encode and decode the record batches of a coordinator shard.

Both are hot paths (an offset commit; a start with 100,000 commits) and handle only what coordinators write: records
without headers.
"""

from collections.abc import Iterator, Sequence

from ottla.wire.batches import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    iterate_batches,
    read_payload,
    write_checksum,
)
from ottla.wire.record_scan import scan_records
from ottla.wire.varint import varint

KeyValue = tuple[bytes, bytes | None]
"""A record; one without a value is a tombstone."""
LoadedRecord = tuple[int, bytes | None, bytes | None]
"""Offset, key and value of a record that was read."""

RECORD_OVERHEAD_MAX = 32
"""Upper limit of the bytes of a record besides its key and value."""

_NULL = varint(-1)
_LENGTHS_COUNT = 256
_LENGTHS = tuple(varint(length) for length in range(_LENGTHS_COUNT))
"""Encoded lengths that cover the keys and values of committed offsets."""
_COMMIT = 1


def batch_bytes_max(records: Sequence[KeyValue]) -> int:
    """Return an upper limit of the size of a batch of these records."""
    size = RECORDS_AT
    for key, value in records:
        size += len(key) + RECORD_OVERHEAD_MAX
        if value is not None:
            size += len(value)
    return size


def split(records: Sequence[KeyValue], bytes_max: int) -> Iterator[tuple[KeyValue, ...]]:
    """Split records into parts that fit in a batch each. A record that is too large gets a part of its own."""
    first, size = 0, RECORDS_AT
    for index, record in enumerate(records):
        record_size = batch_bytes_max((record,)) - RECORDS_AT
        if index > first and size + record_size > bytes_max:
            yield tuple(records[first:index])
            first, size = index, RECORDS_AT
        size += record_size
    yield tuple(records[first:])


def build(records: Sequence[KeyValue], now_ms: int, codec: int = 0) -> bytearray:
    """Build the batch that an InternalPartition appends. All records have the same timestamp; offsets start at 0."""
    parts: list[bytes] = []
    for index, (key, value) in enumerate(records):
        length = _NULL if value is None else _length(len(value))
        body = b"\0\0%b%b%b%b%b\0" % (_length(index), _length(len(key)), key, length, value or b"")
        parts += (_length(len(body)), body)
    payload = b"".join(parts)
    if codec:
        from ottla.wire.compression import compress

        payload = bytes(compress(codec, payload, None))
    count = len(records)
    batch = bytearray(
        HEADER.pack(
            0,
            len(payload) + RECORDS_AT - LENGTH_OVERHEAD,
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            codec,
            count - 1,
            now_ms,
            now_ms,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            count,
        )
    )
    batch += payload
    write_checksum(batch)
    return batch


def _length(value: int) -> bytes:
    """Encode a non-negative varint."""
    return _LENGTHS[value] if value < _LENGTHS_COUNT else varint(value)


class BatchReader:
    """Reader of a log, batch by batch. Records of a transaction are returned once its commit marker is read."""

    def __init__(self) -> None:
        self._open: dict[int, list[LoadedRecord]] = {}
        """By producer id."""

    @property
    def open_transactions(self) -> int:
        return len(self._open)

    def read(self, data: bytes) -> Iterator[tuple[int, list[LoadedRecord]]]:
        """Yield for each complete batch the offset after it, and the records to replay: offsets, keys and values."""
        for position, header in iterate_batches(data):
            records = _read_records(data, position, header)
            if header.attributes & (CONTROL_BIT | TRANSACTIONAL_BIT):
                records = self._visible(header, records)
            yield header.last_offset + 1, records

    def _visible(self, header: BatchHeader, records: list[LoadedRecord]) -> list[LoadedRecord]:
        """Return the records that a batch of a transaction, or its marker, makes visible."""
        if not header.is_control:
            self._open.setdefault(header.producer_id, []).extend(records)
            return []
        if not header.is_transactional:
            return []
        written = self._open.pop(header.producer_id, [])
        return written if records and _is_commit(records[0][1]) else []


def _is_commit(key: bytes | None) -> bool:
    """Return whether a control record is a commit marker. Its key is a version and a type of two bytes each."""
    return key is not None and len(key) >= 4 and int.from_bytes(key[2:4], "big") == _COMMIT


def _read_records(data: bytes, position: int, header: BatchHeader) -> list[LoadedRecord]:
    """Return the records of the batch at a position."""
    if header.attributes & CODEC_MASK:
        payload = read_payload(data, header, position)
    else:
        payload = data[position + RECORDS_AT : position + LENGTH_OVERHEAD + header.length]
    base_offset = header.base_offset
    return [
        (
            base_offset + offset_delta,
            None if key_size < 0 else payload[key_at : key_at + key_size],
            None if value_size < 0 else payload[value_at : value_at + value_size],
        )
        for _, offset_delta, key_at, key_size, value_at, value_size, _ in scan_records(payload, header.record_count)
    ]
