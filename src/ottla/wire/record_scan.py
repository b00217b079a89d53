"""Reading the records inside a batch one after another, in Python.

`scan_records` is the full parser: whatever the faster readers of `record_columns` and `collect_stats_fast` do not
understand goes through it, and its result is final. All of them agree on valid batches.
"""

from collections.abc import Iterator
from struct import Struct, error
from typing import NamedTuple

from ottla.wire.errors import MalformedMessage
from ottla.wire.varint import VARINT_BYTES_MAX, read_varint, read_varlong

HEADERS_MAX = 100_000
"""Headers of one record. Apache Kafka has no limit; a header takes only two bytes, and much less when compressed."""
RECORD_BYTES_MIN = 7
"""Size of the smallest record: one byte per field, no key, an empty value, no headers."""
NO_DELTA = 1 << 64
"""Larger than any timestamp delta."""

ScannedRecord = tuple[int, int, int, int, int, int, int]
"""Timestamp delta, offset delta, position and size of the key, position and size of the value, position of the headers.

A size is negative if the key or value is null."""

_read_8_bytes = Struct("8B").unpack_from
_new_tuple = tuple.__new__
"""Skips `NamedTuple.__new__`, a Python function that takes as long as creating the tuple."""


class RecordLengthTooLong(MalformedMessage):
    """The length of a record takes more than five bytes. Apache Kafka reports a different error for it."""


class RecordStats(NamedTuple):
    """Properties of the records of a batch that validation checks."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    has_null_key: bool
    has_consecutive_offsets: bool
    """Whether the offset deltas are 0, 1, 2, ...; may be true unchecked if the caller does not ask for the check."""


def scan_records(data: bytes | memoryview, record_count: int, *, check_lengths: bool = True) -> Iterator[ScannedRecord]:
    """Yield the records, which must fill `data`; raise MalformedMessage at the first error.

    `check_lengths=False` ignores the length of each record, as Apache Kafka does for compressed batches that it stores
    unchanged.
    """
    data_end = len(data)
    position = 0
    try:
        for _ in range(record_count):
            size, position = _read_length(data, position, check_lengths=check_lengths)
            end = position + size
            timestamp_delta, position = read_varlong(data, position + 1)  # skips the attributes, which are unused
            offset_delta, position = read_varint(data, position)
            key_size, key_at = read_varint(data, position)
            value_size, value_at = read_varint(data, key_at + key_size if key_size > 0 else key_at)
            headers_at = value_at + value_size if value_size > 0 else value_at
            position = _skip_headers(data, headers_at) if data[headers_at] else headers_at + 1
            if position > data_end:
                raise MalformedMessage("a record extends past the end of its batch")
            if position != end and check_lengths:
                raise MalformedMessage(f"record length is {size} bytes, but its fields take {size + position - end}")
            yield timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, headers_at
    except IndexError:
        raise MalformedMessage("a record extends past the end of its batch") from None
    if position != data_end:
        raise MalformedMessage(f"{data_end - position} bytes after the last record")


def _read_length(data: bytes | memoryview, position: int, *, check_lengths: bool) -> tuple[int, int]:
    try:
        return read_varint(data, position)
    except MalformedMessage:
        if check_lengths and len(data) - position >= VARINT_BYTES_MAX:
            raise RecordLengthTooLong("the length of a record takes more than five bytes") from None
        raise


def _skip_headers(data: bytes | memoryview, position: int) -> int:
    count, position = read_varint(data, position)
    if not 0 <= count <= min(len(data) - position, HEADERS_MAX):
        raise MalformedMessage(f"record has {count} headers; the limit is {HEADERS_MAX}")
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise MalformedMessage("record header without a key")
        size, position = read_varint(data, position + size)
        if size > 0:
            position += size
    return position


def read_headers(data: bytes, position: int) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of a record that `scan_records` has checked."""
    count, position = read_varint(data, position)
    headers = []
    for _ in range(count):
        size, position = read_varint(data, position)
        name = data[position : position + size]
        size, position = read_varint(data, position + size)
        headers.append((name.decode("utf-8", "replace"), data[position : position + size] if size >= 0 else None))
        if size > 0:
            position += size
    return tuple(headers)


