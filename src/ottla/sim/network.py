"""An in-memory network: bytes arrive delayed and in pieces, as the seed determines, with the same calls as a real loop.

A stream has two ends. Written data waits in the sender's queue until the wire has space (a limited window, like a
kernel's socket buffer), and is delivered in pieces, one event each: `get_buffer`, copy bytes, `buffer_updated`.
"""

import asyncio
import errno
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context

from ottla.base.ports import Buffer, File, Receiver
from ottla.sim.loop import SimulatedLoop
from ottla.sim.process import Process
from ottla.sim.storage import os_error
from ottla.sim.trace import Trace

# Pause the writer when more than this is queued, like the real network.
QUEUE_BYTES_HIGH = 256 << 10
_WINDOW_BYTES_MAX = 256 << 10
_PIECE_BYTES_MAX = 64 << 10
_FIRST_FREE_PORT = 49152

_FileRegion = tuple[File, int, int]


class SimulatedConnection:
    """One end of a stream; `peer` is the other end."""

    def __init__(
        self, fabric: "NetworkFabric", process: Process, context: Context, *, peer_host: str, peer_port: int
    ) -> None:
        self._fabric = fabric
        self._receiver: Receiver
        self._queue: deque[memoryview | _FileRegion] = deque()
        self._queued_bytes = 0
        self._wire = bytearray()  # bytes in flight to this end
        self._is_reading = True
        self._is_paused = False  # the receiver had to pause writing
        self._is_closing = False
        self._is_lost = False
        self._has_ended = False  # the peer closed its end
        self._is_reset = False  # the peer aborted or died
        self._delivery: asyncio.TimerHandle | None = None
        self.process = process
        self.context = context
        self.peer: SimulatedConnection
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.sent_bytes = 0

    def start(self, receiver: Callable[[], Receiver]) -> None:
        self._receiver = receiver()
        self._receiver.connection_made(self)

    # Called by the receiver

    def write(self, parts: Sequence[Buffer], *, more: bool = False) -> None:
        self.process.check()
        if self._is_closing or self._is_lost:
            return
        data = b"".join(parts)
        self._fabric.trace(self, "write", data)
        if data:
            self._queue.append(memoryview(data))
            self._queued_bytes += len(data)
        self._fill_wire()
        self._maybe_pause()

    def send_file(self, file: File, position: int, size: int) -> None:
        self.process.check()
        if self._is_closing or self._is_lost:
            return
        self._fabric.trace(self, "send_file", file.path, position, size)
        if size:
            self._queue.append((file, position, size))
            self._queued_bytes += size
        self._fill_wire()
        self._maybe_pause()

    def buffered_bytes(self) -> int:
        return self._queued_bytes

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.schedule_delivery()

    def close(self) -> None:
        self.process.check()
        if not self._is_closing and not self._is_lost:
            self._fabric.trace(self, "close")
            self._is_closing = True
            self._is_reading = False
            self._maybe_finish()

    def abort(self) -> None:
        self.process.check()
        if not self._is_lost:
            self._fabric.trace(self, "abort")
            self._lose(None)
            self.peer.reset()

    # Called by the network

    def _fill_wire(self) -> None:
        """Move queued data to the wire while it has space; files are read piece by piece."""
        peer = self.peer
        try:
            while self._queue and len(peer._wire) < self._fabric.window_bytes:
                head = self._queue.popleft()
                data: Buffer
                if isinstance(head, memoryview):
                    data = head[: self._fabric.window_bytes - len(peer._wire)]
                    if len(data) < len(head):
                        self._queue.appendleft(head[len(data) :])
                else:
                    file, position, size = head
                    data = file.read_at(position, min(size, self._fabric.window_bytes - len(peer._wire)))
                    if not data:
                        raise OSError("file ended before the announced size")
                    if len(data) < size:
                        self._queue.appendleft((file, position + len(data), size - len(data)))
                self._queued_bytes -= len(data)
                self.sent_bytes += len(data)
                if not peer._is_lost:
                    peer._wire += data
        except OSError:
            self.abort()  # a truncated response must not look complete
            return
        peer.schedule_delivery()

    def _maybe_pause(self) -> None:
        if not self._is_paused and self._queued_bytes > QUEUE_BYTES_HIGH:
            self._is_paused = True
            self._receiver.pause_writing()

    def _on_wire_drained(self) -> None:
        """The peer has received bytes: fill the wire, and resume the writer once the queue is empty."""
        if self._is_lost:
            return
        self._fill_wire()
        if not self._queue and self._is_paused and not self._is_closing and not self._is_lost:
            self._is_paused = False
            self._receiver.resume_writing()
        self._maybe_finish()

    def schedule_delivery(self) -> None:
        """Schedule the next delivery. One at a time, so that pieces stay in order."""
        has_update = self._is_reset or self._has_ended or (self._wire and self._is_reading)
        if has_update and self._delivery is None and not self._is_lost:
            self._delivery = self._fabric.call_delayed(self.context, self._deliver)

    def _deliver(self) -> None:
        self._delivery = None
        if self._is_lost:
            return
        if self._fabric.is_cut(self.peer.process.name, self.process.name):
            self._fabric.delay_until_healed(self)
            return
        if self._is_reset:
            self._lose(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))
        elif self._wire and self._is_reading:
            self._receive(self._fabric.chunk_size(len(self._wire)))
            self.schedule_delivery()
        elif self._has_ended and (not self._wire or self._is_closing):
            self._is_closing = True  # as asyncio does at end of stream, unless the protocol objects
            self._fill_wire()
            self._maybe_finish()

    def _receive(self, size: int) -> None:
        buffer = self._receiver.get_buffer(-1)
        if not len(buffer):
            raise RuntimeError("get_buffer returned an empty buffer")
        size = min(size, len(buffer))
        buffer[:size] = self._wire[:size]
        self._fabric.trace(self, "receive", self._wire[:size])
        del self._wire[:size]
        if not self.peer._is_lost and self.peer._queued_bytes:
            self._fabric.call_soon(self.peer.context, self.peer._on_wire_drained)
        self._receiver.buffer_updated(size)

    def _maybe_finish(self) -> None:
        """Close a closing end once its queue is empty."""
        if self._is_closing and not self._is_lost and not self._queue:
            self._lose(None)
            self.peer.end()

    def end(self) -> None:
        """The peer closed: this end closes after the bytes in flight."""
        if not self._is_lost:
            self._has_ended = True
            self.schedule_delivery()

    def reset(self) -> None:
        """The peer aborted: bytes in flight are lost."""
        if not self._is_lost:
            self._is_reset = True
            self.schedule_delivery()

    def _lose(self, error: Exception | None) -> None:
        self._is_lost = True
        self._queue.clear()
        self._queued_bytes = 0
        self._wire.clear()
        self._fabric.remove(self)
        self._fabric.call_soon(self.context, self._receiver.connection_lost, error)

    def on_process_death(self, *, is_orderly: bool) -> None:
        """This end's process died. The kernel sends what is on the wire, or resets the stream; no callback runs."""
        self._is_lost = True
        self._queue.clear()
        self._queued_bytes = 0
        self._wire.clear()
        if is_orderly:
            self.peer.end()
        else:
            self.peer.reset()


