"""Memory that is no longer needed, given back by the clock: cycles of objects to Python, and what Python has freed to the system."""

import asyncio
import gc
import time
from collections.abc import Callable

from ottla.io import process
from ottla.io.workers import ThreadWorkers

NEW_OBJECTS_MAX = 1_000_000
"""More than the largest requests make: what they need for a moment is not looked at."""
NEVER = 1 << 30
CHECK_SECONDS = 10.0
RESIDENT_CHANGE = 0.05
COLLECTION_SHARE = 1 / 500
"""Of the time. A collection holds up everything, for 0.1 s where a million objects are new."""
FULL_COLLECTION_SECONDS = 3600.0


def configure_gc() -> None:
    """What is there now stays, and need not be looked at again and again. Requests leave no cycles, so that those are looked for by the
    clock: by the number of new objects the collector would be busy whenever a request names thousands of partitions."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_MAX, 20, NEVER)


class GcScheduler:
    """When cycles are looked for: so seldom that it takes its share of the time at most; once in a long while among all objects."""

    def __init__(
        self, seconds: Callable[[], float] = time.monotonic, collect: Callable[[int], object] = gc.collect
    ) -> None:
        self._seconds = seconds
        self._collect = collect
        self._due = seconds()
        self._full_due = self._due + FULL_COLLECTION_SECONDS

    def maybe_collect(self) -> None:
        begun = self._seconds()
        if begun < self._due:
            return
        is_full = begun >= self._full_due
        self._collect(2 if is_full else 1)
        ended = self._seconds()
        self._due = ended + (ended - begun) / COLLECTION_SHARE
        if is_full:
            self._full_due = ended + FULL_COLLECTION_SECONDS


async def trim_memory_periodically(workers: ThreadWorkers) -> None:
    """After a storm the node is as small as before: what was freed is kept while there is use for it, but not for ever."""
    collections = GcScheduler()
    known = process.resident_bytes()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        collections.maybe_collect()
        if abs(process.resident_bytes() - known) > RESIDENT_CHANGE * known:
            await workers.run(process.trim_malloc)
            known = process.resident_bytes()
