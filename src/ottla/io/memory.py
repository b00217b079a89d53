"""Periodic release of memory: garbage collection of reference cycles, and return of freed memory to the system."""

import asyncio
import gc
import time
from collections.abc import Callable

from ottla.io import process
from ottla.io.workers import ThreadWorkers

NEW_OBJECTS_MAX = 1_000_000
"""More objects than the largest requests create, so that a request does not trigger a collection."""
NEVER = 1 << 30
CHECK_SECONDS = 10.0
RESIDENT_CHANGE = 0.05
COLLECTION_SHARE = 1 / 500
"""Upper limit of the time spent in collections. One blocks all threads, for 0.1 s with a million new objects."""
FULL_COLLECTION_SECONDS = 3600.0


def configure_gc() -> None:
    """Freeze objects alive at startup and collect on a timer.

    Requests create no reference cycles, and count-based triggers would run the GC on every request that names thousands
    of partitions.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_MAX, 20, NEVER)


class GcScheduler:
    """Runs the garbage collector for at most COLLECTION_SHARE of the time, and each hour over all objects."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, collect: Callable[[int], object] = gc.collect
    ) -> None:
        self._monotonic = monotonic
        self._collect = collect
        self._due = monotonic()
        self._full_due = self._due + FULL_COLLECTION_SECONDS

    def maybe_collect(self) -> None:
        started = self._monotonic()
        if started < self._due:
            return
        is_full = started >= self._full_due
        self._collect(2 if is_full else 1)
        ended = self._monotonic()
        self._due = ended + (ended - started) / COLLECTION_SHARE
        if is_full:
            self._full_due = ended + FULL_COLLECTION_SECONDS


async def trim_memory_periodically(workers: ThreadWorkers) -> None:
    """Return freed memory to the system when memory use has changed, so that the node shrinks after a load peak."""
    scheduler = GcScheduler()
    resident_bytes = process.resident_bytes()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        scheduler.maybe_collect()
        if abs(process.resident_bytes() - resident_bytes) > RESIDENT_CHANGE * resident_bytes:
            await workers.run(process.trim_malloc)
            resident_bytes = process.resident_bytes()
