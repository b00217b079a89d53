"""Network port: TCP through asyncio for reads, direct system calls for writes.

The loop's transport reads into the receiver's buffer. Responses bypass it and are written to the socket in the callback
that creates them: this saves a loop iteration, and `sendfile` can follow a header without waiting for the transport to
drain (uvloop has no `loop.sendfile`). Bytes that the socket does not accept are queued and sent by a writer callback on
a duplicated descriptor.
"""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from ottla.base.ports import Buffer, File, Receiver
from ottla.io import process

WRITE_QUEUE_HIGH_BYTES_MAX = 256 << 10
"""With more unsent bytes, the receiver is asked to produce no more responses."""
BACKLOG_MAX = 1024
LINGER_SECONDS = 0.5
DISCARD_BYTES = 16 << 10
PARTS_MAX = 1024
"""Limit of one gathered write."""
SEND_FILE_PIECE_BYTES_MAX = 4 << 20
_MORE = getattr(socket, "MSG_MORE", 0)
"""On systems without it, the reader is woken an additional time."""
_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)


def _disable_pacing(raw: socket.socket) -> None:
    """Disable pacing for a peer on the same machine, where there is no congestion. With a congestion control that
    paces, such as BBR, the timers take a quarter of the CPU for 1 MB."""
    if _CONGESTION is not None:
        with suppress(OSError):  # not available: keep the system's default
            raw.setsockopt(socket.IPPROTO_TCP, _CONGESTION, b"reno")


