"""Too many connections, silent ones, slow ones, and those that announce more than they send."""

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
from tests.attack.conftest import is_served
from tests.compat.raw import Closed, RawConnection, framed, header_bytes, request_bytes

MB = 1 << 20


def connect_from(host, victim):
    """A connection whose other end has this address."""
    connection = RawConnection.__new__(RawConnection)
    connection.socket = socket.create_connection(victim.address, timeout=10, source_address=(host, 0))
    connection._correlation_id = 0
    return connection


def is_held(connection, data):
    """Whether the node stops reading at some point; the kernel's own buffers hold a few MB."""
    try:
        for _ in range(2000):
            connection.send_bytes(data)
    except TimeoutError:
        return True
    return False


def is_silent(connection, seconds=0.3):
    connection.send(ApiVersionsRequest(), 0)
    return not connection.is_closed(seconds)


def test_who_comes_when_all_places_are_taken_waits(start_victim):
    """As in Kafka: what is sent meanwhile is answered once there is a place."""
    victim = start_victim(max_connections="3")
    served = [victim.connect() for _ in range(3)]
    assert all(is_served(connection) for connection in served)
    late = victim.connect()
    assert is_silent(late)
    assert victim.metrics()["ottla_connections_waiting"] == 1
    served[0].close()
    assert late.receive(ApiVersionsRequest, 0).error_code == 0
    assert victim.metrics()['ottla_connections{listener="PLAINTEXT"}'] == 3


def test_only_so_many_wait(start_victim):
    victim = start_victim(max_connections="1", socket_listen_backlog_size="2")
    first, *waiting = [victim.connect() for _ in range(3)]
    assert is_served(first)
    assert victim.connect().is_closed()
    for connection in waiting:
        assert is_silent(connection, 0.05)


def test_a_listener_has_places_of_its_own(start_victim):
    victim = start_victim(listener_name_plaintext_max_connections="2")
    served = [victim.connect() for _ in range(2)]
    assert all(is_served(connection) for connection in served)
    assert is_silent(victim.connect())


def test_one_address_takes_only_its_share(start_victim):
    """The surplus is closed at once; others still come in."""
    victim = start_victim(max_connections_per_ip="4", max_connections_per_ip_overrides="127.0.0.2:2")
    mine = [connect_from("127.0.0.2", victim) for _ in range(2)]
    assert all(is_served(connection) for connection in mine)
    assert connect_from("127.0.0.2", victim).is_closed()
    others = [victim.connect() for _ in range(4)]
    assert all(is_served(connection) for connection in others)
    assert victim.connect().is_closed()
    mine[0].close()
    victim.wait_for('ottla_connections{listener="PLAINTEXT"}', 5)
    assert is_served(connect_from("127.0.0.2", victim))


def test_a_limit_changes_while_the_node_runs(start_victim):
    victim = start_victim()
    first = victim.connect()
    change = AlterableConfig(name="max.connections.per.ip", config_operation=0, value="1")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    assert first.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
    assert victim.connect().is_closed()
    assert is_served(first)


def test_the_idle_are_closed_and_the_slow_are_not(start_victim):
    """A dripped request counts as activity, however slow; a half-open connection ends as an idle one does."""
    victim = start_victim(connections_max_idle_ms="600")
    idle, half_open, slow = victim.connect(), victim.connect(), victim.connect()
    half_open.send_bytes(struct.pack(">i", 1000))
    frame = framed(request_bytes(ApiVersionsRequest(), 0, 1))
    for byte in frame:
        slow.send_bytes(bytes((byte,)))
        time.sleep(0.1)
    assert slow.receive(ApiVersionsRequest, 0).error_code == 0
    assert idle.is_closed(0.1)
    assert half_open.is_closed(0.1)
    assert victim.metrics()['ottla_connections_closed_total{reason="idle"}'] == 2


