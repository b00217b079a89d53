"""FrameReader and its buffers: any split of the stream gives the same frames, also when handling is paused."""

from struct import pack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.wire.framing import DETACHED_BYTES_MAX, POOLED_BYTES_MAX, BadFrame, FrameReader, ReceiveBufferPool

FRAME_MAX = 1 << 20


def frame(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


class Collector:
    """A connection that keeps its frames, and pauses after given ones."""

    def __init__(self, *, pause_after: tuple[int, ...] = ()) -> None:
        self.frames: list[bytes] = []
        self.pause_after = pause_after
        self.is_paused = False
        self.reader = FrameReader(ReceiveBufferPool(), FRAME_MAX, self.on_frame)

    def on_frame(self, buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        assert not self.is_paused
        self.frames.append(bytes(view[start:end]))
        assert bytes(buffer[start:end]) == self.frames[-1]
        self.is_paused = len(self.frames) in self.pause_after
        return not self.is_paused

    def feed(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[fill(self.reader, rest, is_paused=self.is_paused) :]

    def resume(self) -> None:
        self.is_paused = False
        self.reader.resume()


def fill(reader: FrameReader, data: memoryview, *, is_paused: bool = False) -> int:
    """Give the reader as much as it has space for, and return how much."""
    target = reader.get_buffer(-1)
    count = min(len(target), len(data))
    target[:count] = data[:count]
    (reader.store if is_paused else reader.received)(count)
    return count


def feed(reader: FrameReader, stream: bytes) -> None:
    rest = memoryview(stream)
    while rest:
        rest = rest[fill(reader, rest) :]


bodies = st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 600_000).map(lambda size: b"x" * size)), max_size=12)


# Many small pieces of a long stream are many draws, which takes a while on a busy machine.
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(bodies, st.data())
def test_any_split_gives_the_same_frames(expected: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(body) for body in expected)
    collector = Collector()
    position = 0
    while position < len(stream):
        size = data.draw(st.one_of(st.integers(1, 9), st.integers(1, len(stream))))
        collector.feed(stream[position : position + size])
        position += size
    assert collector.frames == expected
    assert collector.reader.buffered_bytes == 0


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.sets(st.integers(1, 8)), st.data())
def test_frames_keep_their_order_across_pauses(
    expected: list[bytes], pause_after: set[int], data: st.DataObject
) -> None:
    stream = b"".join(frame(body) for body in expected)
    collector = Collector(pause_after=tuple(sorted(pause_after)))
    position = 0
    while position < len(stream):
        size = data.draw(st.integers(1, len(stream)))
        collector.feed(stream[position : position + size])
        position += size
    for _ in range(len(pause_after)):
        if collector.is_paused:
            before = len(collector.frames)
            assert before in pause_after
            collector.resume()
    assert collector.frames == expected


def test_frames_may_arrive_byte_by_byte() -> None:
    collector = Collector()
    for byte in frame(b"abc") + frame(b"") + frame(b"d"):
        collector.feed(bytes((byte,)))
    assert collector.frames == [b"abc", b"", b"d"]


@pytest.mark.parametrize("size", [-1, FRAME_MAX + 1, -(2**31), 2**31 - 1])
def test_invalid_frame_size_is_rejected(size: int) -> None:
    collector = Collector()
    with pytest.raises(BadFrame):
        collector.feed(frame(b"first") + pack(">i", size) + b"rest")
    assert collector.frames == [b"first"]


def test_idle_connection_owns_no_buffer() -> None:
    collector = Collector()
    collector.feed(frame(b"x" * 500_000))
    assert collector.reader.buffered_bytes == 0


