"""Writes down, from time to time and at a clean stop, up to where each log is on the disk and committed, and where it begins.

After a crash a log is read through from its recovery point on, so that an old file costs time and nothing else. What must not be is a
point that is too far on: one of a topic that was deleted would be believed of the next one of its name. See `forget`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.base.ports import Disk, Workers
from ottla.log import offset_checkpoint_file
from ottla.log.offset_checkpoint_file import HIGH_WATERMARKS_FILE, RECOVERY_POINTS_FILE, Offsets
from ottla.runtime.log_directories import LogDirectory
from ottla.runtime.partition import Partition

log = logging.getLogger("ottla.partitions")


def recovery_point(partition: Partition) -> int:
    return partition.log.recovery_point


def high_watermark(partition: Partition) -> int:
    return partition.high_watermark


class OffsetCheckpoint:
    """One such file in each log directory."""

    def __init__(self, disk: Disk, workers: Workers, name: str, offset_of: Callable[[Partition], int]) -> None:
        self._disk = disk
        self._workers = workers
        self._name = name
        self._offset_of = offset_of
        self._written: dict[str, Offsets] = {}
        self._writing = asyncio.Lock()

    def read(self, directory: LogDirectory) -> Offsets:
        """What the file says. One that cannot be read is named and not believed, as in Kafka."""
        path = f"{directory.path}/{self._name}"
        try:
            found = offset_checkpoint_file.read(self._disk, path)
        except ValueError as error:
            log.warning("%s is not whole, and nothing in it is believed: %s", path, error)
            found = {}
        self._written[directory.path] = found
        return found

    async def write(self, directory: LogDirectory) -> None:
        """In a worker, where something has changed. OSError where it cannot be."""
        async with self._writing:
            if not directory.is_online:
                return  # it holds no partitions any more, and its file keeps what it said of them
            offsets = {
                (partition.topic, partition.index): self._offset_of(partition) for partition in directory.partitions
            }
            if offsets != self._written.get(directory.path):
                await self._write(directory, offsets)

    async def forget(self, directory: LogDirectory, partitions: Sequence[tuple[str, int]]) -> None:
        """Before new logs of these names are written to: nothing that is said of old ones holds for them."""
        async with self._writing:
            written = self._written.get(directory.path, {})
            if any(partition in written for partition in partitions):
                await self._write(
                    directory,
                    {partition: offset for partition, offset in written.items() if partition not in partitions},
                )

    async def _write(self, directory: LogDirectory, offsets: Offsets) -> None:
        await self._workers.run(
            partial(offset_checkpoint_file.write, self._disk, f"{directory.path}/{self._name}", offsets)
        )
        self._written[directory.path] = offsets


class OffsetCheckpoints:
    """Both files that only grow old."""

    def __init__(self, disk: Disk, workers: Workers) -> None:
        self.recovery_points = OffsetCheckpoint(disk, workers, RECOVERY_POINTS_FILE, recovery_point)
        self.high_watermarks = OffsetCheckpoint(disk, workers, HIGH_WATERMARKS_FILE, high_watermark)

    async def forget(self, directory: LogDirectory, partitions: Sequence[tuple[str, int]]) -> None:
        await self.recovery_points.forget(directory, partitions)
        await self.high_watermarks.forget(directory, partitions)
