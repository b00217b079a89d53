"""Memory of incomplete frames: proportional to the bytes received, and limited by the budget."""

import sys
import weakref
from struct import pack

from ottla.wire.framing import (
    PREALLOCATED_TOTAL_BYTES_MAX,
    RECEIVE_BYTES,
    UNBUDGETED_BYTES_MAX,
    FrameReader,
    ReceiveBufferPool,
)

FRAME_MAX = 100 << 20


class Stream:
    """A connection that records when it has to wait for memory and when it gets it."""

    def __init__(self, buffers: ReceiveBufferPool) -> None:
        self.frames: list[int] = []
        self.events: list[str] = []
        self.reader = FrameReader(
            buffers,
            FRAME_MAX,
            self.on_frame,
            on_memory_exhausted=lambda: self.events.append("waits"),
            on_memory_available=lambda: self.events.append("memory"),
        )

    def on_frame(self, buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        self.frames.append(end - start)
        return True

    def feed(self, data: bytes) -> None:
        while data:
            space = self.reader.get_buffer(len(data))
            size = min(len(space), len(data))
            space[:size] = data[:size]
            data = data[size:]
            self.reader.received(size)


def test_announced_size_allocates_only_what_arrived() -> None:
    buffers = ReceiveBufferPool()
    stream = Stream(buffers)
    stream.feed(pack(">i", FRAME_MAX) + bytes(1000))
    assert buffers.owned_bytes < 10_000
    stream.feed(bytes(1 << 20))
    assert buffers.owned_bytes < 3 << 20


def test_growing_buffer_gives_the_complete_frame() -> None:
    buffers = ReceiveBufferPool()
    stream = Stream(buffers)
    body = bytes(range(256)) * 20_000
    stream.feed(pack(">i", len(body)) + body)
    assert stream.frames == [len(body)]
    assert buffers.owned_bytes == 0


def test_preallocation_stops_at_the_total_limit() -> None:
    buffers = ReceiveBufferPool()
    streams = [Stream(buffers) for _ in range(1000)]
    for stream in streams:
        stream.feed(pack(">i", 1 << 20) + b"x")
    assert buffers.owned_bytes < PREALLOCATED_TOTAL_BYTES_MAX + 1000 * 5000
    for stream in streams:
        stream.reader.release()
    assert buffers.owned_bytes == 0


def test_large_frames_wait_for_memory_and_small_ones_do_not() -> None:
    buffers = ReceiveBufferPool(budget_bytes=1_000_000)
    holder, waiting, small = Stream(buffers), Stream(buffers), Stream(buffers)
    holder.feed(pack(">i", 1_000_000) + b"x")
    waiting.feed(pack(">i", 500_000) + b"y")
    small.feed(pack(">i", UNBUDGETED_BYTES_MAX - 4) + bytes(UNBUDGETED_BYTES_MAX - 4))
    assert (holder.events, waiting.events, small.events, small.frames) == (
        [],
        ["waits"],
        [],
        [UNBUDGETED_BYTES_MAX - 4],
    )
    holder.feed(bytes(999_999))
    assert holder.frames == [1_000_000]
    assert waiting.events == ["waits", "memory"]
    waiting.feed(bytes(499_999))
    assert waiting.frames == [500_000]
    assert (buffers.reserved_bytes, buffers.owned_bytes, buffers.waiting_count) == (0, 0, 0)


def test_waiting_frames_get_memory_in_order_and_closed_ones_are_skipped() -> None:
    buffers = ReceiveBufferPool(budget_bytes=100_000)
    holder, *waiting = [Stream(buffers) for _ in range(4)]
    holder.feed(pack(">i", 100_000) + b"x")
    for stream in waiting:
        stream.feed(pack(">i", 100_000) + b"y")
    waiting[0].reader.release()
    holder.reader.release()
    assert [stream.events for stream in waiting] == [["waits"], ["waits", "memory"], ["waits"]]
    waiting[1].reader.release()
    assert [stream.events for stream in waiting] == [["waits"], ["waits", "memory"], ["waits", "memory"]]
    waiting[2].reader.release()
    assert (buffers.reserved_bytes, buffers.owned_bytes) == (0, 0)


def test_bytes_that_arrive_before_the_pause_are_kept() -> None:
    """The kernel may deliver more before the socket is paused, even the rest of the frame and part of the next."""
    buffers = ReceiveBufferPool(budget_bytes=100_000)
    holder, waiting = Stream(buffers), Stream(buffers)
    holder.feed(pack(">i", RECEIVE_BYTES) + b"x")
    frame = pack(">i", 200_000) + bytes(200_000)
    waiting.feed(frame[:10])
    waiting.feed(frame[10:] + b"\0\0")
    assert waiting.frames == [200_000]
    holder.reader.release()
    waiting.feed(pack(">i", 3)[2:] + b"abc")
    assert waiting.frames == [200_000, 3]
    assert (buffers.reserved_bytes, buffers.owned_bytes, buffers.waiting_count) == (0, 0, 0)


def test_buffers_are_released_with_their_frame_or_connection() -> None:
    """Also buffers too large for the pool; and no reference cycle keeps a closed connection alive."""

    class Watched(ReceiveBufferPool):
        def release(self, buffer: bytearray) -> None:
            seen.append(buffer)

    seen: list[bytearray] = []
    stream = Stream(Watched())
    stream.feed(pack(">i", 1 << 20) + bytes(1 << 20))
    stream.feed(pack(">i", 1 << 20) + bytes(10))
    stream.reader.release()
    assert len(seen) == 2
    assert [sys.getrefcount(buffer) for buffer in seen] == [3, 3]  # the list, the name and the argument
    reference = weakref.ref(stream)
    del stream
    assert reference() is None
