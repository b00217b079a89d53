"""Encoded requests, and a blocking connection to send them.

Independent of Ottla's codecs, so that benchmarks do not share code with the measured product. All brokers get the same
bytes. Produce v13 and Fetch v17 (topics by id, as current clients speak), ApiVersions v0, CreateTopics v4, DeleteTopics
v3, Metadata v12.
"""

import os
import random
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import crc32c

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 3, 18, 19, 20
LEADER_SECONDS_MAX = 60.0
RESPONSE_SECONDS_MAX = 60.0
TOPIC_ID_SIZE = 16
PRODUCE_ERROR_AT = 27
"""Position of the error code, after the size, in a Produce response for one partition."""
TOPICS_PER_REQUEST = 50
LZ4_HEAD = bytes.fromhex("04224d18 60 40 82")
"""Magic, independent blocks without checksums, 64 kB each, and the checksum of these two bytes."""
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""In the order of their ids in the batch attributes."""


class BrokerError(Exception):
    """A broker returned an error or closed the connection, so the measurement is void."""


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
    """Return a batch with record sizes that vary around `record_size`, so that no broker can assume equal sizes."""
    sizes = random.Random(7)
    low, high = (record_size // 2, record_size * 3 // 2) if records > 1 else (record_size, record_size)
    return batch_of([os.urandom(sizes.randint(low, high)) for _ in range(records)])


def events(count: int) -> list[bytes]:
    """Return values of about 100 bytes of JSON, which compress to about a third."""
    chooser = random.Random(11)
    types, cities = (
        ("created", "paid", "packed", "shipped", "delivered"),
        ("Praha", "Brno", "Ostrava", "Lhota pod Horou"),
    )
    return [
        (
            f'{{"order":{chooser.randrange(10**9)},"event":"{chooser.choice(types)}",'
            f'"place":"{chooser.choice(cities)}","amount":{chooser.randrange(10**6) / 100},'
            f'"note":"{chooser.randbytes(chooser.randrange(4, 16)).hex()}"}}'
        ).encode()
        for _ in range(count)
    ]


def batch_of(values: Sequence[bytes], codec: Codec = "none") -> bytes:
    """Return a record batch with these values, without keys."""
    now_ms, body = int(time.time() * 1000), bytearray()
    for index, value in enumerate(values):
        record = b"\0" + varint(0) + varint(index) + varint(-1) + varint(len(value)) + value + varint(0)
        body += varint(len(record)) + record
    head = struct.pack(">hiqqqhii", CODECS.index(codec), len(values) - 1, now_ms, now_ms, -1, -1, -1, len(values))
    tail = head + compress(bytes(body), codec)
    return struct.pack(">qiibI", 0, 9 + len(tail), 0, 2, crc32c.crc32c(tail)) + tail


def compress(data: bytes, codec: Codec) -> bytes:
    """Compress like the Java producer: Snappy in Xerial's blocks, LZ4 as a frame of independent 64 kB blocks."""
    import cramjam

    match codec:
        case "none":
            return data
        case "gzip":
            return bytes(cramjam.gzip.compress(data))
        case "snappy":
            block = bytes(cramjam.snappy.compress_raw(data))
            return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block
        case "lz4":
            blocks = (
                bytes(cramjam.lz4.compress_block(data[at : at + 65536], store_size=False))
                for at in range(0, len(data), 65536)
            )
            return LZ4_HEAD + b"".join(struct.pack("<I", len(block)) + block for block in blocks) + bytes(4)
        case "zstd":
            return bytes(cramjam.zstd.compress(data, 3))


def frame(key: int, version: int, body: bytes, *, flexible: bool) -> bytes:
    message = struct.pack(">hhi", key, version, 1) + string("bench") + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(message)) + message


def produce(topic_id: bytes, records: bytes, *, partition: int = 0, acks: int = 1) -> bytes:
    """Encode a Produce request with one batch. With acks=0 there is no response."""
    part = struct.pack(">i", partition) + uvarint(len(records) + 1) + records + b"\0"
    return frame(
        PRODUCE, 13, b"\0" + struct.pack(">hi", acks, 30000) + b"\2" + topic_id + b"\2" + part + b"\0\0", flexible=True
    )


def produce_error(response: bytes | bytearray) -> int:
    code: int = struct.unpack_from(">h", response, PRODUCE_ERROR_AT)[0]
    return code


def api_versions() -> bytes:
    return frame(API_VERSIONS, 0, b"", flexible=False)


def metadata_of_all() -> bytes:
    """Encode a Metadata request for all topics."""
    return frame(METADATA, 12, b"\0" + b"\0\0\0", flexible=True)


def metadata_topic_count(response: bytes | bytearray) -> int:
    """Return the number of topics in a Metadata response."""
    data = bytearray(response)
    brokers, position = read_uvarint(data, 4 + 1 + 4)
    for _ in range(brokers - 1):
        host, position = read_uvarint(data, position + 4)
        rack, position = read_uvarint(data, position + host - 1 + 4)
        position += max(rack - 1, 0) + 1
    cluster, position = read_uvarint(data, position)
    topics, _ = read_uvarint(data, position + max(cluster - 1, 0) + 4)
    return topics - 1


