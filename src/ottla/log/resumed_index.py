"""Indexes of an active segment after a clean restart: old entries are searched in the mapped file, new ones are kept in
memory.

An active segment of 1 GB has 5 MB of index entries. Loading them for each of a thousand partitions would take startup
time and memory in proportion to the data.
"""

from ottla.log import offset_index, time_index
from ottla.log.mapped_index import Entries
from ottla.log.offset_index import MappedOffsetIndex, MutableOffsetIndex
from ottla.log.time_index import MappedTimeIndex, MutableTimeIndex

LOADED_BYTES_MAX = 64 << 10
"""Smaller files are loaded: the number of mappings is limited, and each takes at least a page."""


class ResumedOffsetIndex(MutableOffsetIndex):
    __slots__ = ("_before", "_before_data")

    def __init__(self, base_offset: int, data: memoryview) -> None:
        super().__init__(base_offset)
        self._before = MappedOffsetIndex(base_offset, data)
        self._before_data = data[: len(self._before) * offset_index.ENTRY_BYTES]

    def __len__(self) -> int:
        return len(self._before) + super().__len__()

    def position_range(self, offset: int) -> tuple[int, int | None]:
        relatives = self.relatives
        if relatives and offset - self.base_offset >= relatives[0]:
            return super().position_range(offset)
        start, last = self._before.position_range(offset)
        return start, self.positions[0] if last is None and self.positions else last

    def last_position(self) -> int:
        return super().last_position() if self.positions else self._before.last_position()

    def entries(self) -> list[tuple[int, int]]:
        return self._before.entries() + super().entries()

    def encode(self) -> bytes:
        return bytes(self._before_data) + super().encode()


class ResumedTimeIndex(MutableTimeIndex):
    __slots__ = ("_before", "_before_data")

    def __init__(self, base_offset: int, data: memoryview) -> None:
        super().__init__(base_offset)
        self._before = MappedTimeIndex(base_offset, data)
        self._before_data = data[: len(self._before) * time_index.ENTRY_BYTES]

    def __len__(self) -> int:
        return len(self._before) + super().__len__()

    def maybe_append(self, timestamp: int, offset: int) -> None:
        if self.timestamps or timestamp > (self._before.last() or (-1, 0))[0]:
            super().maybe_append(timestamp, offset)

    def offset_before(self, timestamp: int) -> int:
        timestamps = self.timestamps
        is_new = timestamps and timestamp >= timestamps[0]
        return super().offset_before(timestamp) if is_new else self._before.offset_before(timestamp)

    def last(self) -> tuple[int, int] | None:
        return super().last() or self._before.last()

    def entries(self) -> list[tuple[int, int]]:
        return self._before.entries() + super().entries()

    def encode(self) -> bytes:
        return bytes(self._before_data) + super().encode()


def resume_offsets(base_offset: int, data: Entries) -> MutableOffsetIndex:
    if isinstance(data, memoryview) and len(data) > LOADED_BYTES_MAX:
        return ResumedOffsetIndex(base_offset, data)
    return MutableOffsetIndex.decode(base_offset, data)


def resume_times(base_offset: int, data: Entries) -> MutableTimeIndex:
    if isinstance(data, memoryview) and len(data) > LOADED_BYTES_MAX:
        return ResumedTimeIndex(base_offset, data)
    return MutableTimeIndex.decode(base_offset, data)
