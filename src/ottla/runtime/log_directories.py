"""The node's `log.dirs`: their partitions, log start offsets, free space and failures.

The file `log-start-offset-checkpoint` (Kafka's format) contains the log start offsets that DeleteRecords and retention
have moved. They apply after a restart even if the files of the deleted records still exist.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ottla.base.errors import ApiError, ErrorCode, is_disk_full
from ottla.base.ids import Uuid
from ottla.base.plural import count_text
from ottla.base.ports import Disk, Workers
from ottla.log.offset_checkpoint_file import START_OFFSETS_FILE, Offsets, encode, read
from ottla.runtime.partition import Partition
from ottla.runtime.segment_removal import mark_segments_deleted
from ottla.runtime.slice_scheduler import SliceScheduler

log = logging.getLogger("ottla.partitions")


FULL_CHECK_SECONDS = 1.0
"""How often the free space of a full directory is checked."""
FREE_BYTES_MIN = 1 << 20


class LogDirectory:
    """One of the node's `log.dirs` and its partitions. A failed directory has none until the node is restarted."""

    def __init__(
        self,
        directory_id: Uuid | None,
        path: str,
        *,
        is_clean: bool,
        holds_metadata: bool = False,
        failure: Exception | None = None,
    ) -> None:
        self.directory_id = directory_id
        """None if the directory failed before its id could be read."""
        self.path = path
        self.is_clean = is_clean
        self.holds_metadata = holds_metadata
        """Whether it contains the metadata log: if this directory fails, the node stops."""
        self.failure = failure
        """Why the directory is offline."""
        self.is_full = False
        self.partition_count = 0
        self.partitions: dict[Partition, None] = {}
        self.changes = 0
        self.saved_changes = 0
        self.write_lock = asyncio.Lock()

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def start_offsets(self) -> Offsets:
        """Return the log start offsets that are greater than 0."""
        return {
            (partition.topic, partition.index): partition.log.log_start_offset
            for partition in self.partitions
            if partition.log.log_start_offset > 0
        }


class LogDirectories:
    """All log directories of the node."""

    def __init__(
        self,
        disk: Disk,
        workers: Workers,
        scheduler: SliceScheduler,
        directories: Sequence[LogDirectory],
        on_offline: Callable[[LogDirectory], None] = lambda directory: None,
    ) -> None:
        self._disk = disk
        self._workers = workers
        self._scheduler = scheduler
        self._directories = directories
        self._on_offline = on_offline

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._directories)

    def online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.is_online]

    def of(self, path: str) -> LogDirectory:
        """Return the log directory that contains a path."""
        return max(
            (directory for directory in self._directories if path.startswith(directory.path.rstrip("/") + "/")),
            key=lambda directory: len(directory.path),
        )

    def on_failure(self, directory: LogDirectory, error: Exception) -> bool:
        """Handle an error of the directory's file system. Call from the event loop.

        Returns True if the directory is now offline, with all its partitions, until the node is restarted; False if it
        is only full, so that the operation can be retried.
        """
        if directory.failure is None:
            if is_disk_full(error):
                self._on_full(directory, error)
                return False
            directory.failure = error
            log.error(
                "log directory %s failed, %s offline: %s. "
                "Repair or mount it and restart the node, or remove it from log.dirs",
                directory.path,
                count_text(len(directory.partitions), "partition"),
                error,
            )
            self._on_offline(directory)
        return True

    def on_partition_failure(self, partition: Partition, error: Exception) -> bool:
        """Like `on_failure`, for the directory of a partition. True for a partition that was removed."""
        return partition.is_removed or self.on_failure(self.of(partition.log.directory), error)

    def _on_full(self, directory: LogDirectory, error: Exception) -> None:
        """Log it once, and again when space is available: a producer retries many times a second."""
        if not directory.is_full:
            directory.is_full = True
            log.error("log directory %s is full, rejecting writes until space is available: %s", directory.path, error)
            asyncio.get_running_loop().call_later(FULL_CHECK_SECONDS, self._check_space, directory)

    def _check_space(self, directory: LogDirectory) -> None:
        if directory.is_online:
            self._workers.run(partial(self._disk.space, directory.path)).add_done_callback(
                partial(self._on_space, directory)
            )

    def _on_space(self, directory: LogDirectory, space: "asyncio.Future[tuple[int, int]]") -> None:
        if space.cancelled():
            return
        error = space.exception()
        if isinstance(error, OSError):
            self.on_failure(directory, error)
        elif error is None and space.result()[1] >= FREE_BYTES_MIN:
            directory.is_full = False
            log.warning("log directory %s has space again", directory.path)
        else:
            asyncio.get_running_loop().call_later(FULL_CHECK_SECONDS, self._check_space, directory)

    async def space(self, directory: LogDirectory) -> tuple[int, int]:
        """Return the total and free bytes of the directory's file system."""
        return await self._workers.run(lambda: self._disk.space(directory.path))

    async def delete_before(self, partition: Partition, offset: int) -> int:
        """Delete records before an offset and return the new log start offset once it is on disk. Raises ApiError."""
        partition.delete_before(offset)
        directory = self.of(partition.log.directory)
        try:
            await self.save_start_offsets(directory)
            # Segments entirely before the log start offset are removed now.
            await mark_segments_deleted(partition, partition.log.detach_below_start(), self._workers, self._scheduler)
        except OSError as error:
            self.on_failure(directory, error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        return partition.log.log_start_offset

    def read_start_offsets(self) -> Offsets:
        """Read the log start offsets of all directories. A corrupt file is logged and ignored, as in Kafka."""
        found: Offsets = {}
        for directory in self.online():
            path = f"{directory.path}/{START_OFFSETS_FILE}"
            try:
                found |= read(self._disk, path)
            except ValueError as error:
                log.warning("ignoring corrupt checkpoint %s: %s", path, error)
            except OSError as error:
                self.on_failure(directory, error)
        return found

    def prune_start_offsets(self) -> None:
        """Remove entries of deleted topics, which would apply to new topics of the same name. Needs all logs open."""
        for directory in self.online():
            path = f"{directory.path}/{START_OFFSETS_FILE}"
            if self._disk.exists(path) and self._disk.read(path) != encode(directory.start_offsets()):
                self.write_start_offsets(directory)

    def write_start_offsets(self, directory: LogDirectory) -> None:
        """Write the file synchronously, unless a worker is writing it: that worker sees the change and writes again.

        The file of an offline directory is left unchanged: the directory has no partitions any more.
        """
        if directory.write_lock.locked() or not directory.is_online:
            return
        self._disk.write_atomically(f"{directory.path}/{START_OFFSETS_FILE}", encode(directory.start_offsets()))

    async def save_start_offsets(self, directory: LogDirectory) -> None:
        """Write the file in a worker. Callers that arrive during a write share the next one."""
        directory.changes += 1
        target = directory.changes
        async with directory.write_lock:
            if directory.saved_changes >= target:
                return
            written = b""
            while True:
                if directory.failure is not None:
                    raise directory.failure
                data = encode(directory.start_offsets())
                if data == written:
                    return
                changes, written = directory.changes, data
                await self._workers.run(
                    partial(self._disk.write_atomically, f"{directory.path}/{START_OFFSETS_FILE}", data)
                )
                directory.saved_changes = changes
