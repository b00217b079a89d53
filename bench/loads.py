"""What one connection can do to a broker: produce, produce without waiting, produce at a pace, fetch, ask at a pace.

Each load is closed (a new request for an response) but those at a pace, whose latency counts from the moment a request was due: what a
broker holds up is not forgiven because the load was held up too.
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

Figures = dict[str, float]
Run = Callable[[int, bytes, float], Figures]
"""`run(port, topic id, seconds)` returns figures, `requests` among them."""
BACKLOG_MAX = 50_000
"""A broker that is this many requests behind a pace will not catch up."""
ACKS0_BURST = 50
FILL_WINDOW = 8


def percentile(latencies: Sequence[float], share: float) -> float:
    """Of seconds in ascending order, in µs."""
    return latencies[min(int(len(latencies) * share), len(latencies) - 1)] * 1e6


def median_figures(rounds: Sequence[Figures]) -> Figures:
    """Each figure's own median."""
    return {key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]}


def figures_of(latencies: list[float], *, total: int, took: float) -> Figures:
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
    """One batch a request, `in_flight` requests not yet answered, each to the next partition."""

    def run(port: int, topic_id: bytes, seconds: float) -> Figures:
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
        return figures_of(latencies, total=len(latencies) * len(requests[0]), took=took)

    return run


def acks0_load(records: bytes) -> Run:
    """acks=0: as fast as the socket takes it, until an response to a last request says that all of it was read."""

    def run(port: int, topic_id: bytes, seconds: float) -> Figures:
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
    """Read the topic from its start, `size` bytes a request, one request at a time, again and again."""

    def run(port: int, topic_id: bytes, seconds: float) -> Figures:
        connection, clock, offset, total = Connection(port), time.perf_counter, 1, 0
        latencies: list[float] = []
        start = clock()
        end = start + seconds
        while (now := clock()) < end:
            fetched = frames.read_fetch(connection.request(frames.fetch(topic_id, offset, size)))
            latencies.append(clock() - now)
            total += fetched.size
            whole_until = fetched.next_offset
            offset = whole_until if offset < whole_until < fetched.high_watermark else 1
        took = clock() - start
        connection.close()
        return figures_of(latencies, total=total, took=took)

    return run


def fill(connection: Connection, data: bytes, count: int) -> None:
    """Have a Produce taken `count` times."""
    sent = answered = 0
    while answered < count:
        while sent < min(count, answered + FILL_WINDOW):
            connection.send(data)
            sent += 1
        check_accepted(connection.receive())
        answered += 1


def produce_at_rate(
    port: int, data: bytes, per_second: float, seconds: float, *, also: Callable[[], bool] = lambda: False
) -> list[float]:
    """Send a Produce `per_second` times a second, for that long and for as long as `also` says; latencies, ascending, in seconds."""
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
                raise BrokerError(f"the broker is {len(sent):,} requests behind")
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
    """Whole responses without their sizes, and what is left of the bytes."""
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
    """Ask a question `per_second` times a second; latencies, ascending, in seconds. One that is due waits for the one before."""
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


def read_once(port: int, topic_id: bytes, size: int) -> Figures:
    """Read a topic from the second offset to its end, `size` bytes a request."""
    connection, clock, offset, total, end = Connection(port), time.perf_counter, 1, 0, 2
    start = clock()
    while offset < end:
        fetched = frames.read_fetch(connection.request(frames.fetch(topic_id, offset, size)))
        total += fetched.size
        if fetched.next_offset <= offset:
            raise BrokerError(f"fetch: nothing whole at offset {offset}")
        offset, end = fetched.next_offset, fetched.high_watermark
    took = clock() - start
    connection.close()
    return {"seconds": took, "bytes": total, "mb_per_second": total / took / 1e6}