class SimulatedListener:
    def __init__(
        self, fabric: "NetworkFabric", process: Process, context: Context, port: int, receiver: Callable[[], Receiver]
    ) -> None:
        self._fabric = fabric
        self.process = process
        self.context = context
        self.port = port
        self.receiver = receiver

    def close(self) -> None:
        self._fabric.close_listener(self)


class NetworkFabric:
    """All streams and listeners of a world.

    Links between processes can be cut, in one or both directions, and healed.
    """

    def __init__(self, loop: SimulatedLoop, source: random.Random, trace: Trace) -> None:
        self._loop = loop
        self._random = source
        self._trace = trace
        self._listeners: dict[int, SimulatedListener] = {}
        self._connections: dict[SimulatedConnection, None] = {}
        self._cut: dict[tuple[str, str], None] = {}
        self._delayed: list[SimulatedConnection] = []
        self._healed: list[asyncio.Future[None]] = []
        self._next_port = _FIRST_FREE_PORT
        self.window_bytes = source.choice((4 << 10, 64 << 10, _WINDOW_BYTES_MAX))

    def cut(self, source: str, target: str) -> None:
        """Delay everything that `source` sends to `target` until the link is healed, as TCP retransmission does."""
        self._cut[source, target] = None

    def partition(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def heal(self) -> None:
        self._cut.clear()
        delayed, self._delayed = self._delayed, []
        for connection in delayed:
            connection.schedule_delivery()
        healed, self._healed = self._healed, []
        for future in healed:
            if not future.done():
                future.set_result(None)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def delay_until_healed(self, connection: SimulatedConnection) -> None:
        self._delayed.append(connection)

    def add_listener(
        self, process: Process, context: Context, port: int, receiver: Callable[[], Receiver]
    ) -> SimulatedListener:
        if port == 0:
            port = self._take_port()
        if port in self._listeners:
            raise os_error(errno.EADDRINUSE, f"port {port}")
        listener = self._listeners[port] = SimulatedListener(self, process, context, port, receiver)
        self._trace.add(process.name, "listen", port)
        return listener

    def close_listener(self, listener: SimulatedListener) -> None:
        if self._listeners.get(listener.port) is listener:
            del self._listeners[listener.port]

    async def connect(
        self, process: Process, context: Context, host: str, port: int, receiver: Receiver
    ) -> SimulatedConnection:
        self._trace.add(process.name, "connect", host, port)
        await asyncio.sleep(self._delay())
        while (listener := self._listeners.get(port)) is not None and self._is_cut_either_way(
            process.name, listener.process.name
        ):
            healed: asyncio.Future[None] = self._loop.create_future()
            self._healed.append(healed)
            await healed
        if listener is None:
            raise os_error(errno.ECONNREFUSED, f"{host}:{port}")
        near = SimulatedConnection(self, process, context, peer_host=host, peer_port=port)
        far = SimulatedConnection(
            self, listener.process, listener.context, peer_host="127.0.0.1", peer_port=self._take_port()
        )
        near.peer, far.peer = far, near
        self._connections[near] = None
        self._connections[far] = None
        self.call_soon(far.context, far.start, listener.receiver)
        near.start(lambda: receiver)
        return near

    def _is_cut_either_way(self, one: str, other: str) -> bool:
        return self.is_cut(one, other) or self.is_cut(other, one)

    def process_died(self, process: Process, *, is_power_cut: bool) -> None:
        for listener in list(self._listeners.values()):
            if listener.process is process:
                listener.close()
        for connection in list(self._connections):
            if connection.process is process:
                del self._connections[connection]
                connection.on_process_death(is_orderly=not is_power_cut and self._random.random() < 0.5)

    def remove(self, connection: SimulatedConnection) -> None:
        self._connections.pop(connection, None)

    def trace(self, connection: SimulatedConnection, call: str, *details: int | str | bytes | bytearray) -> None:
        self._trace.add(connection.process.name, call, connection.peer_port, *details)

    def call_soon(self, context: Context, callback: Callable[..., None], *args: object) -> None:
        self._loop.call_soon(callback, *args, context=context)

    def call_delayed(self, context: Context, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(self._delay(), callback, context=context)

    def chunk_size(self, size: int) -> int:
        """Return how many of `size` bytes arrive together: mostly all, sometimes some, rarely a few."""
        draw = self._random.random()
        if draw < 0.04:
            return self._random.randint(1, min(size, 8))
        if draw < 0.3:
            return self._random.randint(1, min(size, _PIECE_BYTES_MAX))
        return min(size, _PIECE_BYTES_MAX)

    def _delay(self) -> float:
        return self._random.uniform(0.000_02, 0.05 if self._random.random() < 0.02 else 0.001)

    def _take_port(self) -> int:
        self._next_port += 1
        return self._next_port


class SimulatedNetwork:
    """The Network port of one process. `connect` is for clients."""

    def __init__(self, fabric: NetworkFabric, process: Process) -> None:
        self._fabric = fabric
        self._process = process
        self._context = process.context()

    async def listen(self, host: str, port: int, receiver: Callable[[], Receiver]) -> SimulatedListener:
        self._process.check()
        return self._fabric.add_listener(self._process, self._context, port, receiver)

    async def connect(self, host: str, port: int, receiver: Receiver) -> SimulatedConnection:
        self._process.check()
        return await self._fabric.connect(self._process, self._context, host, port, receiver)
