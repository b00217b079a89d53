"""A minimal HTTP server for GET /metrics; it closes the connection after each response."""

import asyncio
from collections.abc import Callable

from ottla.base.ports import Connection, Listener, Network
from ottla.server.metrics import CONTENT_TYPE

REQUEST_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 16
REQUEST_SECONDS_MAX = 10.0


class MetricsServer:
    """The listener and its open connections."""

    def __init__(self, network: Network, text: Callable[[], str], loop: asyncio.AbstractEventLoop) -> None:
        self._network = network
        self.text = text
        self.loop = loop
        self._listener: Listener | None = None
        self.connections: dict[MetricsConnection, None] = {}

    async def listen(self, host: str, port: int) -> int:
        """Listen on an address and return the port. Raises OSError if it is not available."""
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
    """One connection, for one request (a Receiver, see `base.ports`)."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._buffer = bytearray(REQUEST_BYTES_MAX)
        self._filled = 0
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_responded = False

    def connection_made(self, connection: Connection) -> None:
        self._connection = connection
        self._server.connections[self] = None
        self._timer = self._server.loop.call_later(REQUEST_SECONDS_MAX, self.abort)
        if len(self._server.connections) > CONNECTIONS_MAX:
            self.abort()

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._has_responded or self._filled == REQUEST_BYTES_MAX:
            return memoryview(bytearray(1024))
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, size: int) -> None:
        if self._has_responded:
            return
        self._filled += size
        request = bytes(self._buffer[: self._filled])
        if b"\r\n\r\n" in request or b"\n\n" in request:
            self._respond(*_response_to(request, self._server.text))
        elif self._filled == REQUEST_BYTES_MAX:
            self._respond("431 Request Header Fields Too Large", "request header too large\n", True)

    def pause_writing(self) -> None:
        """There is only one response to write."""

    def resume_writing(self) -> None:
        """See `pause_writing`."""

    def connection_lost(self, error: Exception | None) -> None:
        self._connection = None
        self._server.connections.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    def _respond(self, status: str, text: str, has_body: bool) -> None:
        self._has_responded = True
        body = text.encode()
        content_type = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
        fields = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close"
        head = f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n"
        if self._connection is not None:
            self._connection.write([head.encode() + (body if has_body else b"")])
            self._connection.close()


def _response_to(request: bytes, text: Callable[[], str]) -> tuple[str, str, bool]:
    """Return the status, the page, and whether the page is sent."""
    words = request.split(b"\n", 1)[0].strip().split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return "400 Bad Request", "only HTTP/1.1 is supported\n", True
    method, target = words[0], words[1].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return "405 Method Not Allowed", "only GET /metrics is supported\n", True
    if target != b"/metrics":
        return "404 Not Found", "metrics are at /metrics\n", method == b"GET"
    return "200 OK", text(), method == b"GET"
