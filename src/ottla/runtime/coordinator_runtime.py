"""The coordinator shards of one internal topic on this node.

A shard is loaded when this node becomes leader of its partition, found by key, and unloaded when another broker leads.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.java_compat import partition_of
from ottla.base.plural import count_text
from ottla.log.partition_log import ColdRead
from ottla.runtime.broker import Broker
from ottla.runtime.coordinator_records import BatchReader
from ottla.runtime.partition import InternalPartition
from ottla.runtime.shard_driver import CoordinatorShard, ShardContext, ShardDriver, ShardState
from ottla.wire.errors import MalformedMessage

log = logging.getLogger("ottla.coordinators")

READ_BYTES = 1 << 20
CACHED_KEYS_MAX = 50_000
"""Keys whose partition is cached: computing Java's hash takes longer than the rest of a lookup."""


class CoordinatorRuntime:
    """Registry of shards. Loads them one at a time, in time slices."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        create_shard: Callable[[], CoordinatorShard],
        *,
        error_response: Callable[[Any, ErrorCode], Any],
        codec: int = 0,
    ) -> None:
        self.topic = topic
        self._broker = broker
        self._create_shard = create_shard
        self._context = ShardContext(
            broker.loop, _steady_clock(broker), error_response, codec, self._on_state_diverged, self._on_append_error
        )
        self._drivers: dict[int, ShardDriver] = {}
        self._to_load: dict[ShardDriver, None] = {}
        self._loading: asyncio.Task[None] | None = None
        self._index_by_key: dict[str, int] = {}
        self._cached_partition_count = 0
        """The partition count for which the cached partitions of keys were computed."""

    def partition_count(self) -> int:
        """Return the number of partitions; 0 if the topic does not exist."""
        topic = self._broker.image.topics_by_name.get(self.topic)
        return 0 if topic is None else len(topic.partitions)

    def partition_for(self, key: str) -> int:
        """Return the partition of a key; -1 if the topic does not exist."""
        index = self._index_by_key.get(key)
        if index is None:
            count = self.partition_count()
            if not count:
                return -1
            index = partition_of(key, count)
            if len(self._index_by_key) >= CACHED_KEYS_MAX or count != self._cached_partition_count:
                self._index_by_key.clear()
                self._cached_partition_count = count
            self._index_by_key[key] = index
        return index

    def driver_for(self, key: str) -> ShardDriver | None:
        """Return the shard of a key, or None if it is not on this node."""
        index = self._index_by_key.get(key)
        return self._drivers.get(self.partition_for(key) if index is None else index)

    def leader_of(self, key: str) -> int:
        """Return the broker that leads the partition of a key; -1 if there is none."""
        topic = self._broker.image.topics_by_name.get(self.topic)
        return -1 if topic is None else topic.partitions[self.partition_for(key)].leader

    def is_opening(self, key: str) -> bool:
        """Return whether this node leads the partition of a key in the image, but has not opened it yet."""
        return self.driver_for(key) is None and self.leader_of(key) == self._broker.settings.node_id

    def drivers(self) -> Iterator[ShardDriver]:
        """Yield the shards in the order of their partitions."""
        for _, driver in sorted(self._drivers.items()):
            yield driver

    # Called by the publisher

    def on_partition(self, partition: InternalPartition) -> None:
        """Load or unload a shard after its partition was opened or removed, or its leader changed."""
        if partition.is_removed or self.partition_count() != self._cached_partition_count:
            self._index_by_key.clear()
        driver = self._drivers.get(partition.index)
        if partition.is_leader and not partition.is_removed:
            if driver is None or driver.partition is not partition:
                if driver is not None:
                    driver.close()
                self._load(partition)
        elif driver is not None and driver.partition is partition:
            del self._drivers[partition.index]
            self._to_load.pop(driver, None)
            driver.close()

    def close(self) -> None:
        """Unload all shards; pending requests get NOT_COORDINATOR. Called when the node stops."""
        for driver in self._drivers.values():
            driver.close()
        self._drivers.clear()
        self._to_load.clear()

    def _on_state_diverged(self, driver: ShardDriver) -> None:
        if self._drivers.get(driver.partition.index) is driver:
            driver.close()
            self._load(driver.partition)

    def _on_append_error(self, partition: InternalPartition, error: OSError) -> None:
        """Report the error in the next iteration: it may close the shard that is using the log now."""
        self._broker.loop.call_soon(self._broker.log_directories.on_partition_failure, partition, error)

    # Loading

    def _load(self, partition: InternalPartition) -> None:
        driver = self._drivers[partition.index] = ShardDriver(partition, self._create_shard(), self._context)
        if partition.log.log_end_offset == partition.log.log_start_offset:
            driver.activate()
            return
        self._to_load[driver] = None
        if self._loading is None:
            self._loading = self._broker.loop.create_task(self._load_all())
            self._loading.add_done_callback(self._on_all_loaded)

    async def _load_all(self) -> None:
        while self._to_load:
            driver = next(iter(self._to_load))
            del self._to_load[driver]
            partition = driver.partition
            started_ms = self._broker.clock.now_ms()
            try:
                count = await self._load_one(driver)
            except (MalformedMessage, OSError) as error:
                log.error("could not load %s-%d: %s", partition.topic, partition.index, error)
                driver.fail()
                if isinstance(error, OSError):
                    self._on_append_error(partition, error)
                continue
            if driver.state == ShardState.LOADING:
                driver.activate()
                log.info(
                    "loaded %s of %s-%d in %d ms",
                    count_text(count, "record"),
                    partition.topic,
                    partition.index,
                    self._broker.clock.now_ms() - started_ms,
                )

    def _on_all_loaded(self, loading: "asyncio.Task[None]") -> None:
        self._loading = None
        if not loading.cancelled() and loading.exception() is not None:
            log.error("could not load the shards of %s", self.topic, exc_info=loading.exception())

    async def _load_one(self, driver: ShardDriver) -> int:
        """Replay the log to its end, in time slices, and return the number of records."""
        partition_log, scheduler = driver.partition.log, self._broker.scheduler
        reader, replay = BatchReader(), driver.replay
        offset, count = partition_log.log_start_offset, 0
        while offset < partition_log.log_end_offset and driver.state == ShardState.LOADING:
            data = await self._read(driver.partition, offset)
            before = offset
            for next_offset, records in reader.read(data):
                for record_offset, key, value in records:
                    if key is not None and record_offset >= partition_log.log_start_offset:
                        replay(record_offset, key, value)
                count += len(records)
                offset = next_offset
                await scheduler.yield_if_due()
                if driver.state != ShardState.LOADING:
                    return count
            if offset == before:
                raise MalformedMessage(f"incomplete batch at offset {offset}")
        if reader.open_transactions:
            log.warning(
                "ignoring the records of open transactions in %s-%d: %d transactions",
                driver.partition.topic,
                driver.partition.index,
                reader.open_transactions,
            )
        return count

    async def _read(self, partition: InternalPartition, offset: int) -> bytes:
        partition_log = partition.log
        try:
            found = partition_log.read(
                offset, READ_BYTES, limit_offset=partition_log.log_end_offset, min_one_message=True, may_wait=False
            )
        except ColdRead as cold:
            found = await self._broker.workers.run(cold.retry)
        if found is None:
            raise MalformedMessage(f"no batch at offset {offset}; log end offset is {partition_log.log_end_offset}")
        file, position, size = found
        return await self._broker.workers.run(lambda: file.read_at(position, size))


def _steady_clock(broker: Broker) -> Callable[[], int]:
    """Return a clock that starts at wall time and follows the loop's: changing the system clock expires no session."""
    loop_time = broker.loop.time
    start_ms = broker.clock.now_ms() - loop_time() * 1000
    return lambda: int(start_ms + loop_time() * 1000)
