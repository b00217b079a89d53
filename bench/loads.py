"""Loads of one connection: Produce with and without responses, Fetch, and requests at a fixed rate.

Loads are closed (a new request per response), except those at a fixed rate. Their latency counts from the time when a
request was due, so that a delay of the load by a slow broker is included.
"""

import itertools
import select
import socket
import statistics
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence

from bench import frames
from bench.frames import BrokerError, Connection

Measurements = dict[str, float]
Run = Callable[[int, bytes, float], Measurements]
"""`run(port, topic id, seconds)` returns measurements, including `requests`."""
BACKLOG_MAX = 50_000
"""Limit of requests without a response at a fixed rate; such a broker will not catch up."""
ACKS0_BURST = 50
FILL_WINDOW = 8


def percentile(latencies: Sequence[float], share: float) -> float:
    """Return a percentile, in µs, of latencies given in seconds in ascending order."""
    return latencies[min(int(len(latencies) * share), len(latencies) - 1)] * 1e6


def median_measurements(rounds: Sequence[Measurements]) -> Measurements:
    """Return the median of each measurement."""
    return {key: statistics.median(measurements[key] for measurements in rounds) for key in rounds[0]}


def summarize_latencies(latencies: list[float], *, total: int, took: float) -> Measurements:
    latencies.sort()
    return {
        "per_second": len(latencies) / took,
        "mb_per_second": total / took / 1e6,
        "p50_us": percentile(latencies, 0.5),
        "p99_us": percentile(latencies, 0.99),
        "requests": len(latencies),
    }


def check_accepted(response: bytes | bytearray) -> None:
    if error := frames.produce_error(response):
        raise BrokerError(f"produce: error {error}")


def produce_load(records: bytes, in_flight: int, *, partitions: int = 1, acks: int = 1) -> Run:
    """Produce with one batch per request and `in_flight` pending requests, each to the next partition."""

    def run(port: int, topic_id: bytes, seconds: float) -> Measurements:
        connection, sent = Connection(port), deque[float]()
        latencies: list[float] = []
        requests = [frames.produce(topic_id, records, partition=number, acks=acks) for number in range(partitions)]
        following, clock = itertools.cycle(requests), time.perf_counter
        start = clock()
        end = start + seconds
        while clock() < end:
            while len(sent) < in_flight:
                sent.append(clock())
                connection.send(next(following))
            response = connection.receive()
            latencies.append(clock() - sent.popleft())
            check_accepted(response)
        took = clock() - start
        connection.close()
        return summarize_latencies(latencies, total=len(latencies) * len(requests[0]), took=took)

    return run


def acks0_load(records: bytes) -> Run:
    """Produce with acks=0 as fast as the socket accepts, up to the response to a final request with acks=1."""

    def run(port: int, topic_id: bytes, seconds: float) -> Measurements:
        connection, count, clock = Connection(port), 0, time.perf_counter
        data, last = frames.produce(topic_id, records, acks=0), frames.produce(topic_id, records)
        start = clock()
        end = start + seconds
        while clock() < end:
            for _ in range(ACKS0_BURST):
                connection.send(data)
            count += ACKS0_BURST
        check_accepted(connection.request(last))
        took = clock() - start
        connection.close()
        return {
            "per_second": (count + 1) / took,
            "mb_per_second": (count + 1) * len(data) / took / 1e6,
            "requests": count + 1,
        }

    return run


def fetch_load(size: int) -> Run:
    """Fetch the topic repeatedly from its start, with `size` bytes per request, one request at a time."""

    def run(port: int, topic_id: bytes, seconds: float) -> Measurements:
        connection, clock, offset, total = Connection(port), time.perf_counter, 1, 0
        latencies: list[float] = []
        start = clock()
        end = start + seconds
        while (now := clock()) < end:
            fetched = frames.read_fetch(connection.request(frames.fetch(topic_id, offset, size)))
            latencies.append(clock() - now)
            total += fetched.size
            complete_until = fetched.next_offset
            offset = complete_until if offset < complete_until < fetched.high_watermark else 1
        took = clock() - start
        connection.close()
        return summarize_latencies(latencies, total=total, took=took)

    return run


def fill(connection: Connection, data: bytes, count: int) -> None:
    """Send a Produce request `count` times, and check the responses."""
    sent = received = 0
    while received < count:
        while sent < min(count, received + FILL_WINDOW):
            connection.send(data)
            sent += 1
        check_accepted(connection.receive())
        received += 1


def produce_at_rate(
    port: int, data: bytes, per_second: float, seconds: float, *, also: Callable[[], bool] = lambda: False
) -> list[float]:
    """Produce at a fixed rate, for `seconds` and then while `also()`. Return latencies in seconds, ascending."""
    clock, interval, sent = time.perf_counter, 1 / per_second, deque[float]()
    latencies: list[float] = []
    with socket.create_connection(("127.0.0.1", port), frames.RESPONSE_SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pending, due = b"", clock()
        end = due + seconds
        while sent or clock() < end or also():
            now = clock()
            sending = now < end or also()
            while sending and due <= now:
                connection.sendall(data)
                sent.append(due)
                due += interval
            if len(sent) > BACKLOG_MAX:
                raise BrokerError(f"{len(sent):,} requests have no response yet")
            wait = max(due - clock(), 0.0) if sending else frames.RESPONSE_SECONDS_MAX
            if not select.select([connection], [], [], wait)[0]:
                continue
            responses, pending = split_responses(pending + connection.recv(1 << 16))
            now = clock()
            for response in responses:
                latencies.append(now - sent.popleft())
                check_accepted(response)
    latencies.sort()
    return latencies


def split_responses(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete responses in the data, without their sizes, and the remaining bytes."""
    if not data:
        raise BrokerError("the broker closed the connection")
    responses, position = [], 0
    while len(data) - position >= 4:
        end = position + 4 + int(struct.unpack_from(">i", data, position)[0])
        if end > len(data):
            break
        responses.append(data[position + 4 : end])
        position = end
    return responses, data[position:]


def request_at_rate(port: int, data: bytes, per_second: float, seconds: float) -> list[float]:
    """Send requests at a fixed rate, one at a time. Return latencies in seconds, ascending."""
    connection, clock = Connection(port), time.perf_counter
    connection.request(data)
    latencies, start = [], clock()
    for number in range(max(1, int(per_second * seconds))):
        due = start + number / per_second
        time.sleep(max(0.0, due - clock()))
        connection.request(data)
        latencies.append(clock() - due)
    connection.close()
    latencies.sort()
    return latencies


def read_once(port: int, topic_id: bytes, size: int) -> Measurements:
    """Fetch a topic from its second offset to its end, with `size` bytes per request."""
    connection, clock, offset, total, end = Connection(port), time.perf_counter, 1, 0, 2
    start = clock()
    while offset < end:
        fetched = frames.read_fetch(connection.request(frames.fetch(topic_id, offset, size)))
        total += fetched.size
        if fetched.next_offset <= offset:
            raise BrokerError(f"fetch: no complete batch at offset {offset}")
        offset, end = fetched.next_offset, fetched.high_watermark
    took = clock() - start
    connection.close()
    return {"seconds": took, "bytes": total, "mb_per_second": total / took / 1e6}
