"""Opens the partitions of new topics. Their directories are made, and put on the disk, by a worker; then their logs are opened, a few
in each turn, so that nobody notices that somebody creates a thousand partitions."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ottla.base.ids import Uuid
from ottla.base.ports import Disk
from ottla.log.partition_log import create_partition_directories
from ottla.runtime.broker import Broker
from ottla.runtime.log_directories import LogDirectory
from ottla.runtime.slice_scheduler import SLICE_SECONDS

AssignDirectory = Callable[[Uuid, int], tuple[LogDirectory, str] | None]
"""The directory and the path at which a partition is to be made; None where it is not to be here, or no longer."""
OpenAt = Callable[[Uuid, int, LogDirectory], bool]
"""Opens what was made; False where nobody wants it any more."""
Placed = tuple[Uuid, int, LogDirectory, str]
Forget = Callable[[LogDirectory, Sequence[tuple[str, int]]], Awaitable[None]]
"""Nothing that files of the directory say of partitions with these names holds any more."""
OnOpenFailed = Callable[[Uuid, int, LogDirectory, OSError], None]
"""Hears of what the file system refused."""


class PartitionOpener:
    """One after another, in the order in which they were wanted: a topic may be deleted and made again under its name meanwhile."""

    def __init__(
        self,
        broker: Broker,
        disk: Disk,
        *,
        forget: Forget,
        place: AssignDirectory,
        open_at: OpenAt,
        on_opened: Callable[[], None],
        on_open_failed: OnOpenFailed,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._broker = broker
        self._disk = disk
        self._forget = forget
        self._place = place
        self._open_at = open_at
        self._on_opened = on_opened
        self._on_open_failed = on_open_failed
        self._on_failure = on_failure
        self._wanted: list[tuple[Uuid, int]] = []
        self._task: asyncio.Task[None] | None = None

    def request_open(self, topic_id: Uuid, index: int) -> None:
        self._wanted.append((topic_id, index))
        if self._task is None:
            self._task = self._broker.loop.create_task(self._run())

    async def wait_until_open(self) -> None:
        """Until all that is wanted now is open."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def close(self) -> None:
        """Begin no more."""
        self._wanted.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._wanted:
                wanted, self._wanted = self._wanted, []
                await self._open_all(wanted)
            self._on_opened()
        except Exception as error:
            self._on_failure(error)
        finally:
            self._task = None

    async def _open_all(self, wanted: list[tuple[Uuid, int]]) -> None:
        placed = [
            (topic_id, index, *place)
            for topic_id, index in wanted
            if (place := self._place(topic_id, index)) is not None
        ]
        for *_, path in placed:
            flushing = self._broker.flushes_in_flight.get(path)
            if flushing is not None:  # a worker still writes to a log of that name, which has been deleted
                await asyncio.wait([flushing])
        placed = await self._make(placed)
        clock = self._broker.clock
        turn_ends = clock.monotonic() + SLICE_SECONDS
        for topic_id, index, directory, path in placed:
            if not directory.is_online:
                self._broker.loop.call_soon(self.request_open, topic_id, index)
                continue
            try:
                is_wanted = self._open_at(topic_id, index, directory)
            except OSError as error:
                self._on_open_failed(topic_id, index, directory, error)
                continue
            if not is_wanted:
                await self._broker.workers.run(partial(self._disk.remove_tree, path))
            if clock.monotonic() >= turn_ends:
                await self._broker.scheduler.next_slice()
                turn_ends = clock.monotonic() + SLICE_SECONDS

    async def _make(self, placed: list[Placed]) -> list[Placed]:
        """What could be made: the directories stand for themselves."""
        made: list[Placed] = []
        for directory in dict.fromkeys(each[2] for each in placed):
            here = [each for each in placed if each[2] is directory]
            wanted = [(path, topic_id) for topic_id, _, _, path in here]
            names = [path.rpartition("/")[2].rpartition("-") for path, _ in wanted]
            try:
                await self._forget(directory, [(topic, int(index)) for topic, _, index in names])
                await self._broker.workers.run(partial(create_partition_directories, self._disk, wanted))
            except OSError as error:
                for topic_id, index, _, _ in here:
                    self._on_open_failed(topic_id, index, directory, error)
            else:
                made += here
        return made
