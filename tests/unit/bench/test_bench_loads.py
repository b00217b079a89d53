"""Loads against a fake broker in a thread: their requests, counts and errors."""

import contextlib
import itertools
import os
import socket
import struct
import threading

import pytest

from bench import cold_reader, frames
from bench.frames import BrokerError, Connection
from bench.loads import acks0_load, fill, percentile, produce_at_rate, produce_load, request_at_rate, split_responses
from bench.swarm import Swarm, summarize_connections

TOPIC_ID = bytes(range(16))
PARTITION_AT = 4 + 8 + 2 + 5 + 1 + 1 + 6 + 1 + 16 + 1
ACKS_AT = 4 + 8 + 2 + 5 + 1 + 1


def produce_response(error=0):
    return (
        struct.pack(">ib", 1, 0)
        + b"\2"
        + TOPIC_ID
        + b"\2"
        + struct.pack(">ihqqq", 0, error, 0, -1, 0)
        + b"\1\0\0\0"
        + bytes(5)
    )


def with_size(response):
    return struct.pack(">i", len(response)) + response


class FakeBroker:
    """Responds to each request with `response(frame)`, and records the requests."""

    def __init__(self, response):
        self.response, self.requests = response, []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self._listener.accept()[:1], daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while head := stream.read(4):
                frame = head + stream.read(struct.unpack(">i", head)[0])
                self.requests.append(frame)
                response = self.response(frame)
                if response is None:
                    return
                connection.sendall(response)

    def close(self):
        self._listener.close()


@pytest.fixture
def fake_broker():
    running = []

    def start(response):
        running.append(FakeBroker(response))
        return running[-1]

    yield start
    for broker in running:
        broker.close()


def accept(frame):
    """Respond like a broker: nothing for acks=0, and a short response to requests other than Produce."""
    if frame[4:6] != b"\0\0":
        return with_size(bytes(10))
    return with_size(produce_response()) if struct.unpack_from(">h", frame, ACKS_AT)[0] else b""


def test_produce_load_cycles_through_partitions(fake_broker):
    broker = fake_broker(accept)
    measurements = produce_load(frames.batch(1, 100), 5, partitions=3)(broker.port, TOPIC_ID, 0.05)
    numbers = [struct.unpack_from(">i", frame, PARTITION_AT)[0] for frame in broker.requests]
    assert numbers == list(itertools.islice(itertools.cycle(range(3)), len(numbers)))
    assert 0 <= len(numbers) - measurements["requests"] <= 5
    assert measurements["p50_us"] <= measurements["p99_us"]


def test_produce_load_raises_on_an_error_code(fake_broker):
    broker = fake_broker(lambda frame: with_size(produce_response(error=7)))
    with pytest.raises(BrokerError, match="error 7"):
        produce_load(frames.batch(1, 100), 1)(broker.port, TOPIC_ID, 1)


def test_acks0_load_ends_with_one_acknowledged_request(fake_broker):
    broker = fake_broker(accept)
    measurements = acks0_load(frames.batch(1, 100))(broker.port, TOPIC_ID, 0.02)
    acks = [struct.unpack_from(">h", frame, ACKS_AT)[0] for frame in broker.requests]
    assert acks == [0] * (len(acks) - 1) + [1]
    assert measurements["requests"] == len(acks)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100])
def test_fill_sends_the_requested_number_of_batches(fake_broker, count):
    broker = fake_broker(accept)
    connection = Connection(broker.port)
    fill(connection, frames.produce(TOPIC_ID, frames.batch(1, 100)), count)
    connection.close()
    assert len(broker.requests) == count


def test_produce_at_rate_keeps_the_rate_and_gets_all_responses(fake_broker):
    broker = fake_broker(accept)
    latencies = produce_at_rate(broker.port, frames.produce(TOPIC_ID, frames.batch(1, 100)), 1000, 0.1)
    assert len(latencies) == len(broker.requests)
    assert 50 <= len(latencies) <= 101  # fewer than 100 if the machine is busy
    assert latencies == sorted(latencies)


def test_produce_at_rate_continues_while_the_condition_holds(fake_broker):
    broker, conditions = fake_broker(accept), iter([True] * 50)
    latencies = produce_at_rate(
        broker.port, frames.produce(TOPIC_ID, frames.batch(1, 10)), 1000, 0.0, also=lambda: next(conditions, False)
    )
    assert latencies
    assert next(conditions, None) is None


def test_request_at_rate_sends_the_expected_number(fake_broker):
    broker = fake_broker(lambda frame: with_size(bytes(100)))
    assert len(request_at_rate(broker.port, frames.metadata_of_all(), 200, 0.1)) == 20
    assert len(broker.requests) == 21


def test_swarm_counts_responses_per_connection(fake_broker):
    broker = fake_broker(accept)
    with Swarm(broker.port, 10) as swarm:
        measurements = swarm.produce(frames.produce(TOPIC_ID, frames.batch(1, 100)), 5, 0.1)
        assert not any(member.sent for member in swarm.members)
    assert measurements["requests"] == len(broker.requests) - 10
    assert 0 < measurements["fairness"] <= 1


def test_swarm_raises_if_the_broker_disconnects(fake_broker):
    broker = fake_broker(lambda frame: with_size(bytes(10)) if frame[4:6] != b"\0\0" else None)
    with Swarm(broker.port, 2) as swarm, pytest.raises((BrokerError, ConnectionError)):
        swarm.produce(frames.produce(TOPIC_ID, frames.batch(1, 100)), 1, 5)


def test_fairness_is_slowest_over_mean():
    assert summarize_connections([0.1] * 60, [10, 20, 30], 2.0) == {
        "per_second": 30.0,
        "p50_us": 1e5,
        "p99_us": 1e5,
        "fairness": 0.5,
    }


def test_split_responses():
    data = with_size(b"one") + with_size(b"two") + with_size(b"three")[:6]
    assert split_responses(data) == ([b"one", b"two"], with_size(b"three")[:6])
    with pytest.raises(BrokerError):
        split_responses(b"")


def test_percentiles_are_in_microseconds():
    seconds = [number / 1000 for number in range(100)]
    assert [percentile(seconds, share) for share in (0.0, 0.5, 0.99, 1.0)] == [0.0, 50_000.0, 99_000.0, 99_000.0]


def test_drop_from_cache_raises_if_files_stay_cached(tmp_path, monkeypatch):
    path = tmp_path / "one.log"
    path.write_bytes(os.urandom(1 << 20))
    monkeypatch.setattr(cold_reader, "is_cached", lambda file, position: True)
    with pytest.raises(BrokerError, match="still in memory"):
        cold_reader.drop_from_cache([path])
    positions = []
    monkeypatch.setattr(cold_reader, "is_cached", lambda file, position: bool(positions.append(position)))
    cold_reader.drop_from_cache([path])
    assert len(positions) == pytest.approx(cold_reader.SAMPLES, abs=2)
