"""Many connections in one thread with epoll, each with its own requests in flight."""

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import Self

from bench import frames
from bench.frames import BrokerError
from bench.loads import Measurements, check_accepted, percentile, split_responses

DRAIN_SECONDS_MAX = 30.0


class Member:
    """One connection: send times of its pending requests, and the number of responses."""

    __slots__ = ("pending", "received", "sent", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), frames.RESPONSE_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""
        self.sent = deque[float]()
        self.received = 0

    def request(self, data: bytes) -> None:
        """Send one request and discard its response. No other request may be in flight."""
        self.socket.sendall(data)
        size = struct.unpack(">i", self._exactly(4))[0]
        self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = self.socket.recv(size, socket.MSG_WAITALL)
        if len(data) < size:
            raise BrokerError("the broker closed the connection")
        return data

    def send(self, data: bytes, count: int, now: float) -> None:
        self.sent.extend([now] * count)
        self.socket.sendall(data * count)


class Swarm:
    """Connections that stay open between rounds, so that rounds measure requests only.

    They are opened one by one, each with an ApiVersions request: a burst would overflow the accept queue, and dropped
    connections are retried only after seconds.
    """

    def __init__(self, port: int, count: int) -> None:
        self.members: list[Member] = []
        try:
            for _ in range(count):
                self.members.append(Member(port))
                self.members[-1].request(frames.api_versions())
        except BaseException:
            self.close()
            raise

    def produce(self, data: bytes, in_flight: int, seconds: float) -> Measurements:
        """Keep `in_flight` Produce requests pending on each connection. Return rate, latency and fairness."""
        poll, by_number = select.epoll(), {member.socket.fileno(): member for member in self.members}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        now = time.perf_counter()
        for member in self.members:
            member.received = 0
            member.send(data, in_flight, now)
        latencies: list[float] = []
        start = time.perf_counter()
        self._exchange(poll, by_number, data, latencies, start + seconds)
        took = time.perf_counter() - start
        counts, in_time = [member.received for member in self.members], len(latencies)
        self._exchange(poll, by_number, b"", latencies, start + seconds + DRAIN_SECONDS_MAX)
        poll.close()
        return summarize_connections(latencies[:in_time], counts, took) | {"requests": len(latencies)}

    def _exchange(
        self, poll: select.epoll, by_number: dict[int, Member], data: bytes, latencies: list[float], end: float
    ) -> None:
        """Send a request for every response until the end; without `data`, wait for all responses."""
        clock, waiting = time.perf_counter, sum(len(member.sent) for member in self.members)
        while (now := clock()) < end and waiting:
            for number, _ in poll.poll(end - now):
                member = by_number[number]
                responses, member.pending = split_responses(member.pending + member.socket.recv(1 << 16))
                now = clock()
                for response in responses:
                    check_accepted(response)
                    latencies.append(now - member.sent.popleft())
                member.received += len(responses)
                if data:
                    member.send(data, len(responses), now)
                else:
                    waiting -= len(responses)
        if not data and waiting:
            raise BrokerError(f"{waiting} requests had no response within {DRAIN_SECONDS_MAX:.0f} s")

    def close(self) -> None:
        for member in self.members:
            member.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def summarize_connections(latencies: list[float], counts: Sequence[int], took: float) -> Measurements:
    """`fairness` is the lowest number of responses of a connection / the mean."""
    if not latencies:
        raise BrokerError("no response during the round")
    latencies.sort()
    return {
        "per_second": len(latencies) / took,
        "p50_us": percentile(latencies, 0.5),
        "p99_us": percentile(latencies, 0.99),
        "fairness": min(counts) * len(counts) / sum(counts),
    }
