"""Record batches of format 2: the unit in which records are sent, stored and checksummed."""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from ottla.base.ports import Buffer
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_scan import read_headers, scan_records
from ottla.wire.varint import varint, varlong

HEADER = Struct(">qiibIhiqqqhii")
"""The fields of BatchHeader, in order."""

LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
"""The checksum covers the bytes from here on."""
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
COUNT_AT = 57
RECORDS_AT = 61

LENGTH_OVERHEAD = 12
"""The length field counts the bytes after it: a batch is this much larger than its length."""
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
KNOWN_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
"""Attributes that are kept when a header is rewritten; the timestamp type is set from the topic."""

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

OUTPUT_BYTES_MAX = 1 << 30
"""Default limit for the records of one batch after decompression."""

_u32 = Struct(">I")

RecordHeaders = tuple[tuple[str, bytes | None], ...]


class BatchHeader(NamedTuple):
    """The header of a batch: the 61 bytes before the records."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0


class Record(NamedTuple):
    """One record. `build_batch` ignores the offset and numbers the records by position."""

    offset: int = 0
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: RecordHeaders = ()


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Parse the header at a position. Raises MalformedMessage if the buffer ends inside it."""
    if len(buffer) - position < RECORDS_AT:
        raise MalformedMessage(f"record batch header takes {RECORDS_AT} bytes; {len(buffer) - position} remain")
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def iterate_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each complete batch; an incomplete one at the end, as in fetched bytes, is
    skipped."""
    position, end = 0, len(buffer)
    while end - position >= RECORDS_AT:
        header = BatchHeader._make(HEADER.unpack_from(buffer, position))
        if header.length < RECORDS_AT - LENGTH_OVERHEAD or header.magic != MAGIC:
            raise MalformedMessage(
                f"no record batch at position {position}: length {header.length}, magic {header.magic}"
            )
        if end - position < header.size:
            return
        yield position, header
        position += header.size


def has_valid_checksum(batch: Buffer) -> bool:
    """Return whether the checksum of one complete batch matches."""
    stored: int = _u32.unpack_from(batch, CRC_AT)[0]
    return crc32c(memoryview(batch)[ATTRIBUTES_AT:]) == stored


def read_payload(
    buffer: Buffer, header: BatchHeader, position: int = 0, *, output_max: int = OUTPUT_BYTES_MAX
) -> bytes:
    """Return the records of the batch at a position, decompressed; raise MalformedMessage if they exceed `output_max`
    bytes."""
    payload = bytes(memoryview(buffer)[position + RECORDS_AT : position + header.size])
    if not header.codec:
        return payload
    from ottla.wire.compression import decompress

    return decompress(header.codec, payload, output_max)


def decode_records(batch: Buffer, *, output_max: int = OUTPUT_BYTES_MAX) -> list[Record]:
    """Return the records of one complete batch; raise MalformedMessage if it does not contain valid records."""
    header = read_header(batch)
    return decode_payload(header, read_payload(batch, header, output_max=output_max))


def decode_payload(header: BatchHeader, payload: bytes) -> list[Record]:
    """Return the records of a batch, given its header and its decompressed payload."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.has_log_append_time else None
    return [
        Record(
            base_offset + offset_delta,
            base_timestamp + timestamp_delta if append_time is None else append_time,
            None if key_size < 0 else payload[key_at : key_at + key_size],
            None if value_size < 0 else payload[value_at : value_at + value_size],
            read_headers(payload, headers_at) if payload[headers_at] else (),
        )
        for timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, headers_at in scan_records(
            payload, header.record_count
        )
    ]


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    is_control: bool = False,
    is_transactional: bool = False,
    log_append_time: int | None = None,
    compression_level: int | None = None,
) -> bytearray:
    """Build a batch of at least one record. `log_append_time` replaces the timestamps of all records."""
    listed = list(records)
    base_timestamp = listed[0].timestamp
    payload = _encode_payload(listed, base_timestamp, codec, compression_level)
    attributes = codec
    max_timestamp = max(record.timestamp for record in listed)
    if log_append_time is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = log_append_time
    if is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if is_control:
        attributes |= CONTROL_BIT
    batch = bytearray(RECORDS_AT)
    length = len(payload) + RECORDS_AT - LENGTH_OVERHEAD
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        length,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        len(listed) - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(listed),
    )
    batch += payload
    write_checksum(batch)
    return batch


def _encode_payload(records: list[Record], base_timestamp: int, codec: int, compression_level: int | None) -> bytes:
    payload = bytearray()
    for index, record in enumerate(records):
        body = _encode_body(index, record, record.timestamp - base_timestamp)
        payload += varint(len(body))
        payload += body
    if not codec:
        return bytes(payload)
    from ottla.wire.compression import compress

    return compress(codec, payload, compression_level)


def write_checksum(batch: bytearray | memoryview) -> None:
    """Update the checksum of one complete batch."""
    _u32.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))


def _encode_body(offset_delta: int, record: Record, timestamp_delta: int) -> bytes:
    parts = [b"\0", varlong(timestamp_delta), varint(offset_delta)]
    for field in (record.key, record.value):
        _encode_bytes(field, parts)
    parts.append(varint(len(record.headers)))
    for name, content in record.headers:
        _encode_bytes(name.encode(), parts)
        _encode_bytes(content, parts)
    return b"".join(parts)


def _encode_bytes(field: bytes | None, parts: list[bytes]) -> None:
    if field is None:
        parts.append(varint(-1))
    else:
        parts.append(varint(len(field)))
        parts.append(field)
