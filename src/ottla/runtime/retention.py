"""Delete segments by `retention.ms` and `retention.bytes`. The LogCleaner does so for compacted logs."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from ottla.base.plural import count_text
from ottla.log.retention import delete_old
from ottla.log.segment import LogSegment
from ottla.runtime.broker import Broker
from ottla.runtime.log_directories import LogDirectory
from ottla.runtime.partition import Partition
from ottla.runtime.segment_removal import mark_segments_deleted
from ottla.runtime.slice_scheduler import in_pieces

log = logging.getLogger("ottla.retention")


class LogRetention:
    """Periodic retention check. The first is some time after startup, as in Kafka."""

    def __init__(
        self, broker: Broker, on_failure: Callable[[BaseException], None], *, initial_delay_ms: int, interval_ms: int
    ) -> None:
        self._broker = broker
        self._on_failure = on_failure
        self._initial_delay_seconds = initial_delay_ms / 1000
        self._interval_seconds = interval_ms / 1000
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._broker.loop.create_task(self._run())

    async def stop(self) -> None:
        """Stop. Remaining files are removed at the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def abort(self) -> None:
        """Stop at once, as in a crash."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        delay = self._initial_delay_seconds
        while True:
            await asyncio.sleep(delay)
            delay = self._interval_seconds
            try:
                await self.run_once()
            except Exception as error:
                self._on_failure(error)
                return

    async def run_once(self) -> None:
        """Check all logs that are not compacted."""
        partitions = self._broker.all_partitions()
        for batch in in_pieces(partitions):
            await delete_old_segments(
                self._broker, [partition for partition in batch if not partition.log.config.compacted]
            )


async def delete_old_segments(broker: Broker, partitions: Sequence[Partition]) -> None:
    """Delete segments past their retention. A directory that fails goes offline.

    The new log start offset is fsynced before files are removed, so that it cannot move back after a power failure.
    """
    removed: dict[LogDirectory, list[tuple[Partition, list[LogSegment]]]] = {}
    directories = broker.log_directories
    for partition in partitions:
        await broker.scheduler.yield_if_due()
        if partition.is_removed:
            continue
        try:
            segments = delete_old(partition.log, high_watermark=partition.high_watermark, now_ms=broker.clock.now_ms())
        except OSError as error:
            directories.on_partition_failure(partition, error)
            continue
        if segments:
            log.info(
                "deleted %s of %s-%d; log start offset is now %d",
                count_text(len(segments), "segment"),
                partition.topic,
                partition.index,
                partition.log.log_start_offset,
            )
            removed.setdefault(directories.of(partition.log.directory), []).append((partition, segments))
    for directory, changed in removed.items():
        try:
            await directories.save_start_offsets(directory)
            for partition, segments in changed:
                await mark_segments_deleted(partition, segments, broker.workers, broker.scheduler)
        except OSError as error:
            directories.on_failure(directory, error)
