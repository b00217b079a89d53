"""Offset index of a segment: a sparse map from offset to position, in memory while the segment is active and
memory-mapped afterwards.

An entry is the last offset of a batch, relative to the segment's base offset, and the position where the batch starts.
"""

import sys
from array import array
from bisect import bisect_right
from struct import Struct

from ottla.log.mapped_index import Entries, MappedIndex, count_before_padding

ENTRY_BYTES = 8
_entry = Struct(">ii")
_relative = Struct(">i")


class MutableOffsetIndex:
    """Index of the active segment: two sorted arrays, 8 bytes per entry. Written when the segment is closed."""

    __slots__ = ("base_offset", "positions", "relatives")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relatives = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.relatives)

    def append(self, offset: int, position: int) -> None:
        self.positions.append(position)
        self.relatives.append(offset - self.base_offset)  # last: a worker that searches by time reads this array first

    def position_of(self, offset: int) -> int:
        """Return where to start scanning for an offset: no batch before that position holds it."""
        return self.position_range(offset)[0]

    def position_range(self, offset: int) -> tuple[int, int | None]:
        """Return the first and the last position (None if unknown) where the batch that holds the offset may start."""
        relatives, positions, relative = self.relatives, self.positions, offset - self.base_offset
        index = bisect_right(relatives, relative)
        start = positions[index - 1] if index else 0
        if index and relatives[index - 1] == relative:
            return start, start
        return start, positions[index] if index < len(positions) else None

    def last_position_up_to(self, limit: int) -> int:
        """Return the last indexed position that is not after a limit."""
        positions = self.positions
        count = bisect_right(positions, limit)
        return positions[count - 1] if count else 0

    def last_position(self) -> int:
        """Return the position of the last entry."""
        return self.positions[-1] if self.positions else 0

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self.relatives, self.positions, strict=True))

    def truncate(self, count: int) -> None:
        del self.relatives[count:]
        del self.positions[count:]

    def encode(self) -> bytes:
        words = array("I", bytes(ENTRY_BYTES * len(self.relatives)))
        words[0::2] = self.relatives
        words[1::2] = self.positions
        if sys.byteorder == "little":
            words.byteswap()
        return words.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: Entries) -> "MutableOffsetIndex":
        """Read the entries of a file, without the zeros with which Apache Kafka pads the file of an active segment."""
        count = count_valid(data)
        words = array("I")
        words.frombytes(data[: count * ENTRY_BYTES])
        if sys.byteorder == "little":
            words.byteswap()
        index = cls(base_offset)
        index.relatives = words[0::2]
        index.positions = words[1::2]
        return index


class MappedOffsetIndex(MappedIndex):
    """The index of a closed segment."""

    __slots__ = ()
    ENTRY = _entry

    def __init__(self, base_offset: int, data: memoryview) -> None:
        super().__init__(base_offset, data, count_valid(data))

    def position_of(self, offset: int) -> int:
        return self.position_range(offset)[0]

    def position_range(self, offset: int) -> tuple[int, int | None]:
        data, relative = self._data, offset - self.base_offset
        index = bisect_right(
            range(self._count), relative, key=lambda i: _relative.unpack_from(data, i * ENTRY_BYTES)[0]
        )
        found, start = _entry.unpack_from(data, (index - 1) * ENTRY_BYTES) if index else (-1, 0)
        if found == relative:
            return start, start
        return start, self._position(index) if index < self._count else None

    def last_position_up_to(self, limit: int) -> int:
        count = bisect_right(range(self._count), limit, key=self._position)
        return self._position(count - 1) if count else 0

    def last_position(self) -> int:
        return self._position(self._count - 1) if self._count else 0

    def _position(self, index: int) -> int:
        position: int = _relative.unpack_from(self._data, index * ENTRY_BYTES + 4)[0]
        return position


OffsetIndex = MutableOffsetIndex | MappedOffsetIndex


def count_valid(data: Entries) -> int:
    """Return the number of entries before the padding. Only the first entry may have position 0."""
    return count_before_padding(data, _entry, lambda i: not _relative.unpack_from(data, i * ENTRY_BYTES + 4)[0])


def is_valid_index(data: Entries, log_size: int) -> bool:
    """Whether a file can be the index of a log of that size: complete entries, the last of which is in the log."""
    if len(data) % ENTRY_BYTES:
        return False
    count = count_valid(data)
    if not count:
        return True
    relative, position = _entry.unpack_from(data, (count - 1) * ENTRY_BYTES)
    return bool(relative >= 0 and 0 <= position < log_size)
