"""A connection to one broker: BrokerProtocol over the Network port."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.base.ports import Connection, Network
from ottla.client.errors import BrokerUnreachableError, ClientError, DisconnectedError
from ottla.client.protocol import BrokerProtocol, OnResponse
from ottla.wire.errors import MalformedMessage
from ottla.wire.framing import BadFrame, ReceiveBufferPool
from ottla.wire.schema import Message, decode

R = TypeVar("R", bound=Message)


class BrokerConnection:
    """Sends requests in the order of the calls. A lost connection is not reopened; create another one."""

    def __init__(self, host: str, port: int, client_id: str, network: Network, buffers: ReceiveBufferPool) -> None:
        self.host = host
        self.port = port
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._protocol = BrokerProtocol(client_id, buffers)
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0.0
        self._error: ClientError | None = None
        self._closed: asyncio.Future[None] | None = None
        self.is_disconnected = False
        self.is_write_paused = False
        """The socket's write buffer is full."""
        self.on_drained: Callable[[], None] | None = None
        """Called once, when writing resumes or the connection is lost."""
        self.throttled_until_ms = 0.0
        """End of the broker's throttle time, in the event loop's time."""
        self.last_used_ms = self.now_ms()
        self.get_buffer = self._protocol.get_buffer
        self.version_for = self._protocol.version_for
        self.supports = self._protocol.supports

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def in_flight(self) -> int:
        return self._protocol.in_flight

    def now_ms(self) -> float:
        return self._loop.time() * 1000

    async def connect(self, timeout_ms: float) -> None:
        """Connect and negotiate versions. Raises BrokerUnreachableError."""
        ready: asyncio.Future[None] = self._loop.create_future()

        def on_ready() -> None:
            if not ready.done():
                ready.set_result(None)

        def on_failure(error: ClientError) -> None:
            if not ready.done():
                ready.set_exception(error)

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._network.connect(self.host, self.port, self)
                deadline_ms = self.now_ms() + timeout_ms
                self._write(self._protocol.start_negotiation(on_ready, self._write, on_failure, deadline_ms))
                await ready
        except TimeoutError:
            self.close(now=True)
            raise BrokerUnreachableError(f"{self.address} did not respond within {timeout_ms:.0f} ms.") from None
        except OSError as error:
            raise BrokerUnreachableError(f"{self.address} is unreachable: {error.strerror or error}.") from None
        except DisconnectedError as error:
            raise BrokerUnreachableError(f"{self.address} closed the connection during version negotiation.") from error

    def call(
        self, request: Message, response_type: type[R], *, timeout_ms: float, version_max: int | None = None
    ) -> "asyncio.Future[R]":
        """Send a request now. The future gets its response, or DisconnectedError."""
        future: asyncio.Future[R] = self._loop.create_future()

        def deliver(version: int, body: bytes | memoryview) -> None:
            message, _ = decode(response_type, version, body)
            throttle_ms = getattr(message, "throttle_time_ms", 0)
            if throttle_ms:
                self.throttled_until_ms = self.now_ms() + throttle_ms
            if not future.done():
                future.set_result(message)

        self._send(request, response_type, deliver, future, timeout_ms, version_max)
        return future

    def send_without_response(self, request: Message, *, version_max: int | None = None) -> None:
        """Send a request without a response (acks=0)."""
        if self._error is not None:
            raise self._error
        version = self._protocol.version_for(type(request), version_max)
        self.last_used_ms = self.now_ms()
        self._write(self._protocol.request(request, version, None, _ignore_response, _ignore_failure, 0))

    def _send(
        self,
        request: Message,
        response_type: type[Message],
        deliver: OnResponse,
        future: "asyncio.Future[Any]",
        timeout_ms: float,
        version_max: int | None,
    ) -> None:
        if self._error is not None:
            future.set_exception(self._error)
            return

        def fail(error: ClientError) -> None:
            if not future.done():
                future.set_exception(error)

        version = self._protocol.version_for(type(request), version_max)
        self.last_used_ms = now_ms = self.now_ms()
        deadline_ms = now_ms + timeout_ms
        self._write(self._protocol.request(request, version, response_type, deliver, fail, deadline_ms))
        if self._timer is None or deadline_ms < self._timer_ms:
            self._arm(deadline_ms)

    def _write(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.write([data])

    # Deadlines

    def _arm(self, deadline_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self._loop.call_at(deadline_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        expired_request = self._protocol.expired_request(self.now_ms() + 1)
        if expired_request is not None:
            self._disconnect(DisconnectedError(f"{self.address} did not respond in time."))
            return
        next_ms = self._protocol.next_deadline_ms
        if next_ms is not None:
            self._arm(next_ms)

    # Called by the network

    def connection_made(self, connection: Connection) -> None:
        self._connection = connection
        if self.is_disconnected:
            connection.abort()  # timed out before the connection was established

    def buffer_updated(self, size: int) -> None:
        try:
            self._protocol.received(size)
        except (BadFrame, MalformedMessage) as error:
            self._disconnect(DisconnectedError(f"{self.address} sent invalid data: {error}."))

    def pause_writing(self) -> None:
        self.is_write_paused = True

    def resume_writing(self) -> None:
        self.is_write_paused = False
        on_drained, self.on_drained = self.on_drained, None
        if on_drained is not None:
            on_drained()

    def connection_lost(self, error: Exception | None) -> None:
        self._connection = None
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)
        reason = f": {error}" if error is not None else ""
        self._disconnect(DisconnectedError(f"The connection to {self.address} was lost{reason}."))

    def _disconnect(self, reason: ClientError) -> None:
        if self.is_disconnected:
            return
        self.is_disconnected = True
        self._error = reason
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
        self._protocol.fail_all(reason)
        self.resume_writing()

    def close(self, *, now: bool = False) -> None:
        """Close the connection; with `now`, discard data that is not sent yet."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if now:
                connection.abort()
            else:
                self._closed = self._loop.create_future()
                connection.close()
        self._disconnect(DisconnectedError(f"The connection to {self.address} was closed by the client."))

    async def wait_closed(self) -> None:
        """After `close`, wait until written data is sent and the broker closed its end."""
        if self._closed is not None:
            await self._closed


def _ignore_response(version: int, body: bytes | memoryview) -> None:
    """Callback of a request without a response."""


def _ignore_failure(error: ClientError) -> None:
    """Callback of a request without a response."""
