"""Read-ahead windows."""

from ottla.io.read_ahead import WINDOW_BYTES_MAX, WINDOWS_MAX, ReadAhead

FAR = 1 << 40


def read_sequentially(ahead, position, size, times):
    """Read sequentially and return the ends of the windows."""
    ends = []
    for _ in range(times):
        ends.append(ahead.advance(position, size, FAR))
        position = ends[-1]
    return ends


def test_window_grows_with_sequential_reads():
    ends = read_sequentially(ReadAhead(), 1000, 1 << 20, 7)
    assert [after - before >> 20 for before, after in zip([1000, *ends], ends, strict=False)] == [1, 2, 4, 8, 8, 8, 8]
    assert WINDOW_BYTES_MAX == 8 << 20


def test_larger_request_gets_a_larger_window():
    ahead = ReadAhead()
    assert read_sequentially(ahead, 0, 3 * WINDOW_BYTES_MAX, 2) == [3 * WINDOW_BYTES_MAX, 6 * WINDOW_BYTES_MAX]


def test_only_reads_that_start_in_a_window_cross_its_end():
    ahead = ReadAhead()
    assert not ahead.crosses_window_end(0, 10)
    ahead.advance(100, 50, FAR)
    assert {position for position in range(300) if ahead.crosses_window_end(position, 20)} == set(range(131, 151))
    assert not ahead.crosses_window_end(150, 0)


def test_seek_starts_a_small_window():
    ahead = ReadAhead()
    ends = read_sequentially(ahead, 0, 100, 3)
    assert ahead.advance(ends[-1] + 1, 100, FAR) == ends[-1] + 101


def test_several_readers_have_windows_and_the_oldest_is_dropped():
    ahead = ReadAhead()
    positions = [number * 1_000_000 for number in range(WINDOWS_MAX)]
    for position in positions:
        ahead.advance(position, 100, FAR)
    assert [ahead.advance(position + 100, 100, FAR) - position for position in positions] == [300] * WINDOWS_MAX
    ahead.advance(500_000_000, 100, FAR)
    assert [ahead.crosses_window_end(position + 300, 1) for position in positions] == [False] + [True] * (
        WINDOWS_MAX - 1
    )


def test_window_is_dropped_at_the_end_of_the_file():
    """Records appended later are in the page cache, so reading them needs no worker."""
    ahead = ReadAhead()
    ahead.advance(0, 100, 1000)
    assert ahead
    assert ahead.advance(100, 100, 250) == 250
    assert not ahead
    assert not ahead.crosses_window_end(250, 10)
    assert ahead.advance(500, 10, 250) == 250
