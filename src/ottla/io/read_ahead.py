"""How far a file is brought into the page cache for those who read through it from the disk, so that the kernel need not guess it.

The kernel reads ahead for whoever happens to come to the end of what is there, 8 MB at a time on some machines. That would be the loop,
in a look at one byte or in the middle of a `sendfile`, and everybody would wait meanwhile.
"""

WINDOW_BYTES_MAX = 8 << 20
WINDOWS_MAX = 4
"""So many read at their own places in one file; one more, and somebody begins again with a small window."""

Window = tuple[int, int]
"""From one position up to another."""


class ReadAhead:
    """The windows of one file. The loop asks and workers change them; where two do at once, one window is forgotten."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: list[Window] = []

    def crosses_window_end(self, position: int, size: int) -> bool:
        """Whether somebody who reads this has come to the end of a window: what is behind it is a worker's."""
        return any(start <= position <= end < position + size for start, end in self._windows)

    def advance(self, position: int, size: int, file_end: int) -> int:
        """Where the window of somebody who reads this ends. It grows while one reads on, and is forgotten at the end of the file."""
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