def test_a_storm_of_connections(start_victim, witness_of):
    """Two thousand come and go at once, with nothing, half a size, or half a request."""
    victim = start_victim()
    with witness_of(victim):
        for wave in range(4):
            sockets = []
            for number in range(500):
                connection = socket.create_connection(victim.address)
                connection.sendall((b"", b"\0\0", struct.pack(">ihh", 50, 18, 0))[number % 3])
                sockets.append(connection)
            for connection in sockets:
                if wave % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
        victim.wait_for('ottla_connections{listener="PLAINTEXT"}', 1)
    assert victim.metrics()["ottla_request_buffer_bytes"] == 0
    assert victim.errors() == []


def test_a_size_that_is_only_announced_costs_no_memory(start_victim, witness_of):
    victim = start_victim()
    before = victim.resident_bytes()
    with witness_of(victim):
        liars = [victim.connect() for _ in range(200)]
        for liar in liars:
            liar.send_bytes(struct.pack(">i", 100 * MB) + bytes(1000))
        while victim.metrics()["ottla_received_bytes_total"] < 200 * 1004:
            time.sleep(0.02)
        grown = victim.resident_bytes() - before
        assert grown < 40 * MB, f"{grown >> 20} MB for 200 kB"
    assert victim.errors() == []


def test_large_requests_wait_for_room_in_the_budget(start_victim):
    """One that never ends holds the budget: another large one waits, small ones do not, and the room comes back."""
    size = 2_000_000
    victim = start_victim(
        queued_max_request_bytes=str(size), socket_request_max_bytes=str(size), message_max_bytes=str(size)
    )
    victim.create_topic("events")
    holder, large, small = victim.connect(), victim.connect(), victim.connect()
    holder.send_bytes(struct.pack(">i", size) + bytes(10))
    victim.wait_for("ottla_request_queued_bytes", size + 4)
    data = [TopicProduceData(name="events", partition_data=[PartitionProduceData(index=0, records=bytes(1_900_000))])]
    large.socket.settimeout(0.5)
    assert is_held(large, framed(request_bytes(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 9, 1)))
    assert victim.metrics()["ottla_requests_waiting_for_memory"] == 1
    assert is_served(small)
    holder.close()
    victim.wait_for("ottla_requests_waiting_for_memory", 0)
    large.socket.settimeout(10)
    assert large.receive(ProduceRequest, 9).responses[0].partition_responses[0].error_code in (2, 87)


def test_answers_that_nobody_reads_are_not_made(start_victim, witness_of):
    """Small requests with large answers, without end: the node stops reading, and holds little."""
    victim = start_victim()
    for number in range(50):
        victim.create_topic(f"topic-{number}", 20)
    before = victim.resident_bytes()
    frame = framed(request_bytes(MetadataRequest(topics=None), 12, 1))
    with witness_of(victim):
        for data in (frame * 1000, framed(request_bytes(refused_produce(), 9, 1)) * 1000):
            deaf = victim.connect(receive_buffer=4096)
            deaf.socket.settimeout(0.5)
            assert is_held(deaf, data)
        assert victim.resident_bytes() - before < 60 * MB
    assert victim.errors() == []


def refused_produce():
    data = [TopicProduceData(name="nowhere", partition_data=[PartitionProduceData(records=b"")])]
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=data)


def test_thousands_of_requests_in_one_piece(start_victim):
    """More answers than one gathered write takes."""
    victim = start_victim()
    connection = victim.connect()
    count = 20_000
    connection.send_bytes(framed(header_bytes(18, 0, 7, None, flexible=False)) * count)
    for _ in range(count):
        connection.receive_frame()
    assert is_served(connection)


@pytest.mark.parametrize("key", [1, 2, 3, 19])
def test_a_large_request_without_records_is_not_taken(start_victim, witness_of, key):
    """A message becomes objects: a request that would become gigabytes of them is refused."""
    victim = start_victim()
    before = victim.resident_bytes()
    version = {1: 4, 2: 1, 3: 1, 19: 2}[key]
    body = header_bytes(key, version, 1, "x", flexible=False) + b"\0" * (90 * MB)
    with witness_of(victim):
        attacker = victim.connect()
        with contextlib.suppress(Closed):
            attacker.send_frame(body)
        assert attacker.is_closed()
    assert victim.resident_bytes() - before < 150 * MB
    assert victim.errors() == []
