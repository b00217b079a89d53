"""Periodic maintenance of logs: `flush.ms`, checkpoints of offsets, and expiry of idle producers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from ottla.runtime.broker import Broker
from ottla.runtime.log_flusher import LogFlusher
from ottla.runtime.offset_checkpoints import OffsetCheckpoint, OffsetCheckpoints
from ottla.runtime.partition import Partition
from ottla.runtime.slice_scheduler import in_pieces

INTERVAL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class MaintenanceIntervals:
    """Intervals in milliseconds; the defaults are Kafka's."""

    flush_check_ms: int = (1 << 63) - 1
    recovery_points_ms: int = 60_000
    high_watermarks_ms: int = 5_000
    expiry_ms: int = 600_000


class LogMaintenance:
    """Maintenance task. As in Kafka, a segment is fsynced when it is closed; until then it is in the page cache.

    Logs are checked every second, or more often if `log.flush.scheduler.interval.ms` is shorter, so `flush.ms` works
    without setting that.
    """

    def __init__(
        self,
        broker: Broker,
        flusher: LogFlusher,
        checkpoints: OffsetCheckpoints,
        on_failure: Callable[[BaseException], None],
        intervals: MaintenanceIntervals,
    ) -> None:
        self._broker = broker
        self._flusher = flusher
        self._checkpoints = checkpoints
        self._on_failure = on_failure
        self._interval_seconds = max(min(INTERVAL_SECONDS, intervals.flush_check_ms / 1000), 0.001)
        self._expiry = self._due_every(intervals.expiry_ms)
        self._recovery_points = self._due_every(intervals.recovery_points_ms)
        self._high_watermarks = self._due_every(intervals.high_watermarks_ms)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._broker.loop.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and wait for flushes in progress."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._flusher.stop()

    def abort(self) -> None:
        """Stop at once, as in a crash."""
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()

    async def write_checkpoints(self) -> None:
        """Write all checkpoints. Called at a clean shutdown, once all logs are closed."""
        await self._write(self._checkpoints.recovery_points)
        await self._write(self._checkpoints.high_watermarks)

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._stopping.wait(), self._interval_seconds)
            except TimeoutError:
                try:
                    await self._run_once()
                except Exception as error:
                    self._on_failure(error)
                    return

    async def _run_once(self) -> None:
        is_expiry_due, now_ms = next(self._expiry), self._broker.clock.now_ms()
        async for partition in self._partitions():
            self._maybe_flush(partition, now_ms)
            if is_expiry_due:
                partition.log.producers.expire(now_ms, partition.log.config.producer_expiration_ms)
        if next(self._recovery_points):
            await self._write(self._checkpoints.recovery_points)
        if next(self._high_watermarks):
            await self._write(self._checkpoints.high_watermarks)

    def _maybe_flush(self, partition: Partition, now_ms: int) -> None:
        log = partition.log
        if log.recovery_point < log.log_end_offset and now_ms - log.flushed_ms >= log.config.flush_ms:
            self._flusher.request_flush(partition)
        elif log.has_unflushed:
            self._flusher.request_flush(partition, to_end=False)

    async def _write(self, checkpoint: OffsetCheckpoint) -> None:
        directories = self._broker.log_directories
        for directory in directories.online():
            try:
                await checkpoint.write(directory)
            except OSError as error:
                directories.on_failure(directory, error)

    async def _partitions(self) -> AsyncIterator[Partition]:
        """Yield this node's partitions, some per time slice."""
        for some in in_pieces(self._broker.all_partitions()):
            await self._broker.scheduler.yield_if_due()
            for partition in some:
                if self._stopping.is_set():
                    return
                if not partition.is_removed:
                    yield partition

    def _due_every(self, interval_ms: int) -> Iterator[bool]:
        """Yield whether the interval has passed, restarting it each time it has."""
        due = self._broker.loop.time() + interval_ms / 1000
        while True:
            now = self._broker.loop.time()
            is_due = now >= due
            if is_due:
                due = now + interval_ms / 1000
            yield is_due
