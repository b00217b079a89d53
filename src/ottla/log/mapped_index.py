"""What the two indexes of a segment have in common: a file of entries, sorted, and in Apache Kafka's case filled up with zeros."""

from bisect import bisect_right
from collections.abc import Callable
from struct import Struct
from typing import ClassVar

Entries = bytes | memoryview


class MappedIndex:
    """The file of a closed segment, searched in place: it costs no memory of our own."""

    __slots__ = ("_count", "_data", "base_offset")
    ENTRY: ClassVar[Struct]

    def __init__(self, base_offset: int, data: memoryview, count: int) -> None:
        """`count`: so many entries stand before the zeros."""
        self.base_offset = base_offset
        self._data = data
        self._count = count

    def __len__(self) -> int:
        return self._count

    def entries(self) -> list[tuple[int, int]]:
        return [self.ENTRY.unpack_from(self._data, i * self.ENTRY.size) for i in range(self._count)]


def count_before_padding(data: Entries, entry: Struct, is_filling: Callable[[int], bool]) -> int:
    """The number of entries before those that only fill the file up; the first may be all zeros and an entry nevertheless, where others
    follow it."""
    count = len(data) // entry.size
    if not count or not is_filling(count - 1):
        return count
    filling_from = bisect_right(range(1, count), False, key=is_filling)
    if filling_from == 0 and entry.unpack_from(data, 0) == (0, 0):
        return 0
    return filling_from + 1
