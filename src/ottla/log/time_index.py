"""Time index of a segment: a sparse map from timestamp to offset. No record up to an entry's offset has a later
timestamp.

An entry is the highest timestamp so far and the last offset of its batch, relative to the segment's base offset.
"""

import sys
from array import array
from bisect import bisect_right
from struct import Struct

from ottla.log.mapped_index import Entries, MappedIndex, count_before_padding

ENTRY_BYTES = 12
_entry = Struct(">qi")
_timestamp = Struct(">q")
_relative = Struct(">i")


class MutableTimeIndex:
    """Index of the active segment: two sorted arrays, 12 bytes per entry."""

    __slots__ = ("base_offset", "relatives", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relatives = array("I")

    def __len__(self) -> int:
        return len(self.timestamps)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if its timestamp is higher than the last: both fields increase."""
        timestamps = self.timestamps
        if timestamp > (timestamps[-1] if timestamps else -1):
            self.relatives.append(offset - self.base_offset)
            timestamps.append(timestamp)  # last: a worker that searches by time reads this array first

    def offset_before(self, timestamp: int) -> int:
        """Return an offset at or before the first record with at least that timestamp."""
        index = bisect_right(self.timestamps, timestamp)
        return self.base_offset + (self.relatives[index - 1] if index else 0)

    def last(self) -> tuple[int, int] | None:
        """Return the highest timestamp and its offset."""
        return (self.timestamps[-1], self.base_offset + self.relatives[-1]) if self.timestamps else None

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self.timestamps, self.relatives, strict=True))

    def truncate(self, count: int) -> None:
        del self.timestamps[count:]
        del self.relatives[count:]

    def encode(self) -> bytes:
        halves = array("I")
        halves.frombytes(self.timestamps.tobytes())
        words = array("I", bytes(ENTRY_BYTES * len(self.timestamps)))
        is_little = sys.byteorder == "little"
        words[0::3] = halves[1::2] if is_little else halves[0::2]
        words[1::3] = halves[0::2] if is_little else halves[1::2]
        words[2::3] = self.relatives
        if is_little:
            words.byteswap()
        return words.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: Entries) -> "MutableTimeIndex":
        """Read the entries of a file, without the zeros with which Apache Kafka pads the file of an active segment."""
        count = count_valid(data)
        words = array("I")
        words.frombytes(data[: count * ENTRY_BYTES])
        is_little = sys.byteorder == "little"
        if is_little:
            words.byteswap()
        halves = array("I", bytes(8 * count))
        halves[1 if is_little else 0 :: 2] = words[0::3]
        halves[0 if is_little else 1 :: 2] = words[1::3]
        index = cls(base_offset)
        index.timestamps.frombytes(halves.tobytes())
        index.relatives = words[2::3]
        return index


class MappedTimeIndex(MappedIndex):
    """The index of a closed segment."""

    __slots__ = ()
    ENTRY = _entry

    def __init__(self, base_offset: int, data: memoryview) -> None:
        super().__init__(base_offset, data, count_valid(data))

    def offset_before(self, timestamp: int) -> int:
        data = self._data
        index = bisect_right(
            range(self._count), timestamp, key=lambda i: _timestamp.unpack_from(data, i * ENTRY_BYTES)[0]
        )
        relative: int = _relative.unpack_from(data, index * ENTRY_BYTES - 4)[0] if index else 0
        return self.base_offset + relative

    def last(self) -> tuple[int, int] | None:
        if not self._count:
            return None
        timestamp, relative = _entry.unpack_from(self._data, (self._count - 1) * ENTRY_BYTES)
        return timestamp, self.base_offset + relative


TimeIndex = MutableTimeIndex | MappedTimeIndex


def count_valid(data: Entries) -> int:
    """Return the number of entries before the padding. Only the first entry may have timestamp 0."""
    if len(data) // ENTRY_BYTES == 1:
        return 1  # a single entry of zeros is valid: a record of the year 1970, as no file is padded to one entry
    return count_before_padding(data, _entry, lambda i: _entry.unpack_from(data, i * ENTRY_BYTES) == (0, 0))


def is_valid_index(data: Entries) -> bool:
    """Whether a file can be a time index: complete entries, the last of which is not before the first."""
    if len(data) % ENTRY_BYTES:
        return False
    count = count_valid(data)
    if not count:
        return True
    first, _ = _entry.unpack_from(data, 0)
    last, relative = _entry.unpack_from(data, (count - 1) * ENTRY_BYTES)
    return bool(last >= first and relative >= 0)
