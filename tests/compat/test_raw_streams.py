"""Byte streams: pipelined, in pieces, oversized, incomplete, or read slowly."""

import random
import re
import struct
import time
from pathlib import Path

import pytest

from ottla.wire.batches import Record, build_batch
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.schema import Message
from tests.compat.conftest import Broker, MakeTopic
from tests.compat.raw import ConnectionClosed, RawConnection, framed, header_bytes, read_response, request_bytes
from tests.compat.record import noise

REQUEST_BYTES_MAX = 104_857_600
"""The default of socket.request.max.bytes."""


def produce(topic: str, *values: bytes, acks: int = -1) -> ProduceRequest:
    batch = build_batch([Record(0, 1_700_000_000_000, None, value) for value in values])
    data = [PartitionProduceData(index=0, records=bytes(batch))]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def fetch(topic: str, offset: int, *, partition_max_bytes: int = 1 << 20, **fields: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    values: dict[str, int] = {"max_wait_ms": 0, "min_bytes": 1, **fields}
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[partition])], **values)


def end_offset(topic: str) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=-1)])]
    )


@pytest.fixture
def ready_topic(broker: Broker, make_topic: MakeTopic) -> str:
    """A topic whose leader is ready."""
    topic = make_topic(1, max_message_bytes="20000000")
    wait_for_leader(broker, topic)
    return topic


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, or 0 without /proc."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"^VmRSS:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    return int(found[1]) * 1024 if found else 0


def wait_for_leader(broker: Broker, topic: str) -> None:
    with RawConnection(broker.address) as connection:
        deadline = time.monotonic() + 15
        while connection.call(end_offset(topic), 7).topics[0].partitions[0].error_code:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def some_requests(topic: str, count: int) -> list[tuple[Message, int]]:
    chosen = random.Random(7)
    kinds: list[tuple[Message, int]] = [
        (ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4),
        (MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12),
        (produce(topic, b"value"), 9),
        (produce(topic, b"value", acks=1), 3),
        (fetch(topic, 0), 12),
        (end_offset(topic), 7),
        (fetch(topic, 0, min_bytes=1 << 20, max_wait_ms=20), 4),  # it waits, and later requests must not overtake it
    ]
    return [chosen.choice(kinds) for _ in range(count)]


def test_pipelined_requests_get_responses_in_order(broker: Broker, ready_topic: str) -> None:
    """A hundred requests in one write; each response has the type and version of its request."""
    requests = some_requests(ready_topic, 100)
    with RawConnection(broker.address) as connection:
        connection.send_bytes(
            b"".join(framed(request_bytes(request, version, i)) for i, (request, version) in enumerate(requests))
        )
        for i, (request, version) in enumerate(requests):
            correlation_id, _ = read_response(type(request), version, connection.receive_frame())
            assert correlation_id == i


def test_pipelined_fetch_sees_earlier_produce(broker: Broker, ready_topic: str) -> None:
    with RawConnection(broker.address) as connection:
        requests: list[tuple[Message, int]] = []
        for i in range(20):
            requests += [(produce(ready_topic, b"value %d" % i), 11), (fetch(ready_topic, i), 12)]
        connection.send_bytes(
            b"".join(framed(request_bytes(request, version, i)) for i, (request, version) in enumerate(requests))
        )
        for i in range(20):
            assert connection.receive(ProduceRequest, 11).responses[0].partition_responses[0].base_offset == i
            records = connection.receive(FetchRequest, 12).responses[0].partitions[0].records
            assert b"value %d" % i in bytes(records)


def test_request_sent_byte_by_byte(broker: Broker, ready_topic: str) -> None:
    requests = [(produce(ready_topic, b"dripped"), 11), (fetch(ready_topic, 0), 12)]
    with RawConnection(broker.address) as connection:
        for request, version in requests:
            for byte in framed(request_bytes(request, version)):
                connection.send_bytes(bytes((byte,)))
        connection.receive(ProduceRequest, 11)
        assert b"dripped" in bytes(connection.receive(FetchRequest, 12).responses[0].partitions[0].records)


