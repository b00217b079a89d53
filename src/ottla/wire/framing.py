"""Splits a stream of bytes into frames, without doing I/O.

All connections of a loop receive into one shared buffer, and frames that arrive complete are handled there. Only the
beginning of an incomplete frame moves to a buffer of its own, and the rest of the frame is received directly into it.
An idle connection therefore owns no buffer.

An announced size costs no memory: the buffer of a large frame grows with the bytes received; only that of a small one
is allocated at once. A budget (`queued.max.request.bytes`) can limit what all incomplete frames announce together; a
connection whose frame exceeds it is not read until memory is released.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct

RECEIVE_BYTES = 256 << 10
POOLED_BYTES_MAX = 8 << 20
POOLED_GRAIN_BYTES = 64 << 10
UNBUDGETED_BYTES_MAX = 64 << 10
"""Frames up to this size do not count against the budget: large ones that never complete cannot block them."""
PREALLOCATED_BYTES_MAX = 2 << 20
PREALLOCATED_TOTAL_BYTES_MAX = 64 << 20
"""Frames up to the first size get their complete buffer at once, while all owned buffers stay below the second."""
GROWN_BYTES_MIN = 4 << 10
DETACH_BYTES_MIN = 256 << 10
"""Frames below this size are copied, which is cheaper than detaching their buffer."""
DETACHED_MAX, DETACHED_BYTES_MAX = 6, 48 << 20
"""Detached buffers to remember. A consumer has as many responses: two buffered, one arriving, the others being read."""
FEW_FRAMES = 4
SMALL_BYTES_MAX = 1 << 10
"""Frames up to this size take little time."""
MANY_BYTES_MIN = 2 << 10
"""Less than this received at once is one frame, or a few small ones: no burst."""

_read_size = Struct(">i").unpack_from


class BadFrame(ValueError):
    """An invalid frame size: the rest of the stream cannot be parsed."""


class ReceiveBufferPool:
    """The receive memory of all connections of one loop."""

    __slots__ = (
        "_detached",
        "_pool",
        "_pooled_bytes",
        "_preallocated_bytes_max",
        "_waiters",
        "budget_bytes",
        "owned_bytes",
        "reserved_bytes",
        "shared",
        "shared_view",
    )

    def __init__(self, budget_bytes: int = -1, *, preallocated_bytes_max: int = PREALLOCATED_BYTES_MAX) -> None:
        self.shared = bytearray(RECEIVE_BYTES)
        self.shared_view = memoryview(self.shared)
        self.budget_bytes = budget_bytes
        """Upper limit of what incomplete large frames announce together; none if it is not positive."""
        self.owned_bytes = 0
        """Total size of the buffers that connections own."""
        self.reserved_bytes = 0
        """Total announced size of the incomplete frames that hold a reservation."""
        self._waiters: dict[FrameReader, None] = {}
        self._preallocated_bytes_max = preallocated_bytes_max
        self._pool: dict[int, list[bytearray]] = {}
        self._pooled_bytes = 0
        self._detached: deque[bytearray] = deque(maxlen=DETACHED_MAX)

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)

    def try_reserve(self, size: int) -> bool:
        """Reserve memory for a frame. As in Kafka the last one may exceed the budget: no frame is too large for it."""
        if 0 < self.budget_bytes <= self.reserved_bytes:
            return False
        self.reserved_bytes += size
        return True

    def release_reservation(self, size: int) -> None:
        """Release the memory of a frame that was handled, or whose connection closed, to the readers that wait."""
        self.reserved_bytes -= size
        while self._waiters and not 0 < self.budget_bytes <= self.reserved_bytes:
            reader = next(iter(self._waiters))
            del self._waiters[reader]
            reader.on_memory_available()

    def add_waiter(self, reader: "FrameReader") -> None:
        self._waiters[reader] = None

    def remove_waiter(self, reader: "FrameReader") -> None:
        self._waiters.pop(reader, None)

    def initial_size(self, rest: int, target: int) -> int:
        """Return the size of the first buffer for a frame of which `rest` bytes have arrived."""
        if target <= self._preallocated_bytes_max and self.owned_bytes + target <= PREALLOCATED_TOTAL_BYTES_MAX:
            return target
        return min(target, max(2 * rest, GROWN_BYTES_MIN))

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes, rounded up so that it can be pooled."""
        grains = -(-size // POOLED_GRAIN_BYTES)
        waiting = self._pool.get(grains)
        if waiting:
            self._pooled_bytes -= grains * POOLED_GRAIN_BYTES
            buffer = waiting.pop()
        else:
            buffer = self._reclaim_detached(grains * POOLED_GRAIN_BYTES) or bytearray(
                grains * POOLED_GRAIN_BYTES if size > POOLED_GRAIN_BYTES else size
            )
        self.owned_bytes += len(buffer)
        return buffer

    def detach(self, buffer: bytearray) -> None:
        """Give up a buffer that is still in use. The last few are remembered, and reclaimed once they have no views."""
        self.owned_bytes -= len(buffer)
        self._detached.append(buffer)
        while sum(map(len, self._detached)) > DETACHED_BYTES_MAX:
            self._detached.popleft()

    def _reclaim_detached(self, size: int) -> bytearray | None:
        """Return a detached buffer of this size that has no views any more, if there is one."""
        for index, buffer in enumerate(self._detached):
            if len(buffer) == size and not _has_views(buffer):
                del self._detached[index]
                return buffer
        return None

    def release(self, buffer: bytearray) -> None:
        """Take a buffer back; some are pooled, as new memory costs a page fault per 4 kB."""
        size = len(buffer)
        self.owned_bytes -= size
        if size % POOLED_GRAIN_BYTES == 0 and size and self._pooled_bytes + size <= POOLED_BYTES_MAX:
            self._pool.setdefault(size // POOLED_GRAIN_BYTES, []).append(buffer)
            self._pooled_bytes += size


class FrameReader:
    """One connection's position in its stream: calls `handle(buffer, view, start, end)` for each complete frame.

    The reader has no state but the bytes it owns. Its connection decides whether frames are handled: `received`
    handles what arrived, `store` only keeps it, `resume` handles what was kept. Handling stops when `handle` returns
    False or `should_yield` returns True, and the connection calls `resume` later. `should_yield(is_first)` is
    asked before a burst of frames and within it, after every few small frames and each larger one.
    `on_memory_exhausted` is called when a large frame has to wait for memory, `on_memory_available` when it has it.
    """

    __slots__ = (
        "_buffers",
        "_filled",
        "_frame_max",
        "_handle",
        "_handled",
        "_limit",
        "_on_memory_available",
        "_on_memory_exhausted",
        "_own",
        "_own_view",
        "_reserved",
        "_should_yield",
        "_target",
    )

    def __init__(
        self,
        buffers: ReceiveBufferPool,
        frame_max: int,
        handle: Callable[[bytearray, memoryview, int, int], bool],
        *,
        on_memory_exhausted: Callable[[], None] | None = None,
        on_memory_available: Callable[[], None] | None = None,
        should_yield: Callable[[bool], bool] | None = None,
    ) -> None:
        self._buffers = buffers
        self._frame_max = frame_max
        self._handle = handle
        self._on_memory_exhausted = on_memory_exhausted
        self._on_memory_available = on_memory_available
        self._should_yield = should_yield
        self._own: bytearray | None = None
        self._own_view = buffers.shared_view
        self._filled = 0
        self._limit = 0  # how much of the own buffer may be filled
        self._target = 0  # how many bytes are needed before a frame can be handled
        self._reserved = 0
        self._handled: bytearray | None = None  # the buffer whose frames are being handled, unless `retain` took it

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._own is None:
            return self._buffers.shared_view
        filled, target = self._filled, self._target
        if filled == self._limit:
            # Stored bytes need not begin a frame; a little more may arrive before the socket is paused.
            self._grow(min(target, 2 * filled) if filled < target else filled + POOLED_GRAIN_BYTES)
        return self._own_view[filled : self._limit]

    def received(self, size: int) -> None:
        """Handle the frames that are complete. Raises `BadFrame` if a frame size is invalid."""
        if self._own is None:
            buffers = self._buffers
            self._handle_frames(buffers.shared, buffers.shared_view, size)
            return
        self._filled += size
        if self._filled >= self._target:
            self._handle_own_frames()

    def store(self, size: int) -> None:
        """Keep what has arrived until `resume`."""
        if self._own is None:
            self._keep(self._buffers.shared, 0, size, is_stopped=True)
        else:
            self._filled += size

    def resume(self) -> None:
        """Handle the complete frames among the bytes that were kept."""
        if self._own is not None and self._filled >= self._target:
            self._handle_own_frames()

    def on_memory_available(self) -> None:
        """The pool has memory for the frame that waits; called once, after `on_memory_exhausted`."""
        self._buffers.try_reserve(self._target)
        self._reserved = self._target
        if self._on_memory_available is not None:
            self._on_memory_available()

    def retain(self, view: memoryview, start: int, end: int) -> bytes | memoryview:
        """Return bytes that stay valid after `handle`: a copy, or of a large frame a view of its detached buffer."""
        if end - start < DETACH_BYTES_MIN or view.obj is self._buffers.shared:
            return bytes(view[start:end])
        if self._handled is not None:
            self._buffers.detach(self._handled)
            self._handled = None
        return view[start:end]

    def release(self) -> None:
        """Free all memory, as the connection is closed. Callbacks are dropped: no reference cycle keeps it alive."""
        self._buffers.remove_waiter(self)
        own, self._own = self._own, None
        self._own_view = self._buffers.shared_view
        if own is not None:
            self._buffers.release(own)
        self._release_reservation()
        self._handle = _handle_nothing
        self._on_memory_exhausted = self._on_memory_available = self._should_yield = None

    @property
    def buffered_bytes(self) -> int:
        return self._filled if self._own is not None else 0

    def _handle_own_frames(self) -> None:
        own, view, filled = self._own, self._own_view, self._filled
        assert own is not None
        self._handled, self._own = own, None  # `_handle_frames` keeps the rest in a new one
        self._own_view = self._buffers.shared_view
        self._filled = 0
        if not self._reserved:
            self._buffers.remove_waiter(self)  # the complete frame arrived before the socket was paused
        try:
            self._handle_frames(own, view, filled)
        finally:
            if self._handled is not None:
                self._handled = None
                self._buffers.release(own)
            if self._reserved and self._own is None:
                self._release_reservation()

    def _handle_frames(self, buffer: bytearray, view: memoryview, filled: int) -> None:
        position = handled = 0
        is_first = True
        is_stopped = False
        handle = self._handle
        if filled > MANY_BYTES_MIN and self._should_yield is not None:
            is_first = self._should_yield(True)
        while filled - position >= 4:
            size = _read_size(buffer, position)[0]
            if not 0 <= size <= self._frame_max:
                raise BadFrame(
                    f"invalid frame size {size}; the limit is {self._frame_max} bytes (socket.request.max.bytes)"
                )
            end = position + 4 + size
            if end > filled:
                break
            if not handle(buffer, view, position + 4, end):
                is_stopped = True
                position = end
                break
            position = end
            handled += 1
            if (
                (size > SMALL_BYTES_MAX or not handled % FEW_FRAMES)
                and position < filled
                and self._should_yield is not None
            ):
                if self._should_yield(is_first):
                    is_stopped = True
                    break
                is_first = False
        if position < filled:
            self._keep(buffer, position, filled, is_stopped)

    def _keep(self, buffer: bytearray, position: int, filled: int, is_stopped: bool) -> None:
        """Move the rest to a buffer of its own, sized for the frame that it begins unless handling was stopped."""
        rest = filled - position
        if self._reserved:
            self._release_reservation()
        if is_stopped:
            target = size = rest
        elif rest < 4:
            target = size = 4
        else:
            target = 4 + _read_size(buffer, position)[0]
            size = self._buffers.initial_size(rest, target)
            if target > UNBUDGETED_BYTES_MAX and self._buffers.budget_bytes > 0:
                size = self._reserve(rest, target, size)
        own = self._buffers.take(size)
        own[:rest] = memoryview(buffer)[position:filled]
        self._own = own
        self._own_view = memoryview(own)
        self._filled = rest
        self._limit = size
        self._target = target

    def _reserve(self, rest: int, target: int, size: int) -> int:
        """Return the size of the buffer for a frame: that of its first bytes if the frame has to wait for memory."""
        if self._buffers.try_reserve(target):
            self._reserved = target
            return size
        self._buffers.add_waiter(self)
        if self._on_memory_exhausted is not None:
            self._on_memory_exhausted()
        return rest

    def _release_reservation(self) -> None:
        if self._reserved:
            size, self._reserved = self._reserved, 0
            self._buffers.release_reservation(size)

    def _grow(self, limit: int) -> None:
        """Let `limit` bytes of the buffer be filled, moving to a larger one if necessary."""
        own = self._own
        assert own is not None
        if len(own) < limit:
            larger = self._buffers.take(limit)
            larger[: self._filled] = memoryview(own)[: self._filled]
            self._buffers.release(own)
            self._own = larger
            self._own_view = memoryview(larger)
        self._limit = limit


def _has_views(buffer: bytearray) -> bool:
    """Return whether the buffer has memoryviews: Python does not resize it then."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False


def _handle_nothing(buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
    """Handler of a closed connection."""
    return False
