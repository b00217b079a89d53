"""A small HTTP server for one page: GET /metrics. It knows no more of HTTP than that needs, and closes after every answer."""

import asyncio
from collections.abc import Callable

from ottla.base.ports import Connection, Listener, Network
from ottla.server.metrics import CONTENT_TYPE

REQUEST_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 16
REQUEST_SECONDS_MAX = 10.0


class MetricsServer:
    """The listener and those who ask."""

    def __init__(self, network: Network, text: Callable[[], str], loop: asyncio.AbstractEventLoop) -> None:
        self._network = network
        self.text = text
        self.loop = loop
        self._listener: Listener | None = None
        self.connections: dict[MetricsConnection, None] = {}

    async def listen(self, host: str, port: int) -> int:
        """OSError where the address cannot be had."""
        self._listener = await self._network.listen(host, port, lambda: MetricsConnection(self))
        return self._listener.port

    @property
    def port(self) -> int | None:
        return None if self._listener is None else self._listener.port

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.abort()


class MetricsConnection:
    """The Receiver of one request."""

    def __init__(self, page: MetricsServer) -> None:
        self._page = page
        self._buffer = bytearray(REQUEST_BYTES_MAX)
        self._filled = 0
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_answered = False

    def connection_made(self, connection: Connection) -> None:
        self._connection = connection
        self._page.connections[self] = None
        self._timer = self._page.loop.call_later(REQUEST_SECONDS_MAX, self.abort)
        if len(self._page.connections) > CONNECTIONS_MAX:
            self.abort()

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._is_answered or self._filled == REQUEST_BYTES_MAX:
            return memoryview(bytearray(1024))
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, size: int) -> None:
        if self._is_answered:
            return
        self._filled += size
        request = bytes(self._buffer[: self._filled])
        if b"\r\n\r\n" in request or b"\n\n" in request:
            self._answer(*_answer_to(request, self._page.text))
        elif self._filled == REQUEST_BYTES_MAX:
            self._answer("431 Request Header Fields Too Large", "too much was asked\n", True)

    def pause_writing(self) -> None:
        """One answer is all there is."""

    def resume_writing(self) -> None:
        """See `pause_writing`."""

    def connection_lost(self, error: Exception | None) -> None:
        self._connection = None
        self._page.connections.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    def _answer(self, status: str, text: str, has_body: bool) -> None:
        self._is_answered = True
        body = text.encode()
        kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        if self._connection is not None:
            self._connection.write([head.encode() + (body if has_body else b"")])
            self._connection.close()


def _answer_to(request: bytes, text: Callable[[], str]) -> tuple[str, str, bool]:
    """Status, page, and whether the page is sent."""
    words = request.split(b"\n", 1)[0].strip().split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return "400 Bad Request", "this speaks HTTP/1.1\n", True
    method, target = words[0], words[1].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return "405 Method Not Allowed", "GET /metrics\n", True
    if target != b"/metrics":
        return "404 Not Found", "metrics are at /metrics\n", method == b"GET"
    return "200 OK", text(), method == b"GET"