def collect_stats(data: bytes | memoryview, record_count: int, *, check_lengths: bool = True) -> RecordStats:
    """Return the stats of at least one record, or raise MalformedMessage."""
    lowest, highest, has_null_key, consecutive = NO_DELTA, -NO_DELTA, False, True
    records = scan_records(data, record_count, check_lengths=check_lengths)
    for index, (timestamp_delta, offset_delta, _, key_size, _, _, _) in enumerate(records):
        if timestamp_delta < lowest:
            lowest = timestamp_delta
        if timestamp_delta > highest:
            highest = timestamp_delta
        if key_size < 0:
            has_null_key = True
        if offset_delta != index:
            consecutive = False
    return RecordStats(lowest, highest, has_null_key, consecutive)


def collect_stats_fast(
    data: bytes | memoryview, record_count: int, *, check_offsets: bool = False
) -> RecordStats | None:
    """Return the stats of records whose lengths and deltas all take one or two bytes; None for any other records.

    Reads eight bytes of a record at once and names them: 0.25 µs per record, where `collect_stats` takes 0.65.
    Longer than 50 lines on purpose: a call per record would add 0.06 µs.
    """
    position, lowest, highest = 0, NO_DELTA, -NO_DELTA
    has_null_key, consecutive = False, True
    try:
        for index in range(record_count):
            b0, b1, b2, b3, b4, b5, b6, b7 = _read_8_bytes(data, position)
            if b0 < 128:
                end = position + 1 + (b0 >> 1)
                position += 4
                delta, offset, key, value, high = b2, b3, b4, b5, b6
            elif b1 < 128:
                end = position + 2 + ((b0 & 127 | b1 << 7) >> 1)
                position += 5
                delta, offset, key, value, high = b3, b4, b5, b6, b7
            else:
                return None
            if (b0 | delta) & 1:
                return None
            if delta > 127:
                if offset > 127:
                    return None
                delta = delta & 127 | offset << 7
                offset, key, value, high = data[position], data[position + 1], data[position + 2], data[position + 3]
                position += 1
            if delta > highest:
                highest = delta
            if delta < lowest:
                lowest = delta
            if offset > 127:
                if data[position] > 127:
                    return None
                offset = offset & 127 | data[position] << 7
                position += 1
                key, value, high = data[position], data[position + 1], data[position + 2]
            if check_offsets and offset != index << 1:
                consecutive = False
            if key == 1:
                has_null_key = True
                position += 1
            elif key & 0x81:
                return None
            else:
                position += 1 + (key >> 1)
                value, high = data[position], data[position + 1]
            if value & 1:
                return None
            if value < 128:
                position += 1 + (value >> 1)
            elif high < 128:
                position += 2 + ((value & 127 | high << 7) >> 1)
            else:
                return None
            headers = data[position]
            position += 1
            if headers:
                position = _skip_headers_fast(data, position, headers)
            if position != end:
                return None
    except (IndexError, error):
        return None  # fewer than eight bytes are left: `collect_stats` decides
    if position != len(data):
        return None
    return _new_tuple(RecordStats, (lowest >> 1, highest >> 1, has_null_key, consecutive))


def _skip_headers_fast(data: bytes | memoryview, position: int, twice_count: int) -> int:
    """Return where the headers of a record end; -1 if a length takes more than two bytes or is invalid."""
    if twice_count & 0x81:
        return -1
    for _ in range(twice_count >> 1):
        name = data[position]
        if name & 1:
            return -1
        if name < 128:
            position += 1 + (name >> 1)
        elif data[position + 1] < 128:
            position += 2 + ((name & 127 | data[position + 1] << 7) >> 1)
        else:
            return -1
        value = data[position]
        if value < 128:
            if value & 1 and value != 1:  # 1 is null; other negative lengths are left to `collect_stats`
                return -1
            position += 1 + (value >> 1)
        elif not value & 1 and data[position + 1] < 128:
            position += 2 + ((value & 127 | data[position + 1] << 7) >> 1)
        else:
            return -1
    return position
