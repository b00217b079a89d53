"""Open the partitions of new topics.

A worker creates and fsyncs their directories; the event loop then opens their logs in time slices, so that creating a
thousand partitions does not delay other clients.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ottla.base.ids import Uuid
from ottla.base.ports import Disk
from ottla.log.partition_directory import create_partition_directories
from ottla.runtime.broker import Broker
from ottla.runtime.log_directories import LogDirectory

AssignDirectory = Callable[[Uuid, int], tuple[LogDirectory, str] | None]
"""Returns the directory and path for a new partition, or None if it is not (or no longer) assigned to this node."""
OpenIn = Callable[[Uuid, int, LogDirectory], bool]
"""Opens a partition whose directory was created; False if it is not assigned to this node any more."""
NewPartition = tuple[Uuid, int, LogDirectory, str]
"""Topic id, index, log directory and path."""
RemoveCheckpoints = Callable[[LogDirectory, Sequence[tuple[str, int]]], Awaitable[None]]
"""Removes the checkpoints of earlier partitions with these names from a directory."""
OnOpenFailed = Callable[[Uuid, int, LogDirectory, OSError], None]
"""Called with an error of the file system."""


class PartitionOpener:
    """Opener of partitions in the order of the requests: a topic may be deleted and recreated in between."""

    def __init__(
        self,
        broker: Broker,
        disk: Disk,
        *,
        remove_checkpoints: RemoveCheckpoints,
        assign_directory: AssignDirectory,
        open_in: OpenIn,
        on_opened: Callable[[], None],
        on_open_failed: OnOpenFailed,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._broker = broker
        self._disk = disk
        self._remove_checkpoints = remove_checkpoints
        self._assign_directory = assign_directory
        self._open_in = open_in
        self._on_opened = on_opened
        self._on_open_failed = on_open_failed
        self._on_failure = on_failure
        self._requested: list[tuple[Uuid, int]] = []
        self._task: asyncio.Task[None] | None = None

    def request_open(self, topic_id: Uuid, index: int) -> None:
        self._requested.append((topic_id, index))
        if self._task is None:
            self._task = self._broker.loop.create_task(self._run())

    async def wait_until_open(self) -> None:
        """Return once all partitions requested so far are open."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def close(self) -> None:
        """Cancel all requests."""
        self._requested.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._requested:
                requested, self._requested = self._requested, []
                await self._open_all(requested)
            self._on_opened()
        except Exception as error:
            self._on_failure(error)
        finally:
            self._task = None

    async def _open_all(self, requested: list[tuple[Uuid, int]]) -> None:
        partitions = [
            (topic_id, index, *location)
            for topic_id, index in requested
            if (location := self._assign_directory(topic_id, index)) is not None
        ]
        for *_, path in partitions:
            flush = self._broker.flushes_in_flight.get(path)
            if flush is not None:  # a worker is still writing to a deleted log of the same name
                await asyncio.wait([flush])
        partitions = await self._create_directories(partitions)
        self._broker.scheduler.begin_slice()
        for topic_id, index, directory, path in partitions:
            if not directory.is_online:
                self._broker.loop.call_soon(self.request_open, topic_id, index)
                continue
            try:
                is_assigned = self._open_in(topic_id, index, directory)
            except OSError as error:
                self._on_open_failed(topic_id, index, directory, error)
                continue
            if not is_assigned:
                await self._broker.workers.run(partial(self._disk.remove_tree, path))
            await self._broker.scheduler.yield_if_due()

    async def _create_directories(self, partitions: list[NewPartition]) -> list[NewPartition]:
        """Return the partitions whose directories were created. A failing log directory does not affect the others."""
        created: list[NewPartition] = []
        for directory in dict.fromkeys(each[2] for each in partitions):
            here = [each for each in partitions if each[2] is directory]
            paths = [(path, topic_id) for topic_id, _, _, path in here]
            names = [path.rpartition("/")[2].rpartition("-") for path, _ in paths]
            try:
                await self._remove_checkpoints(directory, [(topic, int(index)) for topic, _, index in names])
                await self._broker.workers.run(partial(create_partition_directories, self._disk, paths))
            except OSError as error:
                for topic_id, index, _, _ in here:
                    self._on_open_failed(topic_id, index, directory, error)
            else:
                created += here
        return created
