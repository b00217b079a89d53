"""Base of the two mapped indexes: a file of sorted entries, which Apache Kafka pads with zeros."""

from bisect import bisect_right
from collections.abc import Callable
from struct import Struct
from typing import ClassVar

Entries = bytes | memoryview


class MappedIndex:
    """An index file of a closed segment, searched in place, so that it needs no heap memory."""

    __slots__ = ("_count", "_data", "base_offset")
    ENTRY: ClassVar[Struct]

    def __init__(self, base_offset: int, data: memoryview, count: int) -> None:
        """`count` is the number of entries before the padding."""
        self.base_offset = base_offset
        self._data = data
        self._count = count

    def __len__(self) -> int:
        return self._count

    def entries(self) -> list[tuple[int, int]]:
        return [self.ENTRY.unpack_from(self._data, i * self.ENTRY.size) for i in range(self._count)]


def count_before_padding(data: Entries, entry: Struct, is_padding: Callable[[int], bool]) -> int:
    """Return the number of entries before the padding. The first entry may be all zeros if others follow it."""
    count = len(data) // entry.size
    if not count or not is_padding(count - 1):
        return count
    padding_start = bisect_right(range(1, count), False, key=is_padding)
    if padding_start == 0 and entry.unpack_from(data, 0) == (0, 0):
        return 0
    return padding_start + 1
