"""Encode and decode the record batches of a coordinator shard.

Both are hot paths (an offset commit; a start with 100,000 commits) and handle only what coordinators write: records
without headers.
"""

from collections.abc import Iterator, Sequence

from ottla.base.ports import Buffer
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
    decode_records,
    iterate_batches,
    write_checksum,
)
from ottla.wire.varint import varint

KeyValue = tuple[bytes, bytes | None]
"""A record; one without a value is a tombstone."""

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
        self._open: dict[int, list[tuple[int, bytes | None, bytes | None]]] = {}
        """By producer id."""

    @property
    def open_transactions(self) -> int:
        return len(self._open)

    def read(self, data: bytes) -> Iterator[tuple[int, list[tuple[int, bytes | None, bytes | None]]]]:
        """Yield for each complete batch the offset after it, and the records to replay: offsets, keys and values."""
        for position, header in iterate_batches(data):
            attributes = header.attributes
            if not attributes & (CODEC_MASK | CONTROL_BIT | TRANSACTIONAL_BIT):
                yield header.last_offset + 1, _read_plain(data, position, header)
            else:
                yield header.last_offset + 1, self._read_other(header, data[position : position + header.size])

    def _read_other(self, header: BatchHeader, batch: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
        records = [(record.offset, record.key, record.value) for record in decode_records(batch)]
        if header.is_control:
            if not header.is_transactional:
                return []
            written = self._open.pop(header.producer_id, [])
            return written if records and _is_commit(records[0][1]) else []
        if header.is_transactional:
            self._open.setdefault(header.producer_id, []).extend(records)
            return []
        return records


def _is_commit(key: bytes | None) -> bool:
    """Return whether the key of a control record, a version and a type of two bytes each, is that of a commit marker."""
    return key is not None and len(key) >= 4 and int.from_bytes(key[2:4], "big") == _COMMIT


def _read_plain(data: Buffer, position: int, header: BatchHeader) -> list[tuple[int, bytes | None, bytes | None]]:
    """Decode a batch that is not compressed, transactional or a control batch.

    Reads lengths of one or two bytes in place: 1.1 µs per record, compared to 5 µs with `decode_records`. It
    stays in one function, over the limit of 50 lines, because calls per field would slow this hot path.
    """
    end = position + header.size
    at = position + RECORDS_AT
    found: list[tuple[int, bytes | None, bytes | None]] = []
    offset = header.base_offset
    try:
        for _ in range(header.record_count):
            size = data[at]
            at += 1
            if size > 127:
                more = data[at]
                at += 1
                if more > 127:
                    return _read_slowly(data, position, header)
                size = size & 127 | more << 7
            stop = at + (size >> 1)
            delta = data[at + 2]
            if data[at + 1] > 127 or delta > 127:
                return _read_slowly(data, position, header)
            at += 3
            length = data[at]
            at += 1
            if length & 1:
                return _read_slowly(data, position, header)
            if length > 127:
                more = data[at]
                at += 1
                if more > 127:
                    return _read_slowly(data, position, header)
                length = length & 127 | more << 7
            key = bytes(data[at : at + (length >> 1)])
            at += length >> 1
            length = data[at]
            at += 1
            value: bytes | None
            if length == 1:
                value = None
            else:
                if length > 127:
                    more = data[at]
                    at += 1
                    if more > 127:
                        return _read_slowly(data, position, header)
                    length = length & 127 | more << 7
                if length & 1:
                    return _read_slowly(data, position, header)
                value = bytes(data[at : at + (length >> 1)])
                at += length >> 1
            if data[at] or at + 1 != stop:
                return _read_slowly(data, position, header)
            at = stop
            found.append((offset + (delta >> 1), key, value))
    except IndexError:
        return _read_slowly(data, position, header)
    return found if at == end else _read_slowly(data, position, header)


def _read_slowly(data: Buffer, position: int, header: BatchHeader) -> list[tuple[int, bytes | None, bytes | None]]:
    """Decode any batch. Raises MalformedMessage."""
    records = decode_records(bytes(memoryview(data)[position : position + header.size]))
    return [(record.offset, record.key, record.value) for record in records]
