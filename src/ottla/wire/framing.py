"""Cuts a stream of bytes into frames, without any I/O of its own.

Bytes are received into one buffer that all connections of a loop share, and frames that arrived whole are handled right there.
Only what is left over, the beginning of a frame, moves to a buffer of its own that is sized to that frame; the rest of the frame
is then received straight into it. An idle connection therefore owns no buffer at all.
"""

from collections.abc import Callable
from struct import Struct

RECEIVE_BYTES = 256 << 10
POOLED_BYTES_MAX = 8 << 20
POOLED_GRAIN_BYTES = 64 << 10

_read_size = Struct(">i").unpack_from


class BadFrame(ValueError):
    """A size that no frame can have: the stream cannot be followed any further."""


class ReceiveBuffers:
    """The memory that all connections of one loop receive into."""

    __slots__ = ("_pool", "_pooled_bytes", "shared", "shared_view")

    def __init__(self) -> None:
        self.shared = bytearray(RECEIVE_BYTES)
        self.shared_view = memoryview(self.shared)
        self._pool: dict[int, list[bytearray]] = {}
        self._pooled_bytes = 0

    def take(self, size: int) -> bytearray:
        """At least `size` bytes, rounded up so that they can be used again."""
        grains = -(-size // POOLED_GRAIN_BYTES)
        waiting = self._pool.get(grains)
        if waiting:
            self._pooled_bytes -= grains * POOLED_GRAIN_BYTES
            return waiting.pop()
        return bytearray(grains * POOLED_GRAIN_BYTES if size > POOLED_GRAIN_BYTES else size)

    def give_back(self, buffer: bytearray) -> None:
        """Fresh memory costs a page fault per 4 kB: keep some of it."""
        size = len(buffer)
        if size % POOLED_GRAIN_BYTES == 0 and size and self._pooled_bytes + size <= POOLED_BYTES_MAX:
            self._pool.setdefault(size // POOLED_GRAIN_BYTES, []).append(buffer)
            self._pooled_bytes += size


class FrameReader:
    """One connection's place in its stream. `handle(buffer, start, end)` is called for each frame; it returns False to be called no more
    for now: the frames that follow are kept until `resume`."""

    __slots__ = ("_buffers", "_filled", "_frame_max", "_handle", "_held", "_own", "_own_view", "_target")

    def __init__(self, buffers: ReceiveBuffers, frame_max: int, handle: Callable[[bytearray, memoryview, int, int], bool]) -> None:
        self._buffers = buffers
        self._frame_max = frame_max
        self._handle = handle
        self._own: bytearray | None = None
        self._own_view = buffers.shared_view
        self._filled = 0
        self._target = 0
        self._held = False

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._own is None:
            return self._buffers.shared_view
        if self._held:
            self._grow(self._filled + POOLED_GRAIN_BYTES)
        return self._own_view[self._filled:self._target]

    def received(self, size: int) -> None:
        """Raises BadFrame where the stream makes no sense."""
        if self._own is None:
            buffers = self._buffers
            if self._held:
                self._keep(buffers.shared, 0, size)
            else:
                self._cut(buffers.shared, buffers.shared_view, size)
            return
        self._filled += size
        if not self._held and self._filled >= self._target:
            self._cut_own()

    def resume(self) -> None:
        """Handle what was kept. May be called only after `handle` returned False."""
        self._held = False
        if self._own is not None:
            self._cut_own()

    def release(self) -> None:
        """The connection is gone."""
        if self._own is not None:
            self._release_own()

    @property
    def is_held(self) -> bool:
        return self._held

    @property
    def kept_bytes(self) -> int:
        return self._filled if self._own is not None else 0

    def _cut_own(self) -> None:
        own, view, filled = self._own, self._own_view, self._filled
        assert own is not None
        self._own = None                       # `_cut` keeps the rest in a new one
        self._filled = 0
        self._cut(own, view, filled)
        self._buffers.give_back(own)

    def _cut(self, buffer: bytearray, view: memoryview, filled: int) -> None:
        position = 0
        handle = self._handle
        while filled - position >= 4:
            size = _read_size(buffer, position)[0]
            if not 0 <= size <= self._frame_max:
                raise BadFrame(f"a frame of {size} bytes, while at most {self._frame_max} are taken")
            end = position + 4 + size
            if end > filled:
                break
            if not handle(buffer, view, position + 4, end):
                self._held = True
                position = end
                break
            position = end
        if position < filled:
            self._keep(buffer, position, filled)

    def _keep(self, buffer: bytearray, position: int, filled: int) -> None:
        """Move what is left to a buffer of its own, with room for the frame that it begins."""
        rest = filled - position
        if self._held:
            target = rest
        elif rest < 4:
            target = 4
        else:
            target = 4 + _read_size(buffer, position)[0]
        own = self._buffers.take(target)
        own[:rest] = memoryview(buffer)[position:filled]
        self._own = own
        self._own_view = memoryview(own)
        self._filled = rest
        self._target = target

    def _grow(self, target: int) -> None:
        """While held, a little more may arrive before reading stops."""
        own = self._own
        assert own is not None
        if len(own) < target:
            larger = self._buffers.take(target)
            larger[:self._filled] = memoryview(own)[:self._filled]
            self._buffers.give_back(own)
            self._own = larger
            self._own_view = memoryview(larger)
        self._target = target

    def _release_own(self) -> None:
        own = self._own
        assert own is not None
        self._own = None
        self._buffers.give_back(own)
