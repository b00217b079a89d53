"""A load that detects errors: numbered, hashed records with acks=all, each acknowledged at its offset and read back by
a consumer.

Producer and consumer run in separate processes, so that latencies do not include the other's use of the GIL.
"""

import hashlib
import random
import struct
import time
from dataclasses import dataclass

from bench import frames
from bench.frames import BrokerError, Connection, read_uvarint

PAUSE_SECONDS = 0.002
RECORDS_MAX = 5
VALUE_BYTES_MAX = 300
FETCH_BYTES = 1 << 20
DIGEST_BYTES = 8
BASE_OFFSET_AT = frames.PRODUCE_ERROR_AT + 2


@dataclass(frozen=True, slots=True)
class Produced:
    """Number of acknowledged records, and the latency of each request."""

    count: int
    latencies: list[float]


def value_of(number: int, source: random.Random) -> bytes:
    body = struct.pack(">q", number) + source.randbytes(source.randrange(VALUE_BYTES_MAX))
    return body + hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


def number_in(value: bytes) -> int:
    """Raises ValueError unless the value is one that was sent."""
    body, digest = value[:-DIGEST_BYTES], value[-DIGEST_BYTES:]
    if len(body) < 8 or hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != digest:
        raise ValueError(f"unknown value: {value[:40]!r}")
    number: int = struct.unpack_from(">q", body)[0]
    return number


def produce_checked(port: int, topic_id: bytes, first: int, seconds: float) -> Produced:
    """Produce one request at a time, with pauses. Raises BrokerError if one fails or its offset is not the next."""
    connection, source, clock = Connection(port), random.Random(first), time.perf_counter
    number, latencies = first, []
    end = clock() + seconds
    while clock() < end:
        values = [value_of(number + index, source) for index in range(source.randint(1, RECORDS_MAX))]
        started = clock()
        response = connection.request(frames.produce(topic_id, frames.batch_of(values), acks=-1))
        latencies.append(clock() - started)
        base_offset: int = struct.unpack_from(">q", response, BASE_OFFSET_AT)[0]
        if frames.produce_error(response) or base_offset != number:
            raise BrokerError(f"record {number}: error {frames.produce_error(response)}, offset {base_offset}")
        number += len(values)
        time.sleep(PAUSE_SECONDS)
    connection.close()
    return Produced(number, latencies)


def consume_checked(port: int, topic_id: bytes, first: int, seconds: float, until: int | None = None) -> int:
    """Read from an offset on, for some seconds or up to offset `until`. Return the offset after the last record.

    Raises ValueError if a record is not at its offset, BrokerError if records are missing.
    """
    connection, offset = Connection(port), first
    end = time.monotonic() + seconds
    while time.monotonic() < end and (until is None or offset < until):
        records = records_in(connection.request(frames.fetch(topic_id, offset, FETCH_BYTES)))
        for at, value in values_in(records):
            if at >= offset:
                if at != offset or number_in(value) != offset:
                    raise ValueError(f"record {number_in(value)} at offset {at}, expected {offset}")
                offset += 1
    connection.close()
    if until is not None and offset != until:
        raise BrokerError(f"{until - offset} records are missing")
    return offset


def records_in(response: bytearray) -> bytearray:
    """Return the batches of a Fetch response for one partition. Raises BrokerError if it has an error code."""
    _, position = read_uvarint(response, 4 + 1 + 4 + 2 + 4)
    _, position = read_uvarint(response, position + frames.TOPIC_ID_SIZE)
    error: int = struct.unpack_from(">h", response, position + 4)[0]
    _, position = read_uvarint(response, position + 30)
    length, position = read_uvarint(response, position + 4)
    if error:
        raise BrokerError(f"fetch: error {error}")
    return response[position : position + max(length - 1, 0)]


def values_in(records: bytearray) -> list[tuple[int, bytes]]:
    """Return (offset, value) of the records in all complete, uncompressed batches."""
    found, position = [], 0
    while position + 61 <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        end = position + 12 + length
        if end > len(records):
            break
        count: int = struct.unpack_from(">i", records, position + 57)[0]
        position += 61
        for index in range(count):
            size, position = read_uvarint(records, position)
            record_end = position + size // 2
            _, position = read_uvarint(records, position + 1)  # timestamp
            _, position = read_uvarint(records, position)  # offset
            _, position = read_uvarint(records, position)  # key (null)
            value_size, position = read_uvarint(records, position)
            found.append((base_offset + index, bytes(records[position : position + value_size // 2])))
            position = record_end
        position = end
    return found
