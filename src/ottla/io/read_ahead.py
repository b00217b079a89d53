"""Read-ahead windows of a file for sequential readers of uncached data, in place of the kernel's read-ahead.

The kernel reads ahead, up to 8 MB at a time on some machines, in the thread that reaches the end of the cached pages.
That would be the loop, in a check of one byte or in a `sendfile`, and all other requests would wait.
"""

WINDOW_BYTES_MAX = 8 << 20
WINDOWS_MAX = 4
"""Concurrent sequential readers per file. One more drops the oldest window, whose reader starts with a small one."""

Window = tuple[int, int]
"""Start and end position."""


class ReadAhead:
    """The windows of one file. The loop reads and workers change them; of two concurrent changes, one may be lost."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: list[Window] = []

    def crosses_window_end(self, position: int, size: int) -> bool:
        """Whether a read starts in a window and ends after it. A worker has to prefetch the rest."""
        return any(start <= position <= end < position + size for start, end in self._windows)

    def advance(self, position: int, size: int, file_end: int) -> int:
        """Return the end of the window for this read. It doubles with each sequential read, up to the end of the
        file."""
        others, length = [], size
        for window in self._windows:
            start, end = window
            if start <= position <= end:
                length = max(size, min(2 * (end - start), WINDOW_BYTES_MAX))
            else:
                others.append(window)
        if position + length >= file_end:
            self._windows = others
            return file_end
        self._windows = [*others[1 - WINDOWS_MAX :], (position, position + length)]
        return position + length

    def __bool__(self) -> bool:
        return bool(self._windows)