def test_released_buffers_are_pooled_up_to_a_limit() -> None:
    buffers = ReceiveBufferPool()
    taken = [buffers.take(1 << 20) for _ in range(2 * POOLED_BYTES_MAX // (1 << 20))]
    for buffer in taken:
        buffers.release(buffer)
    again = [buffers.take(1 << 20) for _ in taken]
    assert sum(any(buffer is other for other in taken) for buffer in again) == POOLED_BYTES_MAX // (1 << 20)


@pytest.mark.parametrize("size", [10, 300_000, 3_000_000])
def test_retained_frames_are_not_overwritten(size: int) -> None:
    """Later frames of the same size reuse pooled buffers, but not a retained one."""
    kept: list[bytes | memoryview] = []

    def handle(buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        kept.append(reader.retain(view, start, end))
        return True

    buffers = ReceiveBufferPool()
    reader = FrameReader(buffers, 5_000_000, handle)
    for number in range(1, 5):
        feed(reader, frame(bytes([number]) * size))
    assert [bytes(each) for each in kept] == [bytes([number]) * size for number in range(1, 5)]
    assert buffers.owned_bytes == 0


def test_detached_buffers_without_views_are_reclaimed() -> None:
    """Buffers that still have views are not, however many frames follow."""
    kept: list[memoryview] = []

    def handle(buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        retained = reader.retain(view, start, end)
        assert isinstance(retained, memoryview)
        kept.append(retained)
        return True

    reader = FrameReader(ReceiveBufferPool(), 5_000_000, handle)
    seen: set[int] = set()
    for number in range(40):
        feed(reader, frame(bytes([number]) * 1_000_000))
        if number % 4 == 3:
            first, *others = kept[-4:]
            seen.update(id(each.obj) for each in others)
            del kept[-3:], others, first
    assert [bytes(each) for each in kept] == [bytes([number]) * 1_000_000 for number in range(0, 40, 4)]
    assert len(seen) < 15  # of thirty that have lost their views


def test_detached_buffers_are_remembered_up_to_a_limit() -> None:
    buffers = ReceiveBufferPool()
    for _ in range(5):
        buffers.detach(buffers.take(DETACHED_BYTES_MAX // 3))
    assert 0 < sum(map(len, buffers._detached)) <= DETACHED_BYTES_MAX
    buffers.detach(buffers.take(DETACHED_BYTES_MAX + 1))
    assert not buffers._detached


def test_burst_of_small_frames_is_handled_in_slices() -> None:
    """`should_yield` is called after every few frames; no frame is lost or handled twice."""
    handled: list[int] = []
    yield_calls: list[bool] = []

    def handle(buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        handled.append(view[start])
        return True

    def should_yield(is_first: bool) -> bool:
        yield_calls.append(is_first)
        return not is_first

    buffers = ReceiveBufferPool()
    reader = FrameReader(buffers, 100, handle, should_yield=should_yield)
    stream = b"".join(pack(">iB", 1, number) for number in range(30)) + b"\0\0"
    reader.get_buffer(-1)[: len(stream)] = stream
    reader.received(len(stream))
    assert (handled, yield_calls, reader.buffered_bytes) == (list(range(8)), [True, False], 22 * 5 + 2)
    for slices in range(1, 5):
        reader.resume()
        assert handled == list(range(min(8 + 8 * slices, 30)))
    assert (reader.buffered_bytes, len(reader.get_buffer(-1))) == (2, 2)  # of the size of the next frame


def test_burst_may_yield_after_each_larger_frame() -> None:
    handled: list[int] = []

    def handle(buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        handled.append(view[start])
        return True

    reader = FrameReader(ReceiveBufferPool(), 5000, handle, should_yield=lambda is_first: not is_first)
    stream = b"".join(pack(">iB", 2000, number) + bytes(1999) for number in range(7))
    reader.get_buffer(-1)[: len(stream)] = stream
    reader.received(len(stream))
    assert (handled, reader.buffered_bytes) == ([0], 6 * 2004)
    for slices in range(1, 7):
        reader.resume()
        assert handled == list(range(1 + slices))
    assert reader.buffered_bytes == 0