@pytest.mark.parametrize("seed", range(5))
def test_requests_in_arbitrary_pieces(broker: Broker, ready_topic: str, seed: int) -> None:
    """Pieces end inside sizes, headers and batches, and contain several requests."""
    chosen = random.Random(seed)
    requests = [*some_requests(ready_topic, 30), (produce(ready_topic, noise(100_000, seed)), 11)]
    stream = b"".join(framed(request_bytes(request, version, i)) for i, (request, version) in enumerate(requests))
    with RawConnection(broker.address) as connection:
        position = 0
        while position < len(stream):
            size = chosen.choice([1, 2, 3, 5, 50, 500, 5000, 50_000])
            connection.send_bytes(stream[position : position + size])
            position += size
        for i, (request, version) in enumerate(requests):
            assert read_response(type(request), version, connection.receive_frame())[0] == i


@pytest.mark.parametrize("size", [REQUEST_BYTES_MAX + 1, 2**31 - 1, -1, -(2**31)])
def test_invalid_frame_size_closes_only_that_connection(broker: Broker, size: int) -> None:
    with RawConnection(broker.address) as other, RawConnection(broker.address) as connection:
        other.call(ApiVersionsRequest(), 0)
        connection.call(ApiVersionsRequest(), 0)
        connection.send_bytes(struct.pack(">i", size) + header_bytes(18, 0))
        assert connection.is_closed()
        assert other.call(ApiVersionsRequest(), 0).error_code == 0


INVALID_LENGTHS = {
    "array of 2^31 - 1 topics": header_bytes(3, 1) + struct.pack(">i", 2**31 - 1),
    "array of -1 topics, not nullable": header_bytes(19, 2) + struct.pack(">iib", -1, 1000, 0),
    "array of -2 topics, not nullable": header_bytes(19, 2) + struct.pack(">iib", -2, 1000, 0),
    "compact array of 2^32 - 2 topics": header_bytes(3, 9, flexible=True) + b"\xff\xff\xff\xff\x0f",
    "compact array with an unterminated size": header_bytes(3, 9, flexible=True) + b"\xff" * 12,
    "string longer than the frame": header_bytes(3, 1) + struct.pack(">ih", 1, 30_000) + b"short",
    "string of length -1, not nullable": header_bytes(3, 1) + struct.pack(">ih", 1, -1),
    "2^28 tags in the header": header_bytes(3, 9) + b"\xff\xff\xff\x7f" + b"\x00\x00",
    "tag longer than the frame": header_bytes(3, 9) + b"\x01\x05\xff\xff\x7f",
    "records longer than the frame": header_bytes(0, 3)
    + struct.pack(">hhiihsiii", -1, -1, 1000, 1, 1, b"t", 1, 0, 2**30),
    "client id longer than the frame": struct.pack(">hhih", 18, 0, 1, 30_000) + b"short",
}


@pytest.mark.parametrize("body", INVALID_LENGTHS)
def test_invalid_lengths_close_only_that_connection(broker: Broker, body: str) -> None:
    with RawConnection(broker.address) as other, RawConnection(broker.address) as connection:
        connection.send_frame(INVALID_LENGTHS[body])
        assert connection.is_closed()
        assert other.call(ApiVersionsRequest(), 0).error_code == 0


def test_incomplete_request_does_not_affect_others(broker: Broker, ready_topic: str) -> None:
    """Connections that close in the middle of a large request leave nothing behind."""
    request = framed(request_bytes(produce(ready_topic, noise(1_000_000)), 11))
    for size in [2, 4, 100, len(request) - 1]:
        with RawConnection(broker.address) as connection:
            connection.send_bytes(request[:size])
    with RawConnection(broker.address) as connection:
        assert connection.call(end_offset(ready_topic), 7).topics[0].partitions[0].offset == 0


