"""The node's `log.dirs`: which partitions lie where, where their logs begin, and how much room there is.

The file `log-start-offset-checkpoint` of a directory holds the beginnings that DeleteRecords has moved; the format is Kafka's. What it says
holds at the next start, whether or not the files of the records before it were removed by then.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial

from ottla.base.ids import Uuid
from ottla.base.ports import Disk, Workers
from ottla.log.checkpoints import START_OFFSETS_FILE, Offsets, decode, encode
from ottla.log.producer_state import SNAPSHOT_SUFFIX
from ottla.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, Segment
from ottla.runtime.partition import Partition

REMOVED_SUFFIX = ".deleted"

log = logging.getLogger("ottla.partitions")

FILE_NAME = START_OFFSETS_FILE
StartOffsets = Offsets


class LogDirectory:
    """One of the node's `log.dirs`, and the partitions that it holds."""

    def __init__(self, directory_id: Uuid, path: str, *, is_clean: bool) -> None:
        self.directory_id = directory_id
        self.path = path
        self.is_clean = is_clean
        self.partition_count = 0
        self.partitions: dict[Partition, None] = {}
        self.changes = 0
        self.saved_changes = 0
        self.saving = asyncio.Lock()

    def start_offsets(self) -> StartOffsets:
        """Of the partitions that do not begin with the first offset of all."""
        return {(partition.topic, partition.index): partition.log.log_start_offset
                for partition in self.partitions if partition.log.log_start_offset > 0}


class LogDirectories:
    """All of them."""

    def __init__(self, disk: Disk, workers: Workers, directories: Sequence[LogDirectory]) -> None:
        self._disk = disk
        self._workers = workers
        self._directories = directories

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._directories)

    async def space(self, directory: LogDirectory) -> tuple[int, int]:
        """The size of its file system, and what of it is free."""
        return await self._workers.run(lambda: self._disk.space(directory.path))

    async def delete_before(self, partition: Partition, offset: int) -> int:
        """Delete records; returns where the log begins, once that is on the disk. ApiError where it cannot begin there."""
        partition.delete_before(offset)
        directory = next(directory for directory in self._directories if partition in directory.partitions)
        await self._save(directory)
        self._drop_segments(partition)
        return partition.log.log_start_offset

    def read_start_offsets(self) -> StartOffsets:
        """What the directories say. A file that cannot be read is named and not believed, as in Kafka."""
        found: StartOffsets = {}
        for directory in self._directories:
            path = f"{directory.path}/{FILE_NAME}"
            if self._disk.exists(path):
                try:
                    found |= decode(self._disk.read(path))
                except ValueError as error:
                    log.warning("%s is not whole, and logs begin with their first segments: %s", path, error)
        return found

    def forget_stale_start_offsets(self) -> None:
        """Once all logs are open: what is said of a topic that is gone must not be believed of the next one of its name."""
        for directory in self._directories:
            path = f"{directory.path}/{FILE_NAME}"
            if self._disk.exists(path) and self._disk.read(path) != encode(directory.start_offsets()):
                self.write_start_offsets(directory)

    def write_start_offsets(self, directory: LogDirectory) -> None:
        """At once; but where a worker writes the file just now, it will see the change and write again."""
        if directory.saving.locked():
            return
        self._disk.write_atomically(f"{directory.path}/{FILE_NAME}", encode(directory.start_offsets()))

    async def _save(self, directory: LogDirectory) -> None:
        """Those who come while a worker writes share the next write."""
        directory.changes += 1
        wanted = directory.changes
        async with directory.saving:
            if directory.saved_changes >= wanted:
                return
            written = b""
            while (data := encode(directory.start_offsets())) != written:
                changes, written = directory.changes, data
                await self._workers.run(partial(self._disk.write_atomically, f"{directory.path}/{FILE_NAME}", data))
                directory.saved_changes = changes

    def _drop_segments(self, partition: Partition) -> None:
        """Whole segments before the beginning leave the log now; their files go when nobody reads them any more."""
        segments = partition.log.take_below_start()
        if segments:
            delay_seconds = partition.log.config.file_delete_delay_ms / 1000
            asyncio.get_running_loop().call_later(delay_seconds, self._remove, partition, segments)

    def _remove(self, partition: Partition, segments: list[Segment]) -> None:
        """Renamed on the loop, where a topic of the same name cannot be made meanwhile; the rest is left to a worker."""
        if partition.is_gone:
            return
        paths = [segment.stem + suffix for segment in segments
                 for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, SNAPSHOT_SUFFIX)]
        removed = [path for path in paths if self._disk.exists(path)]
        for path in removed:
            self._disk.rename(path, path + REMOVED_SUFFIX)
        self._workers.run(partial(self._unlink, [path + REMOVED_SUFFIX for path in removed]))

    def _unlink(self, paths: list[str]) -> None:
        for path in paths:
            self._disk.remove(path)
