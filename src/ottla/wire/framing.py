"""Cuts a stream of bytes into frames, without any I/O of its own.

Bytes are received into one buffer that all connections of a loop share, and frames that arrived whole are handled right there.
Only what is left over, the beginning of a frame, moves to a buffer of its own; the rest of the frame is then received straight into
it. An idle connection therefore owns no buffer at all.

A size that is only announced costs nothing: a buffer is made for a whole frame at once where that is little, else it grows with what has
really arrived. A budget (`queued.max.request.bytes`) may bound what all unfinished frames announce together; a stream whose frame does not
fit into it is not read until there is room.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct

RECEIVE_BYTES = 256 << 10
POOLED_BYTES_MAX = 8 << 20
POOLED_GRAIN_BYTES = 64 << 10
UNBUDGETED_BYTES_MAX = 64 << 10
"""Frames up to this size need no room in the budget, so that large ones that never end cannot pause up everything."""
PREALLOCATED_BYTES_MAX = 2 << 20
PREALLOCATED_TOTAL_BYTES_MAX = 64 << 20
"""Buffers are made for whole frames up to the first size while all owned buffers together stay below the second."""
GROWN_BYTES_MIN = 4 << 10
DETACH_BYTES_MIN = 256 << 10
"""To copy less is cheaper than to do without its buffer."""
DETACHED_MAX, DETACHED_BYTES_MAX = 6, 48 << 20
"""A consumer has as many answers at a time: two that wait, one that arrives, and those that are worked on."""
FEW_FRAMES = 4
SMALL_BYTES_MAX = 1 << 10
"""A frame of up to this size takes little time."""
MANY_BYTES_MIN = 2 << 10
"""What arrived together and is smaller is a few small frames at most, or one."""

_read_size = Struct(">i").unpack_from


class BadFrame(ValueError):
    """A size that no frame can have: the stream cannot be followed any further."""


class ReceiveBufferPool:
    """The memory that all connections of one loop receive into."""

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
        """What unfinished large frames may announce together; no limit where it is not positive."""
        self.owned_bytes = 0
        """The buffers that connections have taken."""
        self.reserved_bytes = 0
        """What the frames that were let in have announced."""
        self._waiters: dict[FrameReader, None] = {}
        self._preallocated_bytes_max = preallocated_bytes_max
        self._pool: dict[int, list[bytearray]] = {}
        self._pooled_bytes = 0
        self._detached: deque[bytearray] = deque(maxlen=DETACHED_MAX)

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)

    def try_reserve(self, size: int) -> bool:
        """Let a frame in. As in Kafka the last one may go beyond the budget, so that none is too large for it."""
        if 0 < self.budget_bytes <= self.reserved_bytes:
            return False
        self.reserved_bytes += size
        return True

    def release_reservation(self, size: int) -> None:
        """The frame was handled, or its connection is gone: others have waited for the room, the first of them for longest."""
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
        """How large a buffer to make for a frame of which some bytes have arrived."""
        if target <= self._preallocated_bytes_max and self.owned_bytes + target <= PREALLOCATED_TOTAL_BYTES_MAX:
            return target
        return min(target, max(2 * rest, GROWN_BYTES_MIN))

    def take(self, size: int) -> bytearray:
        """At least `size` bytes, rounded up so that they can be used again."""
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
        """Somebody keeps it for now. The last few are remembered, as they can be used again when nobody looks at them any more."""
        self.owned_bytes -= len(buffer)
        self._detached.append(buffer)
        while sum(map(len, self._detached)) > DETACHED_BYTES_MAX:
            self._detached.popleft()

    def _reclaim_detached(self, size: int) -> bytearray | None:
        """One of that size that was given away, and that nobody looks at any more."""
        for index, buffer in enumerate(self._detached):
            if len(buffer) == size and not _has_views(buffer):
                del self._detached[index]
                return buffer
        return None

    def release(self, buffer: bytearray) -> None:
        """Fresh memory costs a page fault per 4 kB: keep some of it."""
        size = len(buffer)
        self.owned_bytes -= size
        if size % POOLED_GRAIN_BYTES == 0 and size and self._pooled_bytes + size <= POOLED_BYTES_MAX:
            self._pool.setdefault(size // POOLED_GRAIN_BYTES, []).append(buffer)
            self._pooled_bytes += size


class FrameReader:
    """One connection's position in its stream: calls `handle(buffer, view, start, end)` for each complete frame.

    The reader has no state besides the bytes it owns; whether frames may be handled is its connection's business:
    `received` handles what has arrived, `store` only keeps it, `resume` handles what was kept. Handling stops when
    `handle` returns False, and when `should_yield` returns True: the connection calls `resume` later. `should_yield` is
    asked within a burst, after every few frames and each one that is not small; first with True, before the burst.
    `on_memory_exhausted` says that a large frame waits for memory, `on_memory_available` that it has got it.
    """

    __slots__ = (
        "_buffers",
        "_filled",
        "_frame_max",
        "_handle",
        "_handled",
        "_on_memory_available",
        "_on_memory_exhausted",
        "_own",
        "_own_view",
        "_reserved",
        "_room",
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
        self._room = 0  # how much of the own buffer may be filled
        self._target = 0  # how much is needed before there is something to do
        self._reserved = 0
        self._handled: bytearray | None = None  # the buffer whose frames are being handled, unless `retain` took it

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._own is None:
            return self._buffers.shared_view
        filled, target = self._filled, self._target
        if filled == self._room:
            # Stored bytes are no beginning of a frame: a little more may arrive before the socket is paused.
            self._grow(min(target, 2 * filled) if filled < target else filled + POOLED_GRAIN_BYTES)
        return self._own_view[filled : self._room]

    def received(self, size: int) -> None:
        """Handle the frames that are complete now. Raises `BadFrame` if the stream makes no sense."""
        if self._own is None:
            buffers = self._buffers
            self._cut(buffers.shared, buffers.shared_view, size)
            return
        self._filled += size
        if self._filled >= self._target:
            self._cut_own()

    def store(self, size: int) -> None:
        """Keep what has arrived until `resume`."""
        if self._own is None:
            self._keep(self._buffers.shared, 0, size, is_stopped=True)
        else:
            self._filled += size

    def resume(self) -> None:
        """Handle the complete frames among the bytes that were kept."""
        if self._own is not None and self._filled >= self._target:
            self._cut_own()

    def on_memory_available(self) -> None:
        """The pool has memory for the frame that waits; called once, after `on_memory_exhausted`."""
        self._buffers.try_reserve(self._target)
        self._reserved = self._target
        if self._on_memory_available is not None:
            self._on_memory_available()

    def retain(self, view: memoryview, start: int, end: int) -> bytes | memoryview:
        """Bytes of a frame that stay valid after `handle`: a copy, or for a large frame its buffer, taken from the pool."""
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

    def _cut_own(self) -> None:
        own, view, filled = self._own, self._own_view, self._filled
        assert own is not None
        self._handled, self._own = own, None  # `_cut` keeps the rest in a new one
        self._own_view = self._buffers.shared_view
        self._filled = 0
        if not self._reserved:
            self._buffers.remove_waiter(self)  # the whole frame arrived before the socket was paused
        try:
            self._cut(own, view, filled)
        finally:
            if self._handled is not None:
                self._handled = None
                self._buffers.release(own)
            if self._reserved and self._own is None:
                self._release_reservation()

    def _cut(self, buffer: bytearray, view: memoryview, filled: int) -> None:
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
        """Move the rest to a buffer of its own; unless handling was stopped, with room for the frame that it begins."""
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
        self._room = size
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

    def _grow(self, room: int) -> None:
        """Let more of the buffer be filled, in a larger one if need be."""
        own = self._own
        assert own is not None
        if len(own) < room:
            larger = self._buffers.take(room)
            larger[: self._filled] = memoryview(own)[: self._filled]
            self._buffers.release(own)
            self._own = larger
            self._own_view = memoryview(larger)
        self._room = room


def _has_views(buffer: bytearray) -> bool:
    """Whether there are views of it: Python refuses to resize it then."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False


def _handle_nothing(buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
    """What a connection that is gone does with a frame."""
    return False
