"""What the checkpoints of a data directory say of its logs, held against where the logs end: nothing may be flushed, committed, deleted or
compacted that is not there."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.log_files import Kind, Stored, kind_of, read_bytes

if TYPE_CHECKING:
    from ottla.log.checkpoints import Offsets


class LogEnd(NamedTuple):
    """Where a log ended when it was read, and the name of its last segment then."""

    offset: int
    last_base_offset: int


class Checkpoints:
    """Read before the logs are, which may grow meanwhile: they reach at least as far as was written down."""

    def __init__(self) -> None:
        self._offsets: dict[str, Offsets] = {}

    def read(self, stored: Stored) -> None:
        """ValueError where the file is not whole."""
        from ottla.log import checkpoints

        data = read_bytes(stored.path)
        self._offsets[stored.path] = checkpoints.decode(data) if data else {}  # Kafka begins with an empty file

    def beyond(self, ends: dict[str, LogEnd]) -> Iterator[tuple[str, str]]:
        """The file and what is wrong in it, for each offset behind the end of its log. `ends`: of the logs that were read, by directory."""
        for path, offsets in self._offsets.items():
            for (topic, index), offset in sorted(offsets.items()):
                directory = os.path.join(os.path.dirname(path), f"{topic}-{index}")
                end = ends.get(directory)
                if end is not None and offset > end.offset and not _has_grown(directory, end):
                    yield (
                        path,
                        f"{topic}-{index} is said to have come to offset {offset}, and its log ends at {end.offset}",
                    )


def _has_grown(directory: str, end: LogEnd) -> bool:
    """Whether a node that runs has added a segment since the files were listed, in which the offset may be; or has removed the log."""
    if not os.path.isdir(directory):
        return True
    bases = [Stored(name, Kind.SEGMENT).base_offset for name in os.listdir(directory) if kind_of(name) is Kind.SEGMENT]
    return max(bases, default=0) > end.last_base_offset
