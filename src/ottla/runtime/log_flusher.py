"""Fsync logs in workers: a segment when it is closed, the active one as `flush.messages` and `flush.ms` require.

Flushes are grouped: appends during a flush share the next one. Fifty producers that need every record fsynced cost as
many fsyncs as one.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from ottla.log.flush_plan import FlushPlan
from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition

JOBS_MAX = 3
"""Workers that flush at a time. The others are left for client requests."""
RETRY_SECONDS = 1.0
"""Delay before the flush of a log on a full disk is retried."""

PlannedFlushes = list[tuple[Partition, FlushPlan]]


class LogFlusher:
    """One flush per log at a time. A failed fsync takes the directory offline: a retry cannot restore lost pages."""

    def __init__(self, broker: Broker, on_failure: Callable[[BaseException], None]) -> None:
        self._broker = broker
        self._on_failure = on_failure
        self._due: dict[Partition, bool] = {}
        """Partitions to flush; True includes the active segment."""
        self._in_flight: dict[Partition, None] = {}
        self._jobs: dict[asyncio.Future[list[OSError | None]], None] = {}
        self._is_scheduled = False
        self._is_stopped = False

    def register(self, partition: Partition) -> None:
        """Let the partition request its flushes."""
        partition.on_flush_due = self.request_flush
        partition.on_flushed()

    def request_flush(self, partition: Partition, *, to_end: bool = True) -> None:
        """Flush at the end of this event-loop iteration, so that other appends of the iteration share the flush."""
        self._due[partition] = to_end or self._due.get(partition, False)
        if not self._is_scheduled and len(self._jobs) < JOBS_MAX and not self._is_stopped:
            self._is_scheduled = True
            self._broker.loop.call_soon(self._start_jobs)

    async def flush(self, partition: Partition, *, to_end: bool) -> None:
        """Return once all records now in the log are fsynced, or the partition is removed."""
        self.request_flush(partition, to_end=to_end)
        while not partition.is_removed and (partition in self._due or partition in self._in_flight):
            await asyncio.sleep(0) if not self._jobs else await asyncio.wait(
                list(self._jobs), return_when=asyncio.FIRST_COMPLETED
            )

    async def stop(self) -> None:
        """Start no more flushes and wait for those in progress, because the logs are about to be closed."""
        self._is_stopped = True
        while self._jobs:
            await asyncio.wait(list(self._jobs))

    def _start_jobs(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        planned: PlannedFlushes = []
        for partition in [each for each in self._due if each not in self._in_flight]:
            to_end = self._due.pop(partition)
            plan = None if partition.is_removed else partition.log.plan_flush(to_end=to_end)
            if plan is not None:
                planned.append((partition, plan))
            elif not partition.is_removed:
                partition.on_flushed()
        shares = min(JOBS_MAX - len(self._jobs), len(planned))
        for share in range(shares):
            self._start(planned[share::shares])

    def _start(self, planned: PlannedFlushes) -> None:
        job = self._broker.workers.run(partial(_run, [plan for _, plan in planned]))
        self._jobs[job] = None
        for partition, _ in planned:
            self._in_flight[partition] = None
            self._broker.flushes_in_flight[partition.log.directory] = job
        job.add_done_callback(partial(self._on_done, planned))

    def _on_done(self, planned: PlannedFlushes, job: "asyncio.Future[list[OSError | None]]") -> None:
        del self._jobs[job]
        for partition, _ in planned:
            del self._in_flight[partition]
            self._broker.flushes_in_flight.pop(partition.log.directory, None)
        if job.cancelled():
            return
        error = job.exception()
        if error is not None:
            self._on_failure(error)
            return
        for (partition, plan), failure in zip(planned, job.result(), strict=True):
            if partition.is_removed:
                continue  # its directory was deleted and renamed in the meantime
            if failure is None:
                partition.log.on_flushed(plan)
                if plan.active is not None:
                    partition.log.flushed_ms = self._broker.clock.now_ms()
                partition.on_flushed()
            elif not self._broker.log_directories.on_partition_failure(partition, failure):
                partition.log.put_back_unflushed(plan.items)
                self._broker.loop.call_later(RETRY_SECONDS, self.request_flush, partition)
        if self._due and not self._is_scheduled:
            self._start_jobs()


def _run(plans: list[FlushPlan]) -> list[OSError | None]:
    """Run the plans in a worker; a failure of one log does not affect the others."""
    results: list[OSError | None] = []
    for plan in plans:
        try:
            plan.run()
        except OSError as error:
            results.append(error)
        else:
            results.append(None)
    return results
