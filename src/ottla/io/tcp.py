"""The real Network: TCP through asyncio, with writes of its own.

Reading goes through the loop's transport, straight into the receiver's buffer. Writing does not: a response is written to the
socket in the callback that made it, which saves a turn of the loop, and lets `sendfile` follow a header without waiting for the
transport to say that it has drained (uvloop has no `loop.sendfile`). What the socket does not take at once waits in a queue and
leaves through a duplicated descriptor with a writer callback of its own.
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
"""Above this many unsent bytes the receiver is asked to make no more answers."""
BACKLOG_MAX = 1024
LINGER_SECONDS = 0.5
DISCARD_BYTES = 16 << 10
PARTS_MAX = 1024
"""More than this one gathered write does not take."""
SEND_FILE_PIECE_BYTES_MAX = 4 << 20
_MORE = getattr(socket, "MSG_MORE", 0)
"""Where a system does not have it, the reader is woken once more."""
_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)


def _send_unpaced(raw: socket.socket) -> None:
    """To a peer on the same machine: between the two nothing can be congested. Where the system's congestion control paces what is sent,
    as BBR does, its timers are a quarter of all CPU that a megabyte takes."""
    if _CONGESTION is not None:
        with suppress(OSError):  # a system without it: it is sent as ever
            raw.setsockopt(socket.IPPROTO_TCP, _CONGESTION, b"reno")


class _FilePiece:
    """A stretch of a file that waits for the socket."""

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
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a peer that vanished is found out at last
        if raw.getsockname()[0] == self.peer_host:
            _send_unpaced(raw)
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
                sent = self._whole_socket().sendmsg(parts, (), _MORE)
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

    def _whole_socket(self) -> socket.socket:
        """The socket of the descriptor, for the few who need more than the descriptor."""
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
        """Say that nothing follows, and wait a moment for the peer to end too. A socket that is closed over bytes which nobody has read
        is reset, and that takes back the answers that the peer has not read yet."""
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
        """The transport is gone: forget the descriptor before its number is used again."""
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
        """What is left of the parts once `sent` bytes of them have gone waits for the socket."""
        if self._descriptor < 0:
            return
        for part in parts:
            size = len(part)
            if sent >= size:
                sent -= size
                continue
            rest = memoryview(part)[sent:]
            self._queue.append(memoryview(bytes(rest)) if part.__class__ is memoryview else rest)  # a view is lent
            self._queued_bytes += size - sent
            sent = 0
        self._watch()

    def _watch(self) -> None:
        """Wait for the socket to take more, and ask for no more answers while too much waits."""
        if self._queue and self._writer_descriptor < 0:
            try:
                self._writer_descriptor = os.dup(self._descriptor)
            except OSError:  # no descriptor is left: what cannot be sent later is not sent at all
                self.abort()
                return
            self._loop.add_writer(self._writer_descriptor, self._drain)
        if not self._paused and self._queued_bytes > WRITE_QUEUE_HIGH_BYTES_MAX:
            self._paused = True
            self._receiver.pause_writing()

    def _drain(self) -> None:
        """Write what waits until the socket takes no more or nothing is left."""
        queue = self._queue
        try:
            while queue:
                head = queue[0]
                if isinstance(head, _FilePiece):
                    sent = head.file.send_to(self._descriptor, head.position, min(head.size, SEND_FILE_PIECE_BYTES_MAX))
                    if not sent:
                        raise OSError("the file ended before what was announced")
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
    """Lets asyncio call the receiver's own methods: what the loop calls per read is bound once, here."""

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
            return  # it was never let in
        self._network.open_count -= 1
        self.connection.on_lost()
        self._receiver.connection_lost(exc)


class _Discard(asyncio.BufferedProtocol):
    """Takes the place of an adapter whose connection is being closed: what still comes is read and forgotten."""

    def __init__(self, adapter: asyncio.BaseProtocol) -> None:
        self._adapter = adapter
        self._buffer = bytearray(DISCARD_BYTES)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Nobody wants it."""

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
    """`base.ports.Network` on this machine's network. Connections leave descriptors for files: a log needs its own."""

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
            raise OSError(errno.EMFILE, "too many connections are open")
        return adapter.connection
