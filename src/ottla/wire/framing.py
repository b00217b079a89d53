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
        "_preallocated_bytes_max",
        "_detached",
        "_pool",
        "_pooled_bytes",
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
        self._waiters: dict[FrameReader, Callable[[], None]] = {}
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
            on_room = self._waiters.pop(reader)
            reader.on_memory_available()
            on_room()

    def add_waiter(self, reader: "FrameReader", on_room: Callable[[], None]) -> None:
        self._waiters[reader] = on_room

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
    """One connection's place in its stream. `handle(buffer, start, end)` is called for each frame; it returns False to be called no more
    for now: the frames that follow are kept until `resume`. `on_starved` is told that nothing more can be received until `on_room` is.
    Where many frames arrived together, `on_many` is asked after every few of them, and after each that is not small, whether others should
    have a turn first: the rest is kept until `resume` then, too. The first time, before all but a little, it is told that it is the first.
    """

    __slots__ = (
        "_buffers",
        "_filled",
        "_frame_max",
        "_handle",
        "_is_kept",
        "_on_many",
        "_on_room",
        "_on_starved",
        "_own",
        "_own_view",
        "_reserved",
        "_room",
        "_target",
        "is_paused",
        "is_waiting_for_memory",
    )

    def __init__(
        self,
        buffers: ReceiveBufferPool,
        frame_max: int,
        handle: Callable[[bytearray, memoryview, int, int], bool],
        *,
        on_starved: Callable[[], None] | None = None,
        on_room: Callable[[], None] | None = None,
        on_many: Callable[[bool], bool] | None = None,
    ) -> None:
        self._buffers = buffers
        self._frame_max = frame_max
        self._handle = handle
        self._on_starved = on_starved
        self._on_room = on_room
        self._on_many = on_many
        self._own: bytearray | None = None
        self._own_view = buffers.shared_view
        self._filled = 0
        self._room = 0  # how much of the own buffer may be filled
        self._target = 0  # how much is needed before there is something to do
        self._reserved = 0
        self._is_kept = False
        self.is_paused = False
        self.is_waiting_for_memory = False

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._own is None:
            return self._buffers.shared_view
        if self.is_paused or self.is_waiting_for_memory:
            self._grow(self._filled + POOLED_GRAIN_BYTES)
        elif self._filled == self._room:
            self._grow(min(self._target, 2 * self._filled))
        return self._own_view[self._filled : self._room]

    def received(self, size: int) -> None:
        """Raises BadFrame where the stream makes no sense."""
        if self._own is None:
            buffers = self._buffers
            if self.is_paused:
                self._keep(buffers.shared, 0, size)
            else:
                self._cut(buffers.shared, buffers.shared_view, size)
            return
        self._filled += size
        if self._filled >= self._target and not self.is_paused:
            self._cut_own()

    def pause(self) -> None:
        """Handle nothing until `resume`: what arrives is kept."""
        self.is_paused = True

    def resume(self) -> None:
        """Handle what was kept. May be called only after `handle` returned False, or `pause`."""
        self.is_paused = False
        if self._own is not None:
            self._cut_own()

    def on_memory_available(self) -> None:
        """There is room for the frame that had to wait."""
        if self.is_waiting_for_memory:
            self.is_waiting_for_memory = False
            self._buffers.try_reserve(self._target)
            self._reserved = self._target

    def retain(self, view: memoryview, start: int, end: int) -> bytes | memoryview:
        """What `handle` was given, for as long as it is wanted: of a large frame the buffer that it was received in, which is not used
        again, and of a small one a copy."""
        if end - start < DETACH_BYTES_MIN or view.obj is self._buffers.shared:
            return bytes(view[start:end])
        self._is_kept = True
        return view[start:end]

    def release(self) -> None:
        """The connection is gone. Whoever was to be called is let go, so that nothing waits for somebody to look for cycles."""
        if self.is_waiting_for_memory:
            self.is_waiting_for_memory = False
            self._buffers.remove_waiter(self)
        own, self._own = self._own, None
        self._own_view = self._buffers.shared_view
        if own is not None:
            self._buffers.release(own)
        self._release_reservation()
        self._handle = _handle_nothing
        self._on_starved = self._on_room = self._on_many = None

    @property
    def kept_bytes(self) -> int:
        return self._filled if self._own is not None else 0

    def _cut_own(self) -> None:
        own, view, filled = self._own, self._own_view, self._filled
        assert own is not None
        self._own = None  # `_cut` keeps the rest in a new one
        self._own_view = self._buffers.shared_view
        self._filled = 0
        if self.is_waiting_for_memory:
            self.is_waiting_for_memory = False  # more than the frame arrived before reading had stopped
            self._buffers.remove_waiter(self)
        try:
            self._cut(own, view, filled)
        finally:
            if self._is_kept:
                self._is_kept = False
                self._buffers.detach(own)
            else:
                self._buffers.release(own)
            if self._reserved and self._own is None:
                self._release_reservation()

    def _cut(self, buffer: bytearray, view: memoryview, filled: int) -> None:
        position = handled = 0
        is_first = True
        handle = self._handle
        if filled > MANY_BYTES_MIN and self._on_many is not None:
            is_first = self._on_many(True)
        while filled - position >= 4:
            size = _read_size(buffer, position)[0]
            if not 0 <= size <= self._frame_max:
                raise BadFrame(f"a frame of {size} bytes, while at most {self._frame_max} are taken")
            end = position + 4 + size
            if end > filled:
                break
            if not handle(buffer, view, position + 4, end):
                self.is_paused = True
                position = end
                break
            position = end
            handled += 1
            if (size > SMALL_BYTES_MAX or not handled % FEW_FRAMES) and position < filled and self._on_many is not None:
                if self._on_many(is_first):
                    self.is_paused = True
                    break
                is_first = False
        if position < filled:
            self._keep(buffer, position, filled)

    def _keep(self, buffer: bytearray, position: int, filled: int) -> None:
        """Move what is left to a buffer of its own, with room for the frame that it begins or for the first part of it."""
        rest = filled - position
        if self._reserved:
            self._release_reservation()
        if self.is_paused:
            target = size = rest
        elif rest < 4:
            target = size = 4
        else:
            target = 4 + _read_size(buffer, position)[0]
            size = self._buffers.initial_size(rest, target)
            if target > UNBUDGETED_BYTES_MAX and self._buffers.budget_bytes > 0:
                size = self._admit(rest, target, size)
        own = self._buffers.take(size)
        own[:rest] = memoryview(buffer)[position:filled]
        self._own = own
        self._own_view = memoryview(own)
        self._filled = rest
        self._room = size
        self._target = target

    def _admit(self, rest: int, target: int, size: int) -> int:
        """The size of the buffer to make: only what has arrived, where the budget has no room for the frame."""
        if self._buffers.try_reserve(target):
            self._reserved = target
            return size
        self.is_waiting_for_memory = True
        self._buffers.add_waiter(self, self._on_room or _nothing)
        if self._on_starved is not None:
            self._on_starved()
        return rest

    def _release_reservation(self) -> None:
        if self._reserved:
            size, self._reserved = self._reserved, 0
            self._buffers.release_reservation(size)

    def _grow(self, room: int) -> None:
        """More of the frame has arrived; or, while held, a little more may arrive before reading stops."""
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


def _nothing() -> None:
    """A reader that was not told whom to call is asked for its buffer again anyway."""
