"""Many connections driven by one thread with epoll, each with its own requests in flight."""

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import Self

from bench import frames
from bench.frames import BrokerError
from bench.loads import Figures, check_accepted, percentile, split_responses

DRAIN_SECONDS_MAX = 30.0


class Member:
    """One connection: when its unanswered requests were sent, and how many were answered."""

    __slots__ = ("answered", "pending", "sent", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), frames.RESPONSE_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""
        self.sent = deque[float]()
        self.answered = 0

    def request(self, data: bytes) -> None:
        """One request and its response, while nothing else is under way; the response is thrown away."""
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
    """Connections that stay open between rounds, so that a round costs the broker nothing but its requests.

    Each has asked for the broker's versions before the next is opened: a burst would overflow the queue of those to be check_accepted, and
    what is thrown out of it comes back after seconds.
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

    def produce(self, data: bytes, in_flight: int, seconds: float) -> Figures:
        """Keep `in_flight` requests under way on each connection; rate, latency, fairness, and `requests` with those after the end."""
        poll, by_number = select.epoll(), {member.socket.fileno(): member for member in self.members}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        now = time.perf_counter()
        for member in self.members:
            member.answered = 0
            member.send(data, in_flight, now)
        latencies: list[float] = []
        start = time.perf_counter()
        self._turn(poll, by_number, data, latencies, start + seconds)
        took = time.perf_counter() - start
        counts, in_time = [member.answered for member in self.members], len(latencies)
        self._turn(poll, by_number, b"", latencies, start + seconds + DRAIN_SECONDS_MAX)
        poll.close()
        return figures_of_many(latencies[:in_time], counts, took) | {"requests": len(latencies)}

    def _turn(
        self, poll: select.epoll, by_number: dict[int, Member], data: bytes, latencies: list[float], end: float
    ) -> None:
        """Answer every response with a request until the end; without `data`, until all are answered."""
        clock, waiting = time.perf_counter, sum(len(member.sent) for member in self.members)
        while (now := clock()) < end and waiting:
            for number, _ in poll.poll(end - now):
                member = by_number[number]
                responses, member.pending = split_responses(member.pending + member.socket.recv(1 << 16))
                now = clock()
                for response in responses:
                    check_accepted(response)
                    latencies.append(now - member.sent.popleft())
                member.answered += len(responses)
                if data:
                    member.send(data, len(responses), now)
                else:
                    waiting -= len(responses)
        if not data and waiting:
            raise BrokerError(f"{waiting} requests were not answered within {DRAIN_SECONDS_MAX:.0f} s")

    def close(self) -> None:
        for member in self.members:
            member.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def figures_of_many(latencies: list[float], counts: Sequence[int], took: float) -> Figures:
    """`fairness` is the fewest responses of one connection over the mean of all."""
    if not latencies:
        raise BrokerError("not one response in the whole round")
    latencies.sort()
    return {
        "per_second": len(latencies) / took,
        "p50_us": percentile(latencies, 0.5),
        "p99_us": percentile(latencies, 0.99),
        "fairness": min(counts) * len(counts) / sum(counts),
    }
