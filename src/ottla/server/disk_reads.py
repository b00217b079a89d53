"""What a fetch leaves to workers: to find what only the disk knows, and to bring into memory what is sent."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.base.ports import Buffer
from ottla.runtime.partition import LogSlice
from ottla.server.connection import FileRegion

Key = tuple[bytes, int, bool]
"""Topic, partition, and whether it comes first in the answer, where its first batch is whole whatever its size."""


class ColdLookup(NamedTuple):
    """A position that only the disk knows."""

    key: Key
    path: str
    find: Callable[[], LogSlice | None]


class DiskReadError(Exception):
    """The file system has refused to read what lies at a path."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(path, error)
        self.path = path
        self.error = error


def look_up(lookups: Sequence[ColdLookup]) -> dict[Key, LogSlice | None]:
    """Runs in a worker."""
    found = {}
    for lookup in lookups:
        try:
            slice_found = found[lookup.key] = lookup.find()
            if slice_found is not None and slice_found.size:
                slice_found.file.prefetch(slice_found.position, slice_found.size)
        except OSError as error:
            raise DiskReadError(lookup.path, error) from error
    return found


def read_slices(wanted: Sequence[tuple[int, LogSlice, bool]]) -> list[tuple[int, Buffer | FileRegion]]:
    """Runs in a worker: what is sent from its file is only brought into the page cache."""
    parts: list[tuple[int, Buffer | FileRegion]] = []
    for index, (file, position, size), is_sent in wanted:
        try:
            file.prefetch(position, size)
            parts.append((index, FileRegion(file, position, size) if is_sent else file.read_at(position, size)))
        except OSError as error:
            raise DiskReadError(file.path, error) from error
    return parts
