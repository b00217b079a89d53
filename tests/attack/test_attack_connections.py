"""Too many connections, idle and slow ones, and requests that announce more than is sent."""

import contextlib
import socket
import struct
import time

import pytest

from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.attack.conftest import responds
from tests.compat.raw import ConnectionClosed, RawConnection, framed, header_bytes, request_bytes

MB = 1 << 20


def connect_from(host, target):
    """Connect from a given address."""
    connection = RawConnection.__new__(RawConnection)
    connection.socket = socket.create_connection(target.address, timeout=10, source_address=(host, 0))
    connection._correlation_id = 0
    return connection


def is_paused(connection, data):
    """Return whether the broker stops reading at some point; the kernel's buffers hold a few MB."""
    try:
        for _ in range(2000):
            connection.send_bytes(data)
    except TimeoutError:
        return True
    return False


def gets_no_response(connection, seconds=0.3):
    connection.send(ApiVersionsRequest(), 0)
    return not connection.is_closed(seconds)


def test_connections_over_the_limit_wait_for_a_free_slot(start_target):
    """As in Kafka, what they send meanwhile is handled once they are admitted."""
    target = start_target(max_connections="3")
    served = [target.connect() for _ in range(3)]
    assert all(responds(connection) for connection in served)
    late = target.connect()
    assert gets_no_response(late)
    assert target.metrics()["ottla_connections_waiting"] == 1
    served[0].close()
    assert late.receive(ApiVersionsRequest, 0).error_code == 0
    assert target.metrics()['ottla_connections{listener="PLAINTEXT"}'] == 3


def test_waiting_connections_are_limited(start_target):
    target = start_target(max_connections="1", socket_listen_backlog_size="2")
    first, *waiting = [target.connect() for _ in range(3)]
    assert responds(first)
    assert target.connect().is_closed()
    for connection in waiting:
        assert gets_no_response(connection, 0.05)


def test_listener_limit_makes_connections_wait(start_target):
    target = start_target(listener_name_plaintext_max_connections="2")
    served = [target.connect() for _ in range(2)]
    assert all(responds(connection) for connection in served)
    assert gets_no_response(target.connect())


def test_address_limit_closes_surplus_connections(start_target):
    """At once; connections from other addresses are admitted."""
    target = start_target(max_connections_per_ip="4", max_connections_per_ip_overrides="127.0.0.2:2")
    mine = [connect_from("127.0.0.2", target) for _ in range(2)]
    assert all(responds(connection) for connection in mine)
    assert connect_from("127.0.0.2", target).is_closed()
    others = [target.connect() for _ in range(4)]
    assert all(responds(connection) for connection in others)
    assert target.connect().is_closed()
    mine[0].close()
    target.wait_for('ottla_connections{listener="PLAINTEXT"}', 5)
    assert responds(connect_from("127.0.0.2", target))


def test_limit_change_applies_at_runtime(start_target):
    target = start_target()
    first = target.connect()
    change = AlterableConfig(name="max.connections.per.ip", config_operation=0, value="1")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    assert first.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
    assert target.connect().is_closed()
    assert responds(first)


def test_idle_connections_are_closed_and_slow_ones_are_not(start_target):
    """Every byte counts as activity; a connection with an incomplete request is closed like an idle one."""
    target = start_target(connections_max_idle_ms="600")
    idle, half_open, slow = target.connect(), target.connect(), target.connect()
    half_open.send_bytes(struct.pack(">i", 1000))
    frame = framed(request_bytes(ApiVersionsRequest(), 0, 1))
    for byte in frame:
        slow.send_bytes(bytes((byte,)))
        time.sleep(0.1)
    assert slow.receive(ApiVersionsRequest, 0).error_code == 0
    assert idle.is_closed(0.1)
    assert half_open.is_closed(0.1)
    assert target.metrics()['ottla_connections_closed_total{reason="idle"}'] == 2


