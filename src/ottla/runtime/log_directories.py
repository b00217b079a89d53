"""The node's `log.dirs`: which partitions lie where, where their logs begin, and how much room there is.

The file `log-start-offset-checkpoint` of a directory holds the beginnings that DeleteRecords has moved; the format is Kafka's. What it says
holds at the next start, whether or not the files of the records before it were removed by then.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ottla.base.errors import ApiError, ErrorCode, is_disk_full
from ottla.base.ids import Uuid
from ottla.base.ports import Disk, Workers
from ottla.log.offset_checkpoint_file import START_OFFSETS_FILE, Offsets, encode, read
from ottla.runtime.partition import Partition
from ottla.runtime.segment_removal import mark_segments_deleted

log = logging.getLogger("ottla.partitions")

FILE_NAME = START_OFFSETS_FILE
StartOffsets = Offsets

FULL_LOOK_SECONDS = 1.0
"""How often it is looked whether there is room again."""
ROOM_BYTES_MIN = 1 << 20


class LogDirectory:
    """One of the node's `log.dirs`, and the partitions that it holds. One that has failed holds none, until the node is started again."""

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
        """None where it has failed before that could be read."""
        self.path = path
        self.is_clean = is_clean
        self.holds_metadata = holds_metadata
        """The node cannot do without this one."""
        self.failure = failure
        """Why it is offline."""
        self.is_full = False
        self.partition_count = 0
        self.partitions: dict[Partition, None] = {}
        self.changes = 0
        self.saved_changes = 0
        self.saving = asyncio.Lock()

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def start_offsets(self) -> StartOffsets:
        """Of the partitions that do not begin with the first offset of all."""
        return {
            (partition.topic, partition.index): partition.log.log_start_offset
            for partition in self.partitions
            if partition.log.log_start_offset > 0
        }


class LogDirectories:
    """All of them."""

    def __init__(
        self,
        disk: Disk,
        workers: Workers,
        directories: Sequence[LogDirectory],
        on_offline: Callable[[LogDirectory], None] = lambda directory: None,
    ) -> None:
        self._disk = disk
        self._workers = workers
        self._directories = directories
        self._on_offline = on_offline

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._directories)

    def online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.is_online]

    def of(self, path: str) -> LogDirectory:
        """The one that a log or a file lies in."""
        return max(
            (directory for directory in self._directories if path.startswith(directory.path.rstrip("/") + "/")),
            key=lambda directory: len(directory.path),
        )

    def on_failure(self, directory: LogDirectory, error: Exception) -> bool:
        """A call to the file system of a directory has failed. True: it is offline from now on, with all that it holds, until the node is
        started again. False: it is full, so that the same may be tried later. Call it from the loop.
        """
        if directory.failure is None:
            if is_disk_full(error):
                self._on_full(directory, error)
                return False
            directory.failure = error
            log.error(
                "the log directory %s is offline, and with it %d partitions: %s. The others are served; repair or mount it and start "
                "the node again, or take it out of log.dirs",
                directory.path,
                len(directory.partitions),
                error,
            )
            self._on_offline(directory)
        return True

    def on_partition_failure(self, partition: Partition, error: Exception) -> bool:
        """The same, of the directory that a partition lies in."""
        return partition.is_removed or self.on_failure(self.of(partition.log.directory), error)

    def _on_full(self, directory: LogDirectory, error: Exception) -> None:
        """Said once, and once more when there is room again: a producer tries many times a second."""
        if not directory.is_full:
            directory.is_full = True
            log.error(
                "the log directory %s is full: writes to it are refused until there is room (%s)", directory.path, error
            )
            asyncio.get_running_loop().call_later(FULL_LOOK_SECONDS, self._look_for_room, directory)

    def _look_for_room(self, directory: LogDirectory) -> None:
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
        elif error is None and space.result()[1] >= ROOM_BYTES_MIN:
            directory.is_full = False
            log.warning("the log directory %s has room again", directory.path)
        else:
            asyncio.get_running_loop().call_later(FULL_LOOK_SECONDS, self._look_for_room, directory)

    async def space(self, directory: LogDirectory) -> tuple[int, int]:
        """The size of its file system, and what of it is free."""
        return await self._workers.run(lambda: self._disk.space(directory.path))

    async def delete_before(self, partition: Partition, offset: int) -> int:
        """Delete records; returns where the log begins, once that is on the disk. ApiError where it cannot begin there."""
        partition.delete_before(offset)
        directory = self.of(partition.log.directory)
        try:
            await self.save_start_offsets(directory)
            # Whole segments before the beginning leave the log now.
            await mark_segments_deleted(partition, partition.log.detach_below_start(), self._workers)
        except OSError as error:
            self.on_failure(directory, error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        return partition.log.log_start_offset

    def read_start_offsets(self) -> StartOffsets:
        """What the directories say. A file that cannot be read is named and not believed, as in Kafka."""
        found: StartOffsets = {}
        for directory in self.online():
            path = f"{directory.path}/{FILE_NAME}"
            try:
                found |= read(self._disk, path)
            except ValueError as error:
                log.warning("%s is not whole, and logs begin with their first segments: %s", path, error)
            except OSError as error:
                self.on_failure(directory, error)
        return found

    def forget_stale_start_offsets(self) -> None:
        """Once all logs are open: what is said of a topic that is gone must not be believed of the next one of its name."""
        for directory in self.online():
            path = f"{directory.path}/{FILE_NAME}"
            if self._disk.exists(path) and self._disk.read(path) != encode(directory.start_offsets()):
                self.write_start_offsets(directory)

    def write_start_offsets(self, directory: LogDirectory) -> None:
        """At once; but where a worker writes the file just now, it will see the change and write again.

        A directory that is offline holds no partitions any more, and its file keeps what it said of them.
        """
        if directory.saving.locked() or not directory.is_online:
            return
        self._disk.write_atomically(f"{directory.path}/{FILE_NAME}", encode(directory.start_offsets()))

    async def save_start_offsets(self, directory: LogDirectory) -> None:
        """Those who come while a worker writes share the next write."""
        directory.changes += 1
        wanted = directory.changes
        async with directory.saving:
            if directory.saved_changes >= wanted:
                return
            written = b""
            while True:
                if directory.failure is not None:
                    raise directory.failure
                data = encode(directory.start_offsets())
                if data == written:
                    return
                changes, written = directory.changes, data
                await self._workers.run(partial(self._disk.write_atomically, f"{directory.path}/{FILE_NAME}", data))
                directory.saved_changes = changes
