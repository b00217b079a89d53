"""Requests as bytes, and a blocking connection to send them on.

Written apart from the product's own codecs: what measures a thing does not share code with it, and the same bytes go to every broker.
Produce v13 and Fetch v17 (topics by id, as current clients speak), CreateTopics v4, DeleteTopics v3, Metadata v12.
"""

import os
import random
import socket
import struct
import time
from dataclasses import dataclass

import crc32c

PRODUCE, FETCH, METADATA, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 3, 19, 20
LEADER_SECONDS_MAX = 30.0
TOPIC_ID_SIZE = 16


class BrokerRefused(Exception):
    """A broker answered with an error, or closed the connection: the figure would mean nothing."""


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    return uvarint(((value << 1) ^ (value >> 63)) & (2**64 - 1))


def read_uvarint(data: bytearray, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def compact_string(text: str) -> bytes:
    return uvarint(len(text) + 1) + text.encode()


def batch(records: int, record_size: int) -> bytes:
    """A record batch of varying sizes around `record_size`, so that nothing is gained by guessing that they are alike."""
    sizes, now_ms, body = random.Random(7), int(time.time() * 1000), bytearray()
    for index in range(records):
        value = os.urandom(sizes.randint(record_size // 2, record_size * 3 // 2) if records > 1 else record_size)
        record = b"\0" + varint(0) + varint(index) + varint(-1) + varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    tail = struct.pack(">hiqqqhii", 0, records - 1, now_ms, now_ms, -1, -1, -1, records) + body
    return struct.pack(">qiibI", 0, 9 + len(tail), 0, 2, crc32c.crc32c(tail)) + tail


def frame(key: int, version: int, body: bytes, *, flexible: bool) -> bytes:
    message = struct.pack(">hhi", key, version, 1) + string("bench") + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(message)) + message


def produce(topic_id: bytes, records: bytes) -> bytes:
    """To partition 0, acks=1."""
    partition = struct.pack(">i", 0) + uvarint(len(records) + 1) + records + b"\0"
    return frame(PRODUCE, 13, b"\0" + struct.pack(">hi", 1, 30000) + b"\2" + topic_id + b"\2" + partition + b"\0\0", flexible=True)


def produce_error(answer: bytearray) -> int:
    code: int = struct.unpack_from(">h", answer, 27)[0]
    return code


def fetch(topic_id: bytes, offset: int, size: int) -> bytes:
    """From partition 0, at most `size` bytes, outside of any session."""
    partition = struct.pack(">iiqiqi", 0, -1, offset, -1, -1, size) + b"\0"
    head = struct.pack(">iiibii", 500, 1, size, 0, 0, -1)
    return frame(FETCH, 17, head + b"\2" + topic_id + b"\2" + partition + b"\0" + b"\1" + compact_string("") + b"\0", flexible=True)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One partition's part of a Fetch answer."""

    high_watermark: int
    size: int
    next_offset: int


def read_fetch(answer: bytearray) -> Fetched:
    """All batches of a filled topic are alike but the first, so the first that was returned says how many whole ones there are."""
    _, position = read_uvarint(answer, 4 + 1 + 4 + 2 + 4)
    _, position = read_uvarint(answer, position + TOPIC_ID_SIZE)
    _, error, high_watermark, _, _ = struct.unpack_from(">ihqqq", answer, position)
    aborted, position = read_uvarint(answer, position + 30)
    length, position = read_uvarint(answer, position + 4)
    if error or aborted > 1 or length <= 1:
        raise BrokerRefused(f"fetch: error {error}, {length - 1} bytes")
    base_offset, batch_length = struct.unpack_from(">qi", answer, position)
    last_delta: int = struct.unpack_from(">i", answer, position + 23)[0]
    whole = (length - 1) // (12 + batch_length)
    return Fetched(high_watermark, length - 1, base_offset + whole * (last_delta + 1))


class Connection:
    """Blocking, without delay; an answer is valid until the next one is received."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(4 << 20)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytearray:
        size: int = struct.unpack_from(">i", self._exactly(4))[0]
        return self._exactly(size)

    def ask(self, data: bytes) -> bytearray:
        self.send(data)
        return self.receive()

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytearray:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view, got = memoryview(self._buffer), 0
        while got < size:
            received = self._socket.recv_into(view[got:size])
            if not received:
                raise BrokerRefused("the broker closed the connection")
            got += received
        return self._buffer


def create_topic(connection: Connection, name: str, *, partitions: int = 1) -> bytes:
    """Create a topic, wait until the leader of its first partition has taken a record, return the topic's id."""
    topic = string(name) + struct.pack(">ihii", partitions, 1, 0, 0)
    connection.ask(frame(CREATE_TOPICS, 4, struct.pack(">i", 1) + topic + struct.pack(">ib", 30000, 0), flexible=False))
    named, deadline = compact_string(name), time.monotonic() + LEADER_SECONDS_MAX
    while time.monotonic() < deadline:
        answer = connection.ask(frame(METADATA, 12, b"\2" + bytes(TOPIC_ID_SIZE) + named + b"\0\0\0\0", flexible=True))
        found = answer.find(named, 5)
        topic_id = bytes(answer[found + len(named) : found + len(named) + TOPIC_ID_SIZE]) if found > 0 else b""
        if any(topic_id) and produce_error(connection.ask(produce(topic_id, batch(1, 10)))) == 0:
            return topic_id
        time.sleep(0.05)
    raise BrokerRefused(f"topic {name} has no leader")


def delete_topic(connection: Connection, name: str) -> None:
    connection.ask(frame(DELETE_TOPICS, 3, struct.pack(">i", 1) + string(name) + struct.pack(">i", 30000), flexible=False))
