"""From offset to position: the sparse index of one segment, in memory while it grows and mapped from its file afterwards.

An entry is the last offset of a batch, relative to the segment's base, and the position where that batch starts.
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
    """Two arrays, bisected: 8 bytes an entry. It is written out when the segment is closed, since after a crash it is rebuilt anyway."""

    __slots__ = ("base_offset", "positions", "relatives")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relatives = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.relatives)

    def append(self, offset: int, position: int) -> None:
        self.positions.append(position)
        self.relatives.append(offset - self.base_offset)  # last, as a worker that searches by time starts from it

    def position_of(self, offset: int) -> int:
        """Where to start reading to find an offset: the batch there ends at or before it."""
        return self.around(offset)[0]

    def around(self, offset: int) -> tuple[int, int | None]:
        """The same, and the last position at which the batch that holds the offset may start; None where no entry follows."""
        relatives, positions, wanted = self.relatives, self.positions, offset - self.base_offset
        index = bisect_right(relatives, wanted)
        start = positions[index - 1] if index else 0
        if index and relatives[index - 1] == wanted:
            return start, start
        return start, positions[index] if index < len(positions) else None

    def position_up_to(self, limit: int) -> int:
        """Where the last batch starts that has an entry and does not start behind the limit."""
        positions = self.positions
        count = bisect_right(positions, limit)
        return positions[count - 1] if count else 0

    def last_position(self) -> int:
        """Where the last batch that has an entry starts."""
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
        """Entries of a file; the zeros with which Apache Kafka fills the file of an active segment are left out."""
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
        return self.around(offset)[0]

    def around(self, offset: int) -> tuple[int, int | None]:
        data, wanted = self._data, offset - self.base_offset
        index = bisect_right(range(self._count), wanted, key=lambda i: _relative.unpack_from(data, i * ENTRY_BYTES)[0])
        relative, start = _entry.unpack_from(data, (index - 1) * ENTRY_BYTES) if index else (-1, 0)
        if relative == wanted:
            return start, start
        return start, self._position(index) if index < self._count else None

    def position_up_to(self, limit: int) -> int:
        count = bisect_right(range(self._count), limit, key=self._position)
        return self._position(count - 1) if count else 0

    def last_position(self) -> int:
        """Where the last batch that has an entry starts."""
        return self._position(self._count - 1) if self._count else 0

    def _position(self, index: int) -> int:
        position: int = _relative.unpack_from(self._data, index * ENTRY_BYTES + 4)[0]
        return position


OffsetIndex = MutableOffsetIndex | MappedOffsetIndex


def count_valid(data: Entries) -> int:
    """How many entries stand before the zeros: positions rise, so that only the first entry may have position 0."""
    return count_before_padding(data, _entry, lambda i: not _relative.unpack_from(data, i * ENTRY_BYTES + 4)[0])


def is_valid_index(data: Entries, log_size: int) -> bool:
    """Whether a file can be the index of a log of that size: whole entries, the last of which points into the log."""
    if len(data) % ENTRY_BYTES:
        return False
    count = count_valid(data)
    if not count:
        return True
    relative, position = _entry.unpack_from(data, (count - 1) * ENTRY_BYTES)
    return bool(relative >= 0 and 0 <= position < log_size)
