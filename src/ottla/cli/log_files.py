"""The files of a data directory, told apart by their names, and read without ever being written to: a node may use them meanwhile."""

import os
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.errors import CliError

if TYPE_CHECKING:
    from ottla.base.ports import File
    from ottla.wire.batches import BatchHeader

WORK_SUFFIXES = (".deleted", ".cleaned", ".swap", ".tmp")
"""Of files that are on their way in or out."""
OFFSET_FILES = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


class FileType(Enum):
    """What a file is, in the words of `dump`."""

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
    """A file that a tool understands."""

    path: str
    file_type: FileType

    @property
    def base_offset(self) -> int:
        """The number in its name; 0 where there is none."""
        digits = os.path.basename(self.path)[:20]
        return int(digits) if len(digits) == 20 and digits.isdecimal() else 0

    @property
    def size(self) -> int:
        return os.path.getsize(self.path)


def kind_of(path: str) -> FileType | None:
    name = os.path.basename(path)
    for suffix in WORK_SUFFIXES:
        name = name.removesuffix(suffix)
    return _BY_NAME.get(name) or _BY_SUFFIX.get(os.path.splitext(name)[1])


def find_log_files(paths: Iterable[str]) -> list[LogFile]:
    """All that is meant by files and directories, in order. What is on its way out is left out, unless it was named itself."""
    found: dict[str, FileType] = {}
    for path in paths:
        if not os.path.exists(path):
            raise CliError(f"{path}: there is no such file or directory")
        if os.path.isfile(path):
            kind = kind_of(path)
            if kind is None:
                raise CliError(
                    f"{path}: nothing that a broker writes has such a name",
                    "Segments end in .log, indexes in .index, .timeindex or .txnindex, snapshots in .snapshot or .checkpoint.",
                )
            found[os.path.normpath(path)] = kind
            continue
        for directory, below, names in os.walk(path):
            below.sort()
            for name in sorted(names):
                kind = None if name.endswith(WORK_SUFFIXES) else kind_of(name)
                if kind is not None:
                    found[os.path.normpath(os.path.join(directory, name))] = kind
    if not found:
        raise CliError(f"{', '.join(paths)}: nothing there was written by a broker")
    return [LogFile(path, kind) for path, kind in found.items()]


class ReadOnlyFile:
    """As much of a File as reading takes. Its size is that of the moment when it was opened."""

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
    """Position, header and bytes of each batch, up to the first bytes that cannot be a whole one."""
    from ottla.log.batch_scan import scan_batches

    file = ReadOnlyFile(path)
    try:
        yield from scan_batches(_as_file(file), 0, file.size())
    finally:
        file.close()


def _as_file(file: ReadOnlyFile) -> "File":
    return file  # type: ignore[return-value]  # scanning only reads


def partition_name(path: str) -> str:
    """The directory that a file is in, which is named after its partition."""
    return os.path.basename(os.path.dirname(os.path.abspath(path)))
