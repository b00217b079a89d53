"""Opens the logs that a node finds when it starts, and closes them when it stops: several at a time, off the loop.

After a clean stop a log is opened in a tenth of a millisecond. After a crash some of it is read through, which takes as long as it takes:
how far it has come is said from time to time, and a node that is to stop need not wait for the end of it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from ottla.base.ports import Workers
from ottla.log.log_loader import Progress, RecoveryInterrupted
from ottla.log.partition_log import PartitionLog

OPEN_BATCH_SIZE = 50
"""A worker opens so many of a clean directory before it comes back: to hand work over and back costs as much as to open one."""
SAY_SECONDS = 2.0
"""Between two lines in the log."""
TELL_SECONDS = 0.2
"""Between two of what somebody sees moving."""

__all__ = ["RecoveryProgress", "LogRecovery", "RecoveryInterrupted", "Work", "run_all"]

log = logging.getLogger("ottla.recovery")

T = TypeVar("T")


class RecoveryProgress(NamedTuple):
    """How far a node is with its logs."""

    logs: int
    logs_total: int
    read_bytes: int


class Work(NamedTuple, Generic[T]):
    """Something to do for one log, in a worker. `group` is the directory that it lies in."""

    group: str
    is_quick: bool
    run: Callable[[], T]


class LogRecovery:
    """The logs of a node that starts. `is_stopping` is asked in workers, too."""

    def __init__(
        self,
        workers: Workers,
        *,
        threads_per_directory: int,
        on_progress: Callable[[RecoveryProgress], None] | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._workers = workers
        self._threads = threads_per_directory
        self._on_progress = on_progress
        self._is_stopping = is_stopping
        self._progress: list[Progress] = []
        self._done = 0
        self._total = 0

    def progress(self) -> Progress:
        """For one log, whose worker counts in it."""
        progress = Progress(self._is_stopping)
        self._progress.append(progress)
        return progress

    async def open_all(self, wanted: Sequence[Work[PartitionLog]]) -> list[PartitionLog | OSError]:
        """Of each what was opened, or why it could not be, in the order in which they were wanted.

        RecoveryInterrupted where the node is to stop meanwhile: no worker is busy with a log any more then.
        """
        self._total = len(wanted)
        unclean = sum(not work.is_quick for work in wanted)
        if not unclean:
            return await self._run_all(wanted)
        log.warning(
            "the last stop was not a clean one: %d logs are checked from where they are known to be on the disk",
            unclean,
        )
        saying = asyncio.ensure_future(self._say())
        try:
            opened = await self._run_all(wanted)
        finally:
            saying.cancel()
        for one in opened:
            if isinstance(one, PartitionLog) and one.truncated_bytes:
                log.warning(
                    "%s ended in %d bytes that were not whole batches: it goes on at offset %d",
                    one.directory,
                    one.truncated_bytes,
                    one.log_end_offset,
                )
        log.warning("%d logs are checked, %.1f MB were read through", unclean, self._read_bytes() / 1e6)
        return opened

    async def _run_all(self, wanted: Sequence[Work[T]]) -> list[T | OSError]:
        stoppable = [
            work if work.is_quick else work._replace(run=partial(self._unless_stopping, work.run)) for work in wanted
        ]
        results = await run_all(self._workers, stoppable, threads_per_group=self._threads, on_done=self._count)
        if any(isinstance(result, RecoveryInterrupted) for result in results):
            for opened in results:
                if isinstance(opened, PartitionLog):
                    opened.release_files()
            raise RecoveryInterrupted("the node was stopped while its logs were checked")
        self._tell()
        return results

    def _unless_stopping(self, run: Callable[[], T]) -> T:
        if self._is_stopping():
            raise RecoveryInterrupted("the recovery was stopped before the log's turn came")
        return run()

    def _count(self, count: int) -> None:
        self._done += count
        self._tell()

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(RecoveryProgress(self._done, self._total, self._read_bytes()))

    def _read_bytes(self) -> int:
        return sum(progress.done_bytes for progress in self._progress)

    async def _say(self) -> None:
        while True:
            await asyncio.sleep(SAY_SECONDS if self._on_progress is None else TELL_SECONDS)
            self._tell()
            if self._on_progress is None:
                log.warning(
                    "%d of %d logs are open, %.1f MB were read through",
                    self._done,
                    self._total,
                    self._read_bytes() / 1e6,
                )


async def run_all(
    workers: Workers,
    wanted: Sequence[Work[T]],
    *,
    threads_per_group: int,
    on_done: Callable[[int], None] = lambda count: None,
) -> list[T | OSError]:
    """Do all of it, so many of a group at a time; what the file system refused is a result too."""
    results: list[T | OSError | None] = [None] * len(wanted)
    waiting: dict[str, list[int]] = {}
    for at in reversed(range(len(wanted))):
        waiting.setdefault(wanted[at].group, []).append(at)

    async def follow(indexes: list[int]) -> None:
        while indexes:
            taken = [indexes.pop()]
            while (
                indexes and wanted[taken[0]].is_quick and wanted[indexes[-1]].is_quick and len(taken) < OPEN_BATCH_SIZE
            ):
                taken.append(indexes.pop())
            done = await workers.run(lambda taken=taken: [_attempt(wanted[at].run) for at in taken])  # type: ignore[misc]
            for at, result in zip(taken, done, strict=True):
                results[at] = result
            on_done(len(taken))

    await asyncio.gather(*[follow(indexes) for indexes in waiting.values() for _ in range(threads_per_group)])
    return results  # type: ignore[return-value]


def _attempt(run: Callable[[], T]) -> T | OSError:
    try:
        return run()
    except OSError as error:
        return error