def test_connection_storm_leaves_nothing_behind(start_target, witness_of):
    """Two thousand connections, 500 at a time, that send nothing, half a size, or half a request."""
    target = start_target()
    with witness_of(target):
        for wave in range(4):
            sockets = []
            for number in range(500):
                connection = socket.create_connection(target.address)
                connection.sendall((b"", b"\0\0", struct.pack(">ihh", 50, 18, 0))[number % 3])
                sockets.append(connection)
            for connection in sockets:
                if wave % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
        target.wait_for('ottla_connections{listener="PLAINTEXT"}', 1)
    assert target.metrics()["ottla_request_buffer_bytes"] == 0
    assert target.errors() == []


def test_announced_size_costs_no_memory(start_target, witness_of):
    target = start_target()
    before = target.resident_bytes()
    with witness_of(target):
        connections = [target.connect() for _ in range(200)]
        for connection in connections:
            connection.send_bytes(struct.pack(">i", 100 * MB) + bytes(1000))
        while target.metrics()["ottla_received_bytes_total"] < 200 * 1004:
            time.sleep(0.02)
        grown = target.resident_bytes() - before
        assert grown < 40 * MB, f"{grown >> 20} MB for 200 kB"
    assert target.errors() == []


def test_large_requests_wait_for_receive_memory(start_target):
    """While an incomplete one uses up the budget, another large one waits; small ones do not."""
    size = 2_000_000
    target = start_target(
        queued_max_request_bytes=str(size), socket_request_max_bytes=str(size), message_max_bytes=str(size)
    )
    target.create_topic("events")
    holder, large, small = target.connect(), target.connect(), target.connect()
    holder.send_bytes(struct.pack(">i", size) + bytes(10))
    target.wait_for("ottla_request_queued_bytes", size + 4)
    data = [TopicProduceData(name="events", partition_data=[PartitionProduceData(index=0, records=bytes(1_900_000))])]
    large.socket.settimeout(0.5)
    assert is_paused(large, framed(request_bytes(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 9, 1)))
    assert target.metrics()["ottla_requests_waiting_for_memory"] == 1
    assert responds(small)
    holder.close()
    target.wait_for("ottla_requests_waiting_for_memory", 0)
    large.socket.settimeout(10)
    assert large.receive(ProduceRequest, 9).responses[0].partition_responses[0].error_code in (2, 87)


def test_client_that_does_not_read_is_not_read(start_target, witness_of):
    """Endless small requests with large responses: the broker stops reading and buffers little."""
    target = start_target()
    for number in range(50):
        target.create_topic(f"topic-{number}", 20)
    before = target.resident_bytes()
    frame = framed(request_bytes(MetadataRequest(topics=None), 12, 1))
    with witness_of(target):
        for data in (frame * 1000, framed(request_bytes(rejected_produce(), 9, 1)) * 1000):
            blocked = target.connect(receive_buffer=4096)
            blocked.socket.settimeout(0.5)
            assert is_paused(blocked, data)
        assert target.resident_bytes() - before < 60 * MB
    assert target.errors() == []


def rejected_produce():
    data = [TopicProduceData(name="nowhere", partition_data=[PartitionProduceData(records=b"")])]
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=data)


def test_thousands_of_requests_in_one_write_are_answered(start_target):
    """More responses than one gathered write takes."""
    target = start_target()
    connection = target.connect()
    count = 20_000
    connection.send_bytes(framed(header_bytes(18, 0, 7, None, flexible=False)) * count)
    for _ in range(count):
        connection.receive_frame()
    assert responds(connection)


@pytest.mark.parametrize("key", [1, 2, 3, 19])
def test_large_request_without_records_is_rejected(start_target, witness_of, key):
    """Decoded into objects it would take gigabytes."""
    target = start_target()
    before = target.resident_bytes()
    version = {1: 4, 2: 1, 3: 1, 19: 2}[key]
    body = header_bytes(key, version, 1, "x", flexible=False) + b"\0" * (90 * MB)
    with witness_of(target):
        attacker = target.connect()
        with contextlib.suppress(ConnectionClosed):
            attacker.send_frame(body)
        assert attacker.is_closed()
    assert target.resident_bytes() - before < 150 * MB
    assert target.errors() == []
