"""The protocol over a plain socket: requests as message classes or as arbitrary bytes."""

import socket
import struct
import sys
from types import TracebackType
from typing import Any, Self

from ottla.wire.schema import Message, decode, encode

API_VERSIONS = 18
WAIT_SECONDS = 15.0


class ConnectionClosed(Exception):
    """The broker closed the connection."""


class ResponseTimeout(Exception):
    """No response arrived in time."""


def response_class(request: type[Message]) -> type[Message]:
    """Return the response class of a request class."""
    found: type[Message] = getattr(
        sys.modules[request.__module__], request.__name__.removesuffix("Request") + "Response"
    )
    return found


def request_bytes(request: Message, version: int, correlation_id: int = 1, client_id: str | None = "compat") -> bytes:
    """Return the frame's contents, without its size."""
    flexible = version >= type(request).FLEXIBLE_FROM
    return header_bytes(type(request).API_KEY, version, correlation_id, client_id, flexible=flexible) + encode(
        request, version
    )


def header_bytes(
    key: int, version: int, correlation_id: int = 1, client_id: str | None = "compat", *, flexible: bool = False
) -> bytes:
    name = None if client_id is None else client_id.encode()
    text = struct.pack(">h", -1) if name is None else struct.pack(">h", len(name)) + name
    return struct.pack(">hhi", key, version, correlation_id) + text + (b"\0" if flexible else b"")


def framed(contents: bytes) -> bytes:
    return struct.pack(">i", len(contents)) + contents


def read_response(request: type[Message], version: int, contents: bytes) -> tuple[int, Any]:
    """Return correlation id and message. ApiVersions responses never have a flexible header."""
    correlation_id = struct.unpack_from(">i", contents)[0]
    position = 4
    if version >= request.FLEXIBLE_FROM and request.API_KEY != API_VERSIONS:
        assert contents[4] == 0, "tags in a response header"
        position = 5
    message, end = decode(response_class(request), version, contents, position)
    assert end == len(contents), f"{len(contents) - end} bytes after the end of the response"
    return correlation_id, message


class RawConnection:
    """A blocking connection for one thread. `call` is `send` and `receive`."""

    def __init__(self, address: tuple[str, int], *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:  # before connecting, when the window is negotiated
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(WAIT_SECONDS)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def call(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive(type(request), version)

    def send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        self.send_frame(request_bytes(request, version, self._correlation_id))

    def receive(self, request: type[Message], version: int) -> Any:
        return read_response(request, version, self.receive_frame())[1]

    def send_frame(self, contents: bytes) -> None:
        self.send_bytes(framed(contents))

    def send_bytes(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosed from error

    def receive_frame(self) -> bytes:
        size = struct.unpack(">i", self._receive(4))[0]
        return self._receive(size)

    def is_closed(self, within_seconds: float = WAIT_SECONDS) -> bool:
        """Wait for the broker to close the connection. Raises AssertionError if it sends data."""
        self.socket.settimeout(within_seconds)
        try:
            data = self.socket.recv(1)
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(WAIT_SECONDS)
        assert not data, "received data instead of a closed connection"
        return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            try:
                part = self.socket.recv(min(size, 1 << 20))
            except ConnectionResetError as error:
                raise ConnectionClosed from error
            except TimeoutError as error:
                raise ResponseTimeout from error
            if not part:
                raise ConnectionClosed
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
