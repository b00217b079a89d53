"""A network in memory: streams whose bytes arrive late and in pieces, as the seed says, through the same calls that a real loop would make.

A stream has two ends. What an end writes waits in its queue until the wire takes it (a limited window, as a kernel's buffers are), and
leaves the wire in pieces, each one event: `get_buffer`, some bytes, `buffer_updated`.
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

# Above this many bytes that the wire has not taken, the receiver is asked to write no more: what the real network does.
QUEUE_BYTES_HIGH = 256 << 10
_WINDOW_BYTES_MAX = 256 << 10
_PIECE_BYTES_MAX = 64 << 10
_FIRST_FREE_PORT = 49152

_FileRegion = tuple[File, int, int]


class SimulatedConnection:
    """One end of a stream. `peer` is the other."""

    def __init__(
        self, fabric: "NetworkFabric", process: Process, context: Context, *, peer_host: str, peer_port: int
    ) -> None:
        self._fabric = fabric
        self._receiver: Receiver
        self._queue: deque[memoryview | _FileRegion] = deque()
        self._queued_bytes = 0
        self._wire = bytearray()  # what is on its way to this end
        self._is_reading = True
        self._is_paused = False  # the receiver was asked not to write
        self._is_closing = False
        self._is_lost = False
        self._has_ended = False  # the peer writes no more
        self._is_reset = False  # the peer has gone without a word
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

    # What the receiver calls.

    def write(self, parts: Sequence[Buffer], *, more: bool = False) -> None:
        self.process.check()
        if self._is_closing or self._is_lost:
            return
        data = b"".join(parts)
        self._fabric.note(self, "write", data)
        if data:
            self._queue.append(memoryview(data))
            self._queued_bytes += len(data)
        self._fill_wire()
        self._maybe_pause()

    def send_file(self, file: File, position: int, size: int) -> None:
        self.process.check()
        if self._is_closing or self._is_lost:
            return
        self._fabric.note(self, "send_file", file.path, position, size)
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
            self._fabric.note(self, "close")
            self._is_closing = True
            self._is_reading = False
            self._maybe_finish()

    def abort(self) -> None:
        self.process.check()
        if not self._is_lost:
            self._fabric.note(self, "abort")
            self._lose(None)
            self.peer.reset()

    # What the wire does.

    def _fill_wire(self) -> None:
        """Put on the wire what it takes: writes whole, files piece by piece, when their turn comes."""
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
                        raise OSError("the file ended before what was announced")
                    if len(data) < size:
                        self._queue.appendleft((file, position + len(data), size - len(data)))
                self._queued_bytes -= len(data)
                self.sent_bytes += len(data)
                if not peer._is_lost:
                    peer._wire += data
        except OSError:
            self.abort()  # part of an answer is worse than none
            return
        peer.schedule_delivery()

    def _maybe_pause(self) -> None:
        if not self._is_paused and self._queued_bytes > QUEUE_BYTES_HIGH:
            self._is_paused = True
            self._receiver.pause_writing()

    def _on_wire_drained(self) -> None:
        """The wire has taken bytes off: move on, and let the receiver write again once nothing waits."""
        if self._is_lost:
            return
        self._fill_wire()
        if not self._queue and self._is_paused and not self._is_closing and not self._is_lost:
            self._is_paused = False
            self._receiver.resume_writing()
        self._maybe_finish()

    def schedule_delivery(self) -> None:
        """One piece at a time is under way to an end, so that none overtakes another."""
        has_news = self._is_reset or self._has_ended or (self._wire and self._is_reading)
        if has_news and self._delivery is None and not self._is_lost:
            self._delivery = self._fabric.later(self.context, self._deliver)

    def _deliver(self) -> None:
        self._delivery = None
        if self._is_lost:
            return
        if self._fabric.is_cut(self.peer.process.name, self.process.name):
            self._fabric.hold(self)
            return
        if self._is_reset:
            self._lose(ConnectionResetError(errno.ECONNRESET, "the peer has gone"))
        elif self._wire and self._is_reading:
            self._receive(self._fabric.chunk_size(len(self._wire)))
            self.schedule_delivery()
        elif self._has_ended and (not self._wire or self._is_closing):
            self._is_closing = True  # as asyncio does at the end of a stream, unless the protocol objects
            self._fill_wire()
            self._maybe_finish()

    def _receive(self, size: int) -> None:
        buffer = self._receiver.get_buffer(-1)
        if not len(buffer):
            raise RuntimeError("get_buffer returned an empty buffer")
        size = min(size, len(buffer))
        buffer[:size] = self._wire[:size]
        self._fabric.note(self, "receive", self._wire[:size])
        del self._wire[:size]
        if not self.peer._is_lost and self.peer._queued_bytes:
            self._fabric.soon(self.peer.context, self.peer._on_wire_drained)
        self._receiver.buffer_updated(size)

    def _maybe_finish(self) -> None:
        """A closing end is lost once its queue has left."""
        if self._is_closing and not self._is_lost and not self._queue:
            self._lose(None)
            self.peer.end()

    def end(self) -> None:
        """The peer has closed: after what is still on the wire, so does this end."""
        if not self._is_lost:
            self._has_ended = True
            self.schedule_delivery()

    def reset(self) -> None:
        """The peer has gone without a word. What was on the wire is lost with it."""
        if not self._is_lost:
            self._is_reset = True
            self.schedule_delivery()

    def _lose(self, error: Exception | None) -> None:
        self._is_lost = True
        self._queue.clear()
        self._queued_bytes = 0
        self._wire.clear()
        self._fabric.forget(self)
        self._fabric.soon(self.context, self._receiver.connection_lost, error)

    def on_process_death(self, *, is_polite: bool) -> None:
        """This end's process has died. A kernel that lives on sends what the wire has taken, or resets the stream; nobody here is told."""
        self._is_lost = True
        self._queue.clear()
        self._queued_bytes = 0
        self._wire.clear()
        if is_polite:
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
    """All streams and listeners of a world. Links between two processes can be cut, in one direction or both, and healed."""

    def __init__(self, loop: SimulatedLoop, source: random.Random, trace: Trace) -> None:
        self._loop = loop
        self._random = source
        self._trace = trace
        self._listeners: dict[int, SimulatedListener] = {}
        self._connections: dict[SimulatedConnection, None] = {}
        self._cut: dict[tuple[str, str], None] = {}
        self._held: list[SimulatedConnection] = []
        self._healed: list[asyncio.Future[None]] = []
        self._next_port = _FIRST_FREE_PORT
        self.window_bytes = source.choice((4 << 10, 64 << 10, _WINDOW_BYTES_MAX))

    def cut(self, source: str, target: str) -> None:
        """Nothing that `source` sends reaches `target` until the link is healed; it is kept, as a patient TCP keeps it."""
        self._cut[source, target] = None

    def partition(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def heal(self) -> None:
        self._cut.clear()
        held, self._held = self._held, []
        for connection in held:
            connection.schedule_delivery()
        healed, self._healed = self._healed, []
        for future in healed:
            if not future.done():
                future.set_result(None)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def hold(self, connection: SimulatedConnection) -> None:
        self._held.append(connection)

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
        self.soon(far.context, far.start, listener.receiver)
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
                connection.on_process_death(is_polite=not is_power_cut and self._random.random() < 0.5)

    def forget(self, connection: SimulatedConnection) -> None:
        self._connections.pop(connection, None)

    def note(self, connection: SimulatedConnection, call: str, *details: int | str | bytes | bytearray) -> None:
        self._trace.add(connection.process.name, call, connection.peer_port, *details)

    def soon(self, context: Context, callback: Callable[..., None], *args: object) -> None:
        self._loop.call_soon(callback, *args, context=context)

    def later(self, context: Context, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(self._delay(), callback, context=context)

    def chunk_size(self, size: int) -> int:
        """How many of the bytes on a wire arrive together: mostly all, sometimes some, now and then hardly any."""
        kind = self._random.random()
        if kind < 0.04:
            return self._random.randint(1, min(size, 8))
        if kind < 0.3:
            return self._random.randint(1, min(size, _PIECE_BYTES_MAX))
        return min(size, _PIECE_BYTES_MAX)

    def _delay(self) -> float:
        return self._random.uniform(0.000_02, 0.05 if self._random.random() < 0.02 else 0.001)

    def _take_port(self) -> int:
        self._next_port += 1
        return self._next_port


class SimulatedNetwork:
    """The Network port of one process; `connect` is for clients."""

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
