"""Find and read the files of a data directory. Files are never written, so a node may be using them."""

import os
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.errors import CliError

if TYPE_CHECKING:
    from ottla.base.ports import File
    from ottla.wire.batches import BatchHeader

WORK_SUFFIXES = (".deleted", ".cleaned", ".swap", ".tmp")
"""Suffixes of files that are being created or deleted."""
DELETED_DIRECTORY_SUFFIX = "-delete"
"""Suffix of a partition's directory while its files are being deleted."""
OFFSET_FILES = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


class FileType(Enum):
    """Types of files; the values appear in the output of `dump`."""

    SEGMENT = "segment"
    SNAPSHOT = "metadata snapshot"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TRANSACTION_INDEX = "transaction index"
    PRODUCERS = "producer snapshot"
    EPOCHS = "leader epochs"
    OFFSETS = "offset checkpoint"
    PARTITION = "partition metadata"
    PROPERTIES = "properties"
    JSON = "state"


_BY_SUFFIX = {
    ".log": FileType.SEGMENT,
    ".checkpoint": FileType.SNAPSHOT,
    ".index": FileType.OFFSET_INDEX,
    ".timeindex": FileType.TIME_INDEX,
    ".txnindex": FileType.TRANSACTION_INDEX,
    ".snapshot": FileType.PRODUCERS,
}
_BY_NAME = {
    "leader-epoch-checkpoint": FileType.EPOCHS,
    "partition.metadata": FileType.PARTITION,
    "meta.properties": FileType.PROPERTIES,
    "quorum-state": FileType.JSON,
    ".kafka_cleanshutdown": FileType.JSON,
    **dict.fromkeys(OFFSET_FILES, FileType.OFFSETS),
}


class LogFile(NamedTuple):
    """A file of a known type."""

    path: str
    file_type: FileType

    @property
    def base_offset(self) -> int:
        """The offset in the file name; 0 if there is none."""
        digits = os.path.basename(self.path)[:20]
        return int(digits) if len(digits) == 20 and digits.isdecimal() else 0

    @property
    def size(self) -> int:
        return os.path.getsize(self.path)


def file_type_of(path: str) -> FileType | None:
    name = os.path.basename(path)
    for suffix in WORK_SUFFIXES:
        name = name.removesuffix(suffix)
    return _BY_NAME.get(name) or _BY_SUFFIX.get(os.path.splitext(name)[1])


def find_log_files(paths: Iterable[str]) -> list[LogFile]:
    """Return the known files at the paths and below, in order. Temporary and deleted ones must be named explicitly."""
    found: dict[str, FileType] = {}
    for path in paths:
        if not os.path.exists(path):
            raise CliError(f"{path}: no such file or directory")
        if os.path.isfile(path):
            file_type = file_type_of(path)
            if file_type is None:
                raise CliError(
                    f"{path}: not the name of a broker file",
                    "Segments end in .log, indexes in .index, .timeindex or .txnindex, snapshots in .snapshot or "
                    ".checkpoint.",
                )
            found[os.path.normpath(path)] = file_type
            continue
        for directory, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not name.endswith(DELETED_DIRECTORY_SUFFIX))
            for name in sorted(names):
                file_type = None if name.endswith(WORK_SUFFIXES) else file_type_of(name)
                if file_type is not None:
                    found[os.path.normpath(os.path.join(directory, name))] = file_type
    if not found:
        raise CliError(f"{', '.join(paths)}: no broker files found")
    return [LogFile(path, file_type) for path, file_type in found.items()]


class ReadOnlyFile:
    """The reading part of the `File` port. The size is fixed when the file is opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        self._size = os.fstat(self._descriptor).st_size

    def read_at(self, position: int, size: int) -> bytes:
        pieces = []
        while size > 0 and (data := os.pread(self._descriptor, size, position)):
            pieces.append(data)
            position, size = position + len(data), size - len(data)
        return b"".join(pieces)

    def size(self) -> int:
        return self._size

    def close(self) -> None:
        os.close(self._descriptor)


def read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def batches(path: str) -> Iterator[tuple[int, "BatchHeader", memoryview]]:
    """Yield position, header and bytes of each batch, up to the first incomplete one."""
    from ottla.log.batch_scan import scan_batches

    file = ReadOnlyFile(path)
    try:
        yield from scan_batches(_as_file(file), 0, file.size())
    finally:
        file.close()


def _as_file(file: ReadOnlyFile) -> "File":
    return file  # type: ignore[return-value]  # scanning only reads


def partition_name(path: str) -> str:
    """Return the name of the directory of a file, which is its partition's name."""
    return os.path.basename(os.path.dirname(os.path.abspath(path)))