def test_acks_0_error_closes_the_connection(broker: Broker, ready_topic: str) -> None:
    """With acks=0, closing the connection is the only way to report an error."""
    with RawConnection(broker.address) as connection:
        connection.send(produce(ready_topic, b"fine", acks=0), 11)
        assert connection.call(end_offset(ready_topic), 7).topics[0].partitions[0].offset == 1
        connection.send(produce("compat no such topic", b"lost", acks=0), 11)
        assert connection.is_closed()


def test_two_hundred_connections(broker: Broker) -> None:
    connections = [RawConnection(broker.address) for _ in range(200)]
    try:
        for connection in connections:
            connection.send(ApiVersionsRequest(), 0)
        for connection in reversed(connections):
            assert connection.receive(ApiVersionsRequest, 0).error_code == 0
    finally:
        for connection in connections:
            connection.close()


def test_record_larger_than_fetch_limits_is_returned(broker: Broker, ready_topic: str) -> None:
    """The first batch of a fetch is returned completely; otherwise a consumer could never pass it."""
    value = noise(5_000_000)
    with RawConnection(broker.address) as connection:
        connection.call(produce(ready_topic, value), 11)
        connection.call(produce(ready_topic, b"next"), 11)
        response = connection.call(fetch(ready_topic, 0, partition_max_bytes=100_000, max_bytes=100_000), 12)
        records = bytes(response.responses[0].partitions[0].records)
        assert value in records
        assert b"next" not in records


def test_slow_reader_is_throttled_without_affecting_others(broker: Broker, ready_topic: str) -> None:
    """Sixty 10 MB fetches are sent and not read: the broker delays them, serves others, and returns all data."""
    value = noise(10_000_000)
    pipelined = 60
    with RawConnection(broker.address) as other, RawConnection(broker.address, receive_buffer=65_536) as slow:
        assert other.call(produce(ready_topic, value), 11).responses[0].partition_responses[0].error_code == 0
        other.call(fetch(ready_topic, 0, partition_max_bytes=20_000_000), 12)
        before = resident_bytes(broker.process.pid) if broker.process else 0
        requested = fetch(ready_topic, 0, partition_max_bytes=20_000_000)
        slow.send_bytes(b"".join(framed(request_bytes(requested, 12, i)) for i in range(pipelined)))
        slow_answers = 0
        waits = []
        for _ in range(200):
            start = time.perf_counter()
            other.call(produce(ready_topic, b"small"), 11)
            waits.append(time.perf_counter() - start)
        if broker.process:
            grown = resident_bytes(broker.process.pid) - before
            assert grown < 100 << 20, f"the broker grew by {grown >> 20} MB"
        assert sorted(waits)[len(waits) // 2] < 0.25
        for i in range(3):
            correlation_id, response = read_response(FetchRequest, 12, slow.receive_frame())
            assert correlation_id == i
            assert value in bytes(response.responses[0].partitions[0].records)
            slow_answers += 1
        assert slow_answers == 3


def test_client_that_never_reads_is_paused_or_closed(broker: Broker, ready_topic: str) -> None:
    """Endless requests without reading responses: the broker eventually stops reading."""
    with RawConnection(broker.address) as writer:
        writer.call(produce(ready_topic, noise(1_000_000)), 11)
    frame = framed(request_bytes(fetch(ready_topic, 0, partition_max_bytes=2_000_000), 12))
    with RawConnection(broker.address, receive_buffer=65_536) as deaf, RawConnection(broker.address) as other:
        deaf.socket.settimeout(0.5)
        is_blocked = False
        try:
            for _ in range(200_000):
                deaf.send_bytes(frame)
        except (TimeoutError, ConnectionClosed):
            is_blocked = True
        assert is_blocked
        assert other.call(ApiVersionsRequest(), 0).error_code == 0
