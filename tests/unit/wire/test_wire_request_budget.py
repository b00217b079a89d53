"""Memory for unfinished frames: no more than arrived, or than the budget lets in."""

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
    """A connection of which it is noted when it may not be read and when it may again."""

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
            room = self.reader.get_buffer(len(data))
            size = min(len(room), len(data))
            room[:size] = data[:size]
            data = data[size:]
            self.reader.received(size)


def test_an_announced_size_costs_what_arrived() -> None:
    buffers = ReceiveBufferPool()
    stream = Stream(buffers)
    stream.feed(pack(">i", FRAME_MAX) + bytes(1000))
    assert buffers.owned_bytes < 10_000
    stream.feed(bytes(1 << 20))
    assert buffers.owned_bytes < 3 << 20


def test_a_frame_that_grew_arrives_whole() -> None:
    buffers = ReceiveBufferPool()
    stream = Stream(buffers)
    body = bytes(range(256)) * 20_000
    stream.feed(pack(">i", len(body)) + body)
    assert stream.frames == [len(body)]
    assert buffers.owned_bytes == 0


def test_many_who_announce_a_megabyte_get_less_once_there_are_many() -> None:
    buffers = ReceiveBufferPool()
    streams = [Stream(buffers) for _ in range(1000)]
    for stream in streams:
        stream.feed(pack(">i", 1 << 20) + b"x")
    assert buffers.owned_bytes < PREALLOCATED_TOTAL_BYTES_MAX + 1000 * 5000
    for stream in streams:
        stream.reader.release()
    assert buffers.owned_bytes == 0


def test_a_large_frame_waits_for_room_and_a_small_one_does_not() -> None:
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


def test_those_who_wait_are_let_in_in_their_order_and_the_dead_give_way() -> None:
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


def test_what_arrives_before_reading_stops_is_kept() -> None:
    """The kernel may hand over a little more to one who has to wait, even the whole frame and the beginning of the next."""
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


def test_a_buffer_is_let_go_with_its_frame_and_with_its_connection() -> None:
    """Also one that is too large to be kept for others; and a connection that is gone is held by nothing that it held."""

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
    gone = weakref.ref(stream)
    del stream
    assert gone() is None
