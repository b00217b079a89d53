"""The loads against a broker that is a thread with a socket: what they send, how they count, and what they refuse."""

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
from bench.swarm import Swarm, figures_of_many

TOPIC_ID = bytes(range(16))
PARTITION_AT = 4 + 8 + 2 + 5 + 1 + 1 + 6 + 1 + 16 + 1
ACKS_AT = 4 + 8 + 2 + 5 + 1 + 1


def produced(error=0):
    return (
        struct.pack(">ib", 1, 0)
        + b"\2"
        + TOPIC_ID
        + b"\2"
        + struct.pack(">ihqqq", 0, error, 0, -1, 0)
        + b"\1\0\0\0"
        + bytes(5)
    )


def framed(response):
    return struct.pack(">i", len(response)) + response


class Scripted:
    """Answers each request by `response(frame)`; keeps what it was sent."""

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
def scripted():
    running = []

    def start(response):
        running.append(Scripted(response))
        return running[-1]

    yield start
    for broker in running:
        broker.close()


def taken(frame):
    """As a broker does: no response to acks=0, a short one to what is no Produce."""
    if frame[4:6] != b"\0\0":
        return framed(bytes(10))
    return framed(produced()) if struct.unpack_from(">h", frame, ACKS_AT)[0] else b""


def test_requests_go_to_each_partition_in_turn(scripted):
    broker = scripted(taken)
    figures = produce_load(frames.batch(1, 100), 5, partitions=3)(broker.port, TOPIC_ID, 0.05)
    numbers = [struct.unpack_from(">i", frame, PARTITION_AT)[0] for frame in broker.requests]
    assert numbers == list(itertools.islice(itertools.cycle(range(3)), len(numbers)))
    assert 0 <= len(numbers) - figures["requests"] <= 5
    assert figures["p50_us"] <= figures["p99_us"]


def test_a_refused_produce_is_no_figure(scripted):
    broker = scripted(lambda frame: framed(produced(error=7)))
    with pytest.raises(BrokerError, match="error 7"):
        produce_load(frames.batch(1, 100), 1)(broker.port, TOPIC_ID, 1)


def test_without_acks_only_the_last_request_is_answered(scripted):
    broker = scripted(taken)
    figures = acks0_load(frames.batch(1, 100))(broker.port, TOPIC_ID, 0.02)
    acks = [struct.unpack_from(">h", frame, ACKS_AT)[0] for frame in broker.requests]
    assert acks == [0] * (len(acks) - 1) + [1]
    assert figures["requests"] == len(acks)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100])
def test_a_topic_is_filled_with_as_many_as_were_asked_for(scripted, count):
    broker = scripted(taken)
    connection = Connection(broker.port)
    fill(connection, frames.produce(TOPIC_ID, frames.batch(1, 100)), count)
    connection.close()
    assert len(broker.requests) == count


def test_a_pace_is_kept_and_every_request_is_answered(scripted):
    broker = scripted(taken)
    latencies = produce_at_rate(broker.port, frames.produce(TOPIC_ID, frames.batch(1, 100)), 1000, 0.1)
    assert len(latencies) == len(broker.requests)
    assert 90 <= len(latencies) <= 101
    assert latencies == sorted(latencies)


def test_a_pace_lasts_as_long_as_something_else_does(scripted):
    broker, turns = scripted(taken), iter([True] * 50)
    latencies = produce_at_rate(
        broker.port, frames.produce(TOPIC_ID, frames.batch(1, 10)), 1000, 0.0, also=lambda: next(turns, False)
    )
    assert latencies
    assert next(turns, None) is None


def test_questions_at_a_pace_are_counted(scripted):
    broker = scripted(lambda frame: framed(bytes(100)))
    assert len(request_at_rate(broker.port, frames.metadata_of_all(), 200, 0.1)) == 20
    assert len(broker.requests) == 21


def test_a_swarm_counts_what_each_connection_got(scripted):
    broker = scripted(taken)
    with Swarm(broker.port, 10) as swarm:
        figures = swarm.produce(frames.produce(TOPIC_ID, frames.batch(1, 100)), 5, 0.1)
        assert not any(member.sent for member in swarm.members)
    assert figures["requests"] == len(broker.requests) - 10
    assert 0 < figures["fairness"] <= 1


def test_a_swarm_says_that_a_broker_went_away(scripted):
    broker = scripted(lambda frame: framed(bytes(10)) if frame[4:6] != b"\0\0" else None)
    with Swarm(broker.port, 2) as swarm, pytest.raises((BrokerError, ConnectionError)):
        swarm.produce(frames.produce(TOPIC_ID, frames.batch(1, 100)), 1, 5)


def test_fairness_is_the_slowest_to_the_mean():
    assert figures_of_many([0.1] * 60, [10, 20, 30], 2.0) == {
        "per_second": 30.0,
        "p50_us": 1e5,
        "p99_us": 1e5,
        "fairness": 0.5,
    }


def test_answers_are_cut_where_they_end():
    data = framed(b"one") + framed(b"two") + framed(b"three")[:6]
    assert split_responses(data) == ([b"one", b"two"], framed(b"three")[:6])
    with pytest.raises(BrokerError):
        split_responses(b"")


def test_percentiles_are_in_microseconds():
    seconds = [number / 1000 for number in range(100)]
    assert [percentile(seconds, share) for share in (0.0, 0.5, 0.99, 1.0)] == [0.0, 50_000.0, 99_000.0, 99_000.0]


def test_files_are_dropped_from_the_cache_or_it_is_said(tmp_path, monkeypatch):
    path = tmp_path / "one.log"
    path.write_bytes(os.urandom(1 << 20))
    monkeypatch.setattr(cold_reader, "is_cached", lambda file, position: True)
    with pytest.raises(BrokerError, match="still in memory"):
        cold_reader.drop_from_cache([path])
    asked = []
    monkeypatch.setattr(cold_reader, "is_cached", lambda file, position: bool(asked.append(position)))
    cold_reader.drop_from_cache([path])
    assert len(asked) == pytest.approx(cold_reader.SAMPLES, abs=2)
