"""What has to be done from time to time: closed segments are put on the disk, off the loop, and silent producers are forgotten."""

import asyncio
from collections.abc import AsyncIterator, Callable

from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition

INTERVAL_SECONDS = 1.0
PARTITIONS_PER_TURN_MAX = 200
"""A node with many partitions looks at some of them in each turn: the loop is never held for long."""


class Upkeep:
    """Kafka, too, flushes a segment when it is closed; until then it is the page cache that holds it."""

    def __init__(self, broker: Broker, on_failure: Callable[[BaseException], None], *, expiry_interval_ms: int) -> None:
        self._broker = broker
        self._on_failure = on_failure
        self._expiry_interval_seconds = expiry_interval_ms / 1000
        self._next_expiry = broker.loop.time() + self._expiry_interval_seconds
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._broker.loop.create_task(self._run())

    async def stop(self) -> None:
        """A flush that was begun is ended first: nobody else may write to that log meanwhile."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._stopping.wait(), INTERVAL_SECONDS)
            except TimeoutError:
                try:
                    await self._flush_closed()
                    await self._maybe_expire_producers()
                except OSError as error:
                    # What an fsync has lost cannot be had by asking again: carrying on would promise what is not on the disk.
                    self._on_failure(error)
                    return

    async def _flush_closed(self) -> None:
        async for partition in self._partitions():
            await self.flush(partition)

    async def _maybe_expire_producers(self) -> None:
        if self._broker.loop.time() >= self._next_expiry:
            self._next_expiry += self._expiry_interval_seconds
            async for partition in self._partitions():
                log = partition.log
                log.producers.expire(self._broker.clock.now_ms(), log.config.producer_expiration_ms)

    async def _partitions(self) -> AsyncIterator[Partition]:
        """Those that are here, some in each turn of the loop."""
        for at, partition in enumerate(self._broker.all_partitions()):
            if at % PARTITIONS_PER_TURN_MAX == PARTITIONS_PER_TURN_MAX - 1:
                await asyncio.sleep(0)
            if self._stopping.is_set():
                return
            if not partition.is_gone:
                yield partition

    async def flush(self, partition: Partition) -> None:
        flushing, path = self._broker.flushing, partition.log.directory
        for closed in partition.log.take_unflushed():
            if partition.is_gone:
                return
            flushing[path] = self._broker.workers.run(closed.flush)
            try:
                await flushing[path]
            except OSError:
                if not partition.is_gone:          # a directory that was deleted meanwhile is no longer under its name
                    raise
            finally:
                del flushing[path]
