"""Delete the files of removed segments: rename them at once, and remove them after `file.delete.delay.ms`."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from ottla.base.ports import Workers
from ottla.log.compaction_segments import mark_deleted, remove_deleted_segments
from ottla.log.segment import LogSegment
from ottla.runtime.partition import Partition
from ottla.runtime.slice_scheduler import SliceScheduler

log = logging.getLogger("ottla.partitions")


async def mark_segments_deleted(
    partition: Partition, segments: Sequence[LogSegment], workers: Workers, scheduler: SliceScheduler
) -> None:
    """Rename the files to `.deleted`, then remove them later. Raises OSError.

    Runs on the event loop, so that no topic of the same name can be created in between.
    """
    for segment in segments:
        await scheduler.yield_if_due()
        if partition.is_removed:
            return  # its directory was renamed and will be removed as a whole
        mark_deleted(segment)
    remove_later(partition, segments, workers)


def remove_later(partition: Partition, segments: Sequence[LogSegment], workers: Workers) -> None:
    """Remove the files after `file.delete.delay.ms`."""
    if segments:
        asyncio.get_running_loop().call_later(
            partition.log.config.file_delete_delay_ms / 1000, _remove, partition, segments, workers
        )


def _remove(partition: Partition, segments: Sequence[LogSegment], workers: Workers) -> None:
    if not partition.is_removed:
        workers.run(partial(remove_deleted_segments, segments)).add_done_callback(partial(_on_removed, partition))


def _on_removed(partition: Partition, removed: "asyncio.Future[None]") -> None:
    """Log a failure. Files that remain are removed when the log is next opened."""
    if not removed.cancelled() and removed.exception() is not None and not partition.is_removed:
        log.warning(
            "could not remove deleted segments of %s-%d: %s",
            partition.topic,
            partition.index,
            removed.exception(),
        )