class _FilePiece:
    """A range of a file that is queued for the socket."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size


class TcpConnection:
    """`base.ports.Connection` over an asyncio transport."""

    __slots__ = (
        "_closing",
        "_descriptor",
        "_linger",
        "_loop",
        "_paused",
        "_queue",
        "_queued_bytes",
        "_receiver",
        "_socket",
        "_transport",
        "_writer_descriptor",
        "peer_host",
        "peer_port",
        "sent_bytes",
    )

    def __init__(self, transport: asyncio.Transport, receiver: Receiver, loop: asyncio.AbstractEventLoop) -> None:
        peer = transport.get_extra_info("peername") or ("", 0)
        self.peer_host: str = peer[0]
        self.peer_port: int = peer[1]
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # to detect a dead peer
        if raw.getsockname()[0] == self.peer_host:
            _disable_pacing(raw)
        self._transport = transport
        self._receiver = receiver
        self._loop = loop
        self._descriptor: int = raw.fileno()
        self._writer_descriptor = -1
        self._socket: socket.socket | None = None
        self._queue: deque[memoryview | _FilePiece] = deque()
        self._queued_bytes = 0
        self._paused = False
        self._closing = False
        self._linger: asyncio.TimerHandle | None = None
        self.sent_bytes = 0

    def write(self, parts: Sequence[Buffer], *, more: bool = False) -> None:
        if self._queue or self._descriptor < 0:
            self._enqueue_after(parts, 0)
            return
        if len(parts) > PARTS_MAX:
            parts = [b"".join(parts)]
        try:
            if more:
                sent = self._socket_object().sendmsg(parts, (), _MORE)
            else:
                sent = os.write(self._descriptor, parts[0]) if len(parts) == 1 else os.writev(self._descriptor, parts)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.abort()
            return
        self.sent_bytes += sent
        if sent != (len(parts[0]) if len(parts) == 1 else sum(map(len, parts))):
            self._enqueue_after(parts, sent)

    def _socket_object(self) -> socket.socket:
        """Return a socket for the descriptor, created when first needed."""
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=self._descriptor)
        return self._socket

    def send_file(self, file: File, position: int, size: int) -> None:
        if self._descriptor < 0:
            return
        self._queue.append(_FilePiece(file, position, size))
        self._queued_bytes += size
        if len(self._queue) == 1:
            self._drain()

    def buffered_bytes(self) -> int:
        return self._queued_bytes

    def pause_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._queue:
                self._end()

    def abort(self) -> None:
        self._transport.abort()

    def _end(self) -> None:
        """Send EOF and wait briefly for the peer to close. Closing a socket with unread received bytes would reset the
        connection, and the peer would lose responses that it has not read yet."""
        if self._transport.is_closing():
            return
        self._transport.set_protocol(_Discard(self._transport.get_protocol()))
        self._transport.resume_reading()
        try:
            self._transport.write_eof()
        except OSError:
            self.abort()
            return
        self._linger = self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def on_lost(self) -> None:
        """The transport has closed: drop the descriptor before its number is reused."""
        self._descriptor = -1
        if self._socket is not None:
            self._socket.detach()
            self._socket = None
        self._queue.clear()
        self._queued_bytes = 0
        self._stop_writer()
        if self._linger is not None:
            self._linger.cancel()

    def _enqueue_after(self, parts: Sequence[Buffer], sent: int) -> None:
        """Queue the parts, without their first `sent` bytes."""
        if self._descriptor < 0:
            return
        for part in parts:
            size = len(part)
            if sent >= size:
                sent -= size
                continue
            rest = memoryview(part)[sent:]
            self._queue.append(memoryview(bytes(rest)) if part.__class__ is memoryview else rest)  # borrowed
            self._queued_bytes += size - sent
            sent = 0
        self._watch()

    def _watch(self) -> None:
        """Wait until the socket is writable, and pause the receiver while too many bytes are queued."""
        if self._queue and self._writer_descriptor < 0:
            try:
                self._writer_descriptor = os.dup(self._descriptor)
            except OSError:  # no descriptor is available, so the rest cannot be sent later
                self.abort()
                return
            self._loop.add_writer(self._writer_descriptor, self._drain)
        if not self._paused and self._queued_bytes > WRITE_QUEUE_HIGH_BYTES_MAX:
            self._paused = True
            self._receiver.pause_writing()

    def _drain(self) -> None:
        """Write queued bytes until the socket accepts no more or the queue is empty."""
        queue = self._queue
        try:
            while queue:
                head = queue[0]
                if isinstance(head, _FilePiece):
                    sent = head.file.send_to(self._descriptor, head.position, min(head.size, SEND_FILE_PIECE_BYTES_MAX))
                    if not sent:
                        raise OSError("file is shorter than the announced response")
                    head.position += sent
                    head.size -= sent
                    rest = head.size
                else:
                    sent = os.write(self._descriptor, head)
                    rest = len(head) - sent
                    if rest:
                        queue[0] = head[sent:]
                self._queued_bytes -= sent
                self.sent_bytes += sent
                if not rest:
                    queue.popleft()
        except BlockingIOError:
            self._watch()
            return
        except OSError:
            self.abort()
            return
        self._stop_writer()
        if self._closing:
            self._end()
        elif self._paused:
            self._paused = False
            self._receiver.resume_writing()

    def _stop_writer(self) -> None:
        if self._writer_descriptor >= 0:
            self._loop.remove_writer(self._writer_descriptor)
            os.close(self._writer_descriptor)
            self._writer_descriptor = -1


class _Adapter(asyncio.BufferedProtocol):
    """Lets asyncio call the receiver's methods directly: the two called for each read are bound once, here."""

    def __init__(self, receiver: Receiver, loop: asyncio.AbstractEventLoop, network: "TcpNetwork") -> None:
        self._receiver = receiver
        self._loop = loop
        self._network = network
        self.connection: TcpConnection | None = None
        adapter = cast("Any", self)
        adapter.get_buffer = receiver.get_buffer
        adapter.buffer_updated = receiver.buffer_updated

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._network.open_count >= self._network.connections_max:
            cast("asyncio.Transport", transport).abort()
            return
        self._network.open_count += 1
        self.connection = TcpConnection(cast("asyncio.Transport", transport), self._receiver, self._loop)
        self._receiver.connection_made(self.connection)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.connection is None:
            return  # rejected by connection_made
        self._network.open_count -= 1
        self.connection.on_lost()
        self._receiver.connection_lost(exc)


class _Discard(asyncio.BufferedProtocol):
    """Replaces the adapter of a connection that is being closed, and discards what it receives."""

    def __init__(self, adapter: asyncio.BaseProtocol) -> None:
        self._adapter = adapter
        self._buffer = bytearray(DISCARD_BYTES)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Discard it."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._adapter.connection_lost(exc)


class TcpListener:
    """An open listening socket."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._server.close()


class TcpNetwork:
    """`base.ports.Network` over TCP. Limits connections so that descriptors remain for log files."""

    def __init__(self) -> None:
        self.connections_max = process.split_descriptors()[1]
        self.open_count = 0

    async def listen(self, host: str, port: int, receiver: Callable[[], Receiver]) -> TcpListener:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Adapter(receiver(), loop, self), host or None, port, backlog=BACKLOG_MAX, reuse_address=True
        )
        return TcpListener(server)

    async def connect(self, host: str, port: int, receiver: Receiver) -> TcpConnection:
        loop = asyncio.get_running_loop()
        _, adapter = await loop.create_connection(lambda: _Adapter(receiver, loop, self), host, port)
        if adapter.connection is None:
            raise OSError(errno.EMFILE, "too many open connections")
        return adapter.connection
