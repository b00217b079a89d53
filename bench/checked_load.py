"""A load that notices what is wrong: numbered, hashed records with acks=all, each acknowledged at its offset, and read back by a consumer.

Each side has a process of its own, so that its times are those of the broker and not of its neighbour's turn at the interpreter.
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
    """What a producer was promised: records, and how long each request took."""

    count: int
    waits: list[float]


def value_of(number: int, source: random.Random) -> bytes:
    body = struct.pack(">q", number) + source.randbytes(source.randrange(VALUE_BYTES_MAX))
    return body + hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


def number_in(value: bytes) -> int:
    """ValueError unless the value is one that was sent."""
    body, digest = value[:-DIGEST_BYTES], value[-DIGEST_BYTES:]
    if len(body) < 8 or hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != digest:
        raise ValueError(f"a value that nobody sent: {value[:40]!r}")
    number: int = struct.unpack_from(">q", body)[0]
    return number


def produce_checked(port: int, topic_id: bytes, first: int, seconds: float) -> Produced:
    """One request at a time, with a pause between them. BrokerError where one fails or its offset is not the next one."""
    connection, source, clock = Connection(port), random.Random(first), time.perf_counter
    number, waits = first, []
    end = clock() + seconds
    while clock() < end:
        values = [value_of(number + index, source) for index in range(source.randint(1, RECORDS_MAX))]
        began = clock()
        response = connection.request(frames.produce(topic_id, frames.batch_of(values), acks=-1))
        waits.append(clock() - began)
        base_offset: int = struct.unpack_from(">q", response, BASE_OFFSET_AT)[0]
        if frames.produce_error(response) or base_offset != number:
            raise BrokerError(f"record {number}: error {frames.produce_error(response)}, offset {base_offset}")
        number += len(values)
        time.sleep(PAUSE_SECONDS)
    connection.close()
    return Produced(number, waits)


def consume_checked(port: int, topic_id: bytes, first: int, seconds: float, until: int | None = None) -> int:
    """Read from an offset on, for a while or until there is nothing left to come; the offset after the last record is returned.

    ValueError where a record is not what stood at its offset, BrokerError where records are missing.
    """
    connection, offset = Connection(port), first
    end = time.monotonic() + seconds
    while time.monotonic() < end and (until is None or offset < until):
        records = records_in(connection.request(frames.fetch(topic_id, offset, FETCH_BYTES)))
        for at, value in values_in(records):
            if at >= offset:
                if at != offset or number_in(value) != offset:
                    raise ValueError(f"record {number_in(value)} at offset {at}, where {offset} should be")
                offset += 1
    connection.close()
    if until is not None and offset != until:
        raise BrokerError(f"{until - offset} records cannot be read any more")
    return offset


def records_in(response: bytearray) -> bytearray:
    """The batches of a Fetch response of one partition; BrokerError where it has an error."""
    _, position = read_uvarint(response, 4 + 1 + 4 + 2 + 4)
    _, position = read_uvarint(response, position + frames.TOPIC_ID_SIZE)
    error: int = struct.unpack_from(">h", response, position + 4)[0]
    _, position = read_uvarint(response, position + 30)
    length, position = read_uvarint(response, position + 4)
    if error:
        raise BrokerError(f"fetch: error {error}")
    return response[position : position + max(length - 1, 0)]


def values_in(records: bytearray) -> list[tuple[int, bytes]]:
    """(offset, value) of all whole batches, which are not compressed."""
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
            _, position = read_uvarint(records, position + 1)  # the timestamp
            _, position = read_uvarint(records, position)  # the offset
            _, position = read_uvarint(records, position)  # the key, which is null
            value_size, position = read_uvarint(records, position)
            found.append((base_offset + index, bytes(records[position : position + value_size // 2])))
            position = record_end
        position = end
    return found