def fetch(topic_id: bytes, offset: int, size: int) -> bytes:
    """Encode a Fetch request of at most `size` bytes for partition 0, without a session."""
    partition = struct.pack(">iiqiqi", 0, -1, offset, -1, -1, size) + b"\0"
    head = struct.pack(">iiibii", 500, 1, size, 0, 0, -1)
    return frame(
        FETCH,
        17,
        head + b"\2" + topic_id + b"\2" + partition + b"\0" + b"\1" + compact_string("") + b"\0",
        flexible=True,
    )


@dataclass(frozen=True, slots=True)
class Fetched:
    """Result of a Fetch response for one partition."""

    high_watermark: int
    size: int
    next_offset: int


def read_fetch(response: bytearray) -> Fetched:
    """Read a Fetch response. Batches of a filled topic have the same size after the first, which gives their count."""
    _, position = read_uvarint(response, 4 + 1 + 4 + 2 + 4)
    _, position = read_uvarint(response, position + TOPIC_ID_SIZE)
    _, error, high_watermark, _, _ = struct.unpack_from(">ihqqq", response, position)
    aborted, position = read_uvarint(response, position + 30)
    length, position = read_uvarint(response, position + 4)
    if error or aborted > 1 or length <= 1:
        raise BrokerError(f"fetch: error {error}, {length - 1} bytes")
    base_offset, batch_length = struct.unpack_from(">qi", response, position)
    last_delta: int = struct.unpack_from(">i", response, position + 23)[0]
    count = (length - 1) // (12 + batch_length)
    return Fetched(high_watermark, length - 1, base_offset + count * (last_delta + 1))


class Connection:
    """A blocking connection. A response is valid until the next one is received."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), RESPONSE_SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(4 << 20)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytearray:
        size: int = struct.unpack_from(">i", self._exactly(4))[0]
        return self._exactly(size)

    def request(self, data: bytes) -> bytearray:
        self.send(data)
        return self.receive()

    def request_sized(self, data: bytes) -> tuple[bytearray, int]:
        """Like `request`, and return the size of the response too, as the buffer may be longer."""
        self.send(data)
        size: int = struct.unpack_from(">i", self._exactly(4))[0]
        return self._exactly(size), size

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytearray:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view, got = memoryview(self._buffer), 0
        while got < size:
            received = self._socket.recv_into(view[got:size])
            if not received:
                raise BrokerError("the broker closed the connection")
            got += received
        return self._buffer


def create_topics(connection: Connection, names: Sequence[str], *, partitions: int = 1) -> None:
    """Create topics, several per request, and check the responses."""
    for start in range(0, len(names), TOPICS_PER_REQUEST):
        part = names[start : start + TOPICS_PER_REQUEST]
        topics = b"".join(string(name) + struct.pack(">ihii", partitions, 1, 0, 0) for name in part)
        body = struct.pack(">i", len(part)) + topics + struct.pack(">ib", 60000, 0)
        response = connection.request(frame(CREATE_TOPICS, 4, body, flexible=False))
        position = 12
        for _ in part:
            position += 2 + int(struct.unpack_from(">h", response, position)[0])
            error, message = struct.unpack_from(">hh", response, position)
            if error:
                raise BrokerError(f"topics could not be created: error {error}")
            position += 4 + max(message, 0)


def create_topic(connection: Connection, name: str, *, partitions: int = 1) -> bytes:
    """Create a topic, wait until each partition accepts a record, and return the topic id."""
    create_topics(connection, [name], partitions=partitions)
    named, deadline, first = compact_string(name), time.monotonic() + LEADER_SECONDS_MAX, batch(1, 10)
    topic_id, led = b"", 0
    while time.monotonic() < deadline:
        if not topic_id:
            response = connection.request(
                frame(METADATA, 12, b"\2" + bytes(TOPIC_ID_SIZE) + named + b"\0\0\0\0", flexible=True)
            )
            found = response.find(named, 5)
            seen = bytes(response[found + len(named) : found + len(named) + TOPIC_ID_SIZE]) if found > 0 else b""
            topic_id = seen if any(seen) else b""
        while topic_id and produce_error(connection.request(produce(topic_id, first, partition=led))) == 0:
            led += 1
            if led == partitions:
                return topic_id
        time.sleep(0.05)
    raise BrokerError(f"partition {led} of topic {name} has no leader")


def delete_topics(connection: Connection, names: Sequence[str]) -> None:
    """Delete topics, without checking the result: the broker's directory is removed anyway."""
    for start in range(0, len(names), TOPICS_PER_REQUEST):
        part = names[start : start + TOPICS_PER_REQUEST]
        body = struct.pack(">i", len(part)) + b"".join(map(string, part)) + struct.pack(">i", 60000)
        connection.request(frame(DELETE_TOPICS, 3, body, flexible=False))


def delete_topic(connection: Connection, name: str) -> None:
    delete_topics(connection, [name])
