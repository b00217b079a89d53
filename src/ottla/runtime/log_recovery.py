"""Open the logs of a starting node, and close those of a stopping one, in worker threads.

After a clean shutdown a log is opened in 0.1 ms. After a crash it is read from its recovery point, which may take long:
progress is logged, and a shutdown interrupts the recovery.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from ottla.base.plural import count_text
from ottla.base.ports import Workers
from ottla.log.log_loader import RecoveryInterrupted, ScanProgress
from ottla.log.partition_log import PartitionLog

OPEN_BATCH_SIZE = 50
"""Logs of a clean directory that a worker opens at a time: a handover to a worker costs as much as opening a log."""
LOG_INTERVAL_SECONDS = 2.0
"""Between two progress messages in the log."""
PROGRESS_INTERVAL_SECONDS = 0.2
"""Between two calls of `on_progress`, which may drive a progress bar."""

__all__ = ["RecoveryProgress", "LogRecovery", "RecoveryInterrupted", "Work", "run_all"]

log = logging.getLogger("ottla.recovery")

T = TypeVar("T")


class RecoveryProgress(NamedTuple):
    """Logs opened so far, and bytes read to recover them."""

    logs: int
    logs_total: int
    read_bytes: int


class Work(NamedTuple, Generic[T]):
    """A function to run in a worker, for one log in `directory`."""

    directory: str
    is_quick: bool
    run: Callable[[], T]


class LogRecovery:
    """Opener of a starting node's logs. `is_stopping` is also called in worker threads."""

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
        self._progress: list[ScanProgress] = []
        self._done = 0
        self._total = 0

    def progress(self) -> ScanProgress:
        """Return a counter for one log, which its worker updates."""
        progress = ScanProgress(self._is_stopping)
        self._progress.append(progress)
        return progress

    async def open_all(self, works: Sequence[Work[PartitionLog]]) -> list[PartitionLog | OSError]:
        """Return the opened log, or the error, of each in order.

        Raises RecoveryInterrupted if the node is stopped meanwhile; no worker is using a log any more then.
        """
        self._total = len(works)
        unclean = sum(not work.is_quick for work in works)
        if not unclean:
            return await self._run_all(works)
        log.warning("unclean shutdown detected; recovering %s from the recovery points", count_text(unclean, "log"))
        reporting = asyncio.ensure_future(self._report_progress())
        try:
            opened = await self._run_all(works)
        finally:
            reporting.cancel()
        for one in opened:
            if isinstance(one, PartitionLog) and one.truncated_bytes:
                log.warning(
                    "truncated %d bytes of incomplete batches from %s; log end offset is now %d",
                    one.truncated_bytes,
                    one.directory,
                    one.log_end_offset,
                )
        log.warning("recovered %s, read %.1f MB", count_text(unclean, "log"), self._read_bytes() / 1e6)
        return opened

    async def _run_all(self, works: Sequence[Work[T]]) -> list[T | OSError]:
        interruptible = [
            work if work.is_quick else work._replace(run=partial(self._unless_stopping, work.run)) for work in works
        ]
        results = await run_all(
            self._workers, interruptible, threads_per_directory=self._threads, on_done=self._on_done
        )
        if any(isinstance(result, RecoveryInterrupted) for result in results):
            for opened in results:
                if isinstance(opened, PartitionLog):
                    opened.release_files()
            raise RecoveryInterrupted("shutdown during log recovery")
        self._notify()
        return results

    def _unless_stopping(self, run: Callable[[], T]) -> T:
        if self._is_stopping():
            raise RecoveryInterrupted("shutdown before recovery of the log")
        return run()

    def _on_done(self, count: int) -> None:
        self._done += count
        self._notify()

    def _notify(self) -> None:
        if self._on_progress is not None:
            self._on_progress(RecoveryProgress(self._done, self._total, self._read_bytes()))

    def _read_bytes(self) -> int:
        return sum(progress.done_bytes for progress in self._progress)

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(LOG_INTERVAL_SECONDS if self._on_progress is None else PROGRESS_INTERVAL_SECONDS)
            self._notify()
            if self._on_progress is None:
                log.warning("opened %d of %d logs, read %.1f MB", self._done, self._total, self._read_bytes() / 1e6)


async def run_all(
    workers: Workers,
    works: Sequence[Work[T]],
    *,
    threads_per_directory: int,
    on_done: Callable[[int], None] = lambda count: None,
) -> list[T | OSError]:
    """Run all works, up to `threads_per_directory` at a time per directory. An OSError is returned as a result."""
    results: list[T | OSError | None] = [None] * len(works)
    waiting: dict[str, list[int]] = {}
    for index in reversed(range(len(works))):
        waiting.setdefault(works[index].directory, []).append(index)

    async def run_batches(indexes: list[int]) -> None:
        while indexes:
            batch = [indexes.pop()]
            while indexes and works[batch[0]].is_quick and works[indexes[-1]].is_quick and len(batch) < OPEN_BATCH_SIZE:
                batch.append(indexes.pop())
            done = await workers.run(partial(_run_batch, [works[index] for index in batch]))
            for index, result in zip(batch, done, strict=True):
                results[index] = result
            on_done(len(batch))

    await asyncio.gather(*[run_batches(indexes) for indexes in waiting.values() for _ in range(threads_per_directory)])
    return results  # type: ignore[return-value]


def _run_batch(works: Sequence[Work[T]]) -> list[T | OSError]:
    return [_attempt(work.run) for work in works]


def _attempt(run: Callable[[], T]) -> T | OSError:
    try:
        return run()
    except OSError as error:
        return error
