"""Checkpoint files of recovery points and high watermarks, written periodically and at a clean shutdown.

After a crash a log is recovered from its recovery point, so a stale checkpoint costs only time. But a recovery point
must not be too high: the entries of a deleted topic must not apply to a new topic of the same name. See `remove`.
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
    """One checkpoint file in each log directory."""

    def __init__(self, disk: Disk, workers: Workers, name: str, offset_of: Callable[[Partition], int]) -> None:
        self._disk = disk
        self._workers = workers
        self._name = name
        self._offset_of = offset_of
        self._written: dict[str, Offsets] = {}
        self._writing = asyncio.Lock()

    def read(self, directory: LogDirectory) -> Offsets:
        """Read the file. A corrupt one is logged and ignored, as in Kafka."""
        path = f"{directory.path}/{self._name}"
        try:
            found = offset_checkpoint_file.read(self._disk, path)
        except ValueError as error:
            log.warning("ignoring corrupt checkpoint %s: %s", path, error)
            found = {}
        self._written[directory.path] = found
        return found

    async def write(self, directory: LogDirectory) -> None:
        """Write the file in a worker if an offset has changed. Raises OSError."""
        async with self._writing:
            if not directory.is_online:
                return  # it has no partitions any more, and its file must keep their offsets
            offsets = {
                (partition.topic, partition.index): self._offset_of(partition) for partition in directory.partitions
            }
            if offsets != self._written.get(directory.path):
                await self._write(directory, offsets)

    async def remove(self, directory: LogDirectory, partitions: Sequence[tuple[str, int]]) -> None:
        """Remove the entries of earlier partitions with these names. Call before their new logs are written to."""
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
    """The checkpoint files that are written periodically."""

    def __init__(self, disk: Disk, workers: Workers) -> None:
        self.recovery_points = OffsetCheckpoint(disk, workers, RECOVERY_POINTS_FILE, recovery_point)
        self.high_watermarks = OffsetCheckpoint(disk, workers, HIGH_WATERMARKS_FILE, high_watermark)

    async def remove(self, directory: LogDirectory, partitions: Sequence[tuple[str, int]]) -> None:
        await self.recovery_points.remove(directory, partitions)
        await self.high_watermarks.remove(directory, partitions)
