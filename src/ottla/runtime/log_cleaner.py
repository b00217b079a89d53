"""Schedule log compaction: choose the log with the highest dirty ratio, clean it in a child process, swap its segments.

`cleaner-offset-checkpoint` (Kafka's format) contains the offset up to which each log is clean. A log that cannot be
cleaned is logged and excluded until restart; the others are cleaned.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from ottla.base.errors import is_disk_full
from ottla.base.ports import Disk, Processes, ProcessFailed, Rng
from ottla.log import offset_checkpoint_file
from ottla.log.compaction_plan import (
    Cleaned,
    CleaningFailed,
    CompactionPlan,
    CompactionRequest,
    SegmentGroupCleaned,
    SegmentsMissing,
    decode_report,
    plan_compaction,
)
from ottla.log.compaction_segments import SegmentSwap, remove_unfinished
from ottla.log.offset_checkpoint_file import CLEAN_OFFSETS_FILE
from ottla.log.partition_log import PartitionLog
from ottla.metadata.configs import broker_value
from ottla.runtime.broker import Broker
from ottla.runtime.log_directories import LogDirectory
from ottla.runtime.partition import Partition
from ottla.runtime.retention import delete_old_segments
from ottla.runtime.segment_removal import remove_later

WORK = "ottla.log.compaction:serve"

log = logging.getLogger("ottla.cleaner")


class CleanerMetrics:
    """Counters for the metrics endpoint."""

    def __init__(self) -> None:
        self.runs = 0
        self.read_bytes = 0
        self.written_bytes = 0


class CleaningAborted(Exception):
    """The log cannot be cleaned now, usually because its segments changed; the cleaner retries later."""


class LogCleaner:
    """Cleaner of `log.cleaner.threads` logs at a time, each in its own child process."""

    def __init__(
        self, broker: Broker, disk: Disk, processes: Processes, rng: Rng, on_failure: Callable[[BaseException], None]
    ) -> None:
        self._broker = broker
        self._disk = disk
        self._processes = processes
        self._rng = rng
        self._on_failure = on_failure
        self._clean_offsets: dict[Partition, int] = {}
        self._cleaning: dict[Partition, asyncio.Task[bool]] = {}
        self._swapping: dict[Partition, asyncio.Task[None]] = {}
        self.uncleanable: dict[Partition, str] = {}
        """Partitions excluded until restart, with the reasons."""
        self.metrics = CleanerMetrics()
        self._task: asyncio.Task[None] | None = None
        self._checkpoint_lock = asyncio.Lock()

    def start(self) -> None:
        """Start cleaning. Call once all logs are open."""
        for directory in self._broker.log_directories.online():
            self._read_checkpoint(directory)
        self._task = self._broker.loop.create_task(self._run())

    async def stop(self) -> None:
        """Cancel runs in progress, but complete swaps. Unfinished files are removed when the log is next opened."""
        tasks: list[asyncio.Task[Any]] = [*self._cleaning.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        tasks += self._swapping.values()
        if tasks:
            await asyncio.wait(tasks)

    def abort(self) -> None:
        """Stop at once, as in a crash."""
        for task in (
            *self._cleaning.values(),
            *self._swapping.values(),
            *([self._task] if self._task is not None else []),
        ):
            task.cancel()

    @property
    def uncleanable_count(self) -> int:
        return sum(not partition.is_removed for partition in self.uncleanable)

    def max_dirty_ratio(self) -> float:
        """Return the highest dirty ratio of the compacted logs."""
        return max((self._plan(partition).dirty_ratio for partition in self._compacted_partitions()), default=0.0)

    async def _run(self) -> None:
        try:
            while True:
                is_any_cleaned = await self.run_once()
                if not is_any_cleaned:
                    await asyncio.sleep(self._integer("log.cleaner.backoff.ms") / 1000)
        except Exception as error:
            self._on_failure(error)

    async def run_once(self) -> bool:
        """Clean the dirtiest logs, then delete old segments of compacted logs. Return whether a log was cleaned."""
        await self._prune_removed_partitions()
        for partition in await self._filthiest():
            if len(self._cleaning) >= self._integer("log.cleaner.threads"):
                break
            self._cleaning[partition] = self._broker.loop.create_task(self._clean(partition))
        is_any_cleaned = False
        if self._cleaning:
            done, _ = await asyncio.wait(self._cleaning.values(), return_when=asyncio.FIRST_COMPLETED)
            self._cleaning = {partition: task for partition, task in self._cleaning.items() if task not in done}
            is_any_cleaned = any(task.result() for task in done)
        for partition in self._compacted_partitions():
            if partition not in self._cleaning:
                await delete_old_segments(self._broker, [partition])
        return is_any_cleaned

    def _compacted_partitions(self) -> list[Partition]:
        return [
            partition
            for partition in self._broker.all_partitions()
            if partition.log.config.compacted and not partition.is_removed
        ]

    def _plan(self, partition: Partition) -> CompactionPlan:
        return plan_compaction(
            partition.log,
            clean_to=self._clean_offsets.get(partition),
            high_watermark=partition.high_watermark,
            now_ms=self._broker.clock.now_ms(),
        )

    async def _filthiest(self) -> list[Partition]:
        """Return the partitions that are due for cleaning, the highest dirty ratio first."""
        found = []
        for partition in self._compacted_partitions():
            await self._broker.scheduler.yield_if_due()
            if partition in self._cleaning or partition in self.uncleanable or partition.is_removed:
                continue
            try:
                plan = self._plan(partition)
            except OSError as error:
                self._broker.log_directories.on_partition_failure(partition, error)
                continue
            if plan.dirty_bytes > 0 and (
                plan.is_overdue or plan.dirty_ratio > partition.log.config.min_cleanable_dirty_ratio
            ):
                found.append((plan.dirty_ratio, partition))
        found.sort(key=lambda entry: entry[0], reverse=True)
        return [partition for _, partition in found]

    # One log

    async def _clean(self, partition: Partition) -> bool:
        """Clean one log and return whether it was cleaned."""
        name = f"{partition.topic}-{partition.index}"
        try:
            cleaned = await self._clean_once(partition)
        except CleaningAborted as reason:
            log.info("cleaning of %s aborted: %s", name, reason)
        except ProcessFailed as error:
            self._on_uncleanable(partition, str(error))
        except OSError as error:
            if partition.is_removed:
                return False
            if is_disk_full(error):
                log.warning("could not clean %s: its disk is full", name)
            self._broker.log_directories.on_partition_failure(partition, error)
        except Exception as error:
            self._on_uncleanable(partition, f"{type(error).__name__}: {error}")
        else:
            self.metrics.runs += 1
            log.info(
                "cleaned %s up to offset %d: read %d bytes, wrote %d bytes, %d keys",
                name,
                cleaned.end_offset,
                cleaned.read_bytes,
                cleaned.written_bytes,
                cleaned.keys,
            )
            return True
        return False

    async def _clean_once(self, partition: Partition) -> Cleaned:
        workers, partition_log = self._broker.workers, partition.log
        await workers.run(partial(remove_unfinished, self._disk, partition_log.directory))
        plan = self._plan(partition)
        if partition.is_removed or not plan.segments:
            raise CleaningAborted("nothing left to clean")
        reports: asyncio.Queue[bytes] = asyncio.Queue()
        work = asyncio.ensure_future(
            self._processes.run(WORK, self._request(partition, plan).encode(), reports.put_nowait)
        )
        try:
            cleaned = await self._swap_reported_groups(partition, partition_log, work, reports)
        finally:
            work.cancel()
        if cleaned.end_offset > plan.first_dirty_offset:
            self._clean_offsets[partition] = cleaned.end_offset
            await self._write_checkpoint(self._broker.log_directories.of(partition_log.directory))
        else:
            raise CleaningAborted("a transaction is open")
        self.metrics.read_bytes += cleaned.read_bytes
        self.metrics.written_bytes += cleaned.written_bytes
        return cleaned

    async def _swap_reported_groups(
        self,
        partition: Partition,
        partition_log: PartitionLog,
        work: "asyncio.Future[None]",
        reports: "asyncio.Queue[bytes]",
    ) -> Cleaned:
        """Swap each group of segments when the child process reports it, while the process cleans the next one."""
        cleaned: Cleaned | None = None
        while cleaned is None:
            next_report = asyncio.ensure_future(reports.get())
            try:
                await asyncio.wait((next_report, work), return_when=asyncio.FIRST_COMPLETED)
                if not next_report.done():
                    if not reports.empty():
                        continue
                    work.result()  # raises the error of the child process
                    raise ProcessFailed("the process ended without its last report")
                report = decode_report(next_report.result())
            finally:
                next_report.cancel()
            if _has_other_log(partition, partition_log):
                raise CleaningAborted("the partition was removed or its log replaced")
            match report:
                case SegmentGroupCleaned():
                    # A swap in progress is completed even if the node stops.
                    self._swapping[partition] = self._broker.loop.create_task(
                        self._swap(partition, partition_log, report)
                    )
                    await asyncio.shield(self._swapping[partition])
                    del self._swapping[partition]
                case Cleaned():
                    cleaned = report
                case CleaningFailed(reason):
                    raise ProcessFailed(reason)
                case SegmentsMissing(reason):
                    raise CleaningAborted(reason)
        return cleaned

    async def _swap(self, partition: Partition, partition_log: PartitionLog, report: SegmentGroupCleaned) -> None:
        """Replace old segments by a cleaned one. `compaction_segments` explains the order of the steps."""
        workers, directory = self._broker.workers, partition_log.directory
        swap = SegmentSwap(partition_log, report.bases, report.size, now_ms=self._broker.clock.now_ms())
        if not swap.begin():
            raise CleaningAborted("segments were deleted")
        await workers.run(partial(self._disk.fsync_directory, directory))
        if _has_other_log(partition, partition_log) or not swap.replace():
            raise CleaningAborted("segments were deleted")
        for segment in swap.old:
            swap.mark_deleted([segment])
            await self._broker.scheduler.yield_if_due()
            if _has_other_log(partition, partition_log):
                raise CleaningAborted("the partition was removed or its log replaced")
        swap.finish()
        await workers.run(partial(self._disk.fsync_directory, directory))
        remove_later(partition, swap.old, workers)

    def _request(self, partition: Partition, plan: CompactionPlan) -> CompactionRequest:
        config = partition.log.config
        size, factor = (
            self._integer("log.cleaner.dedupe.buffer.size"),
            self._float("log.cleaner.io.buffer.load.factor"),
        )
        threads = max(int(self._integer("log.cleaner.threads")), 1)
        return CompactionRequest(
            directory=partition.log.directory,
            bases=tuple(segment.base_offset for segment in plan.segments),
            sizes=tuple(segment.size for segment in plan.segments),
            index_sizes=tuple(segment.index_bytes() for segment in plan.segments),
            first_dirty_offset=plan.first_dirty_offset,
            end_offset=plan.end_offset,
            now_ms=self._broker.clock.now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            key_memory_bytes=int(size * factor / threads),
            bytes_per_second=self._float("log.cleaner.io.max.bytes.per.second") / threads,
            producers=tuple(
                (producer_id, producer.batches[-1][3] if producer.batches else -1, producer.epoch)
                for producer_id, producer in partition.log.producers.items()
            ),
            seed=self._rng.below(1 << 62),
        )

    def _on_uncleanable(self, partition: Partition, reason: str) -> None:
        if not partition.is_removed:
            self.uncleanable[partition] = reason
            log.error("compaction of %s-%d disabled until restart: %s", partition.topic, partition.index, reason)

    # Checkpoint of clean offsets

    def _read_checkpoint(self, directory: LogDirectory) -> None:
        path = f"{directory.path}/{CLEAN_OFFSETS_FILE}"
        try:
            found = offset_checkpoint_file.read(self._disk, path)
        except ValueError as error:
            log.warning("ignoring corrupt checkpoint %s, cleaning its logs from the start: %s", path, error)
            return
        for partition in directory.partitions:
            offset = found.get((partition.topic, partition.index))
            if offset is not None:
                self._clean_offsets[partition] = offset

    async def _prune_removed_partitions(self) -> None:
        """Remove entries of deleted topics from the checkpoint: they must not apply to new topics of the same name."""
        removed = [partition for partition in self._clean_offsets if partition.is_removed]
        for partition in removed:
            del self._clean_offsets[partition]
            self.uncleanable.pop(partition, None)
        if removed:
            for directory in self._broker.log_directories.online():
                try:
                    await self._write_checkpoint(directory)
                except OSError as error:
                    self._broker.log_directories.on_failure(directory, error)

    async def _write_checkpoint(self, directory: LogDirectory) -> None:
        async with self._checkpoint_lock:
            offsets = {
                (partition.topic, partition.index): offset
                for partition, offset in self._clean_offsets.items()
                if partition in directory.partitions
            }
            await self._broker.workers.run(
                partial(offset_checkpoint_file.write, self._disk, f"{directory.path}/{CLEAN_OFFSETS_FILE}", offsets)
            )

    def _integer(self, name: str) -> int:
        return int(cast("int", broker_value(name, self._broker.configs())))

    def _float(self, name: str) -> float:
        return float(cast("float", broker_value(name, self._broker.configs())))


def _has_other_log(partition: Partition, partition_log: PartitionLog) -> bool:
    """Return whether the partition was removed or its log was replaced."""
    return partition.is_removed or partition.log is not partition_log
