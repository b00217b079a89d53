"""All shards of one internal topic on this node: loaded when their partition is led here, found by key, unloaded when it is not."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.java_compat import partition_of
from ottla.log.partition_log import ColdRead
from ottla.runtime.broker import Broker
from ottla.runtime.coordinator_records import BatchReader
from ottla.runtime.partition import InternalPartition
from ottla.runtime.shard_driver import CoordinatorShard, ShardContext, ShardDriver, ShardState
from ottla.wire.errors import MalformedMessage

log = logging.getLogger("ottla.coordinators")

SLICE_MS = 5
"""For so long the loop is held at most while a shard is loaded: others are served meanwhile."""
BATCHES_PER_LOOK = 16
"""After so many batches it is looked at the clock."""
READ_BYTES = 1 << 20
KEYS_MAX = 50_000
"""Keys whose partition is remembered: Java's hash takes longer than the rest of finding a shard."""


class CoordinatorRuntime:
    """CoordinatorRuntime are loaded one after another: fifty at once would hold the loop for fifty slices."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        make_machine: Callable[[], CoordinatorShard],
        *,
        refusal: Callable[[Any, ErrorCode], Any],
        codec: int = 0,
    ) -> None:
        self.topic = topic
        self._broker = broker
        self._make_machine = make_machine
        self._context = ShardContext(
            broker.loop, _steady_clock(broker), refusal, codec, self._on_state_diverged, self._on_append_error
        )
        self._shards: dict[int, ShardDriver] = {}
        self._to_load: dict[ShardDriver, None] = {}
        self._loading: asyncio.Task[None] | None = None
        self._index_by_key: dict[str, int] = {}
        self._hashed_for = 0
        """The number of partitions that the remembered keys were spread over."""

    def partition_count(self) -> int:
        """0 while there is no such topic."""
        topic = self._broker.image.topics_by_name.get(self.topic)
        return 0 if topic is None else len(topic.partitions)

    def index_of(self, key: str) -> int:
        """The partition of a key; -1 while there is no such topic."""
        index = self._index_by_key.get(key)
        if index is None:
            count = self.partition_count()
            if not count:
                return -1
            index = partition_of(key, count)
            if len(self._index_by_key) >= KEYS_MAX or count != self._hashed_for:
                self._index_by_key.clear()
                self._hashed_for = count
            self._index_by_key[key] = index
        return index

    def shard_of(self, key: str) -> ShardDriver | None:
        """The shard that answers for a key, if it is here."""
        index = self._index_by_key.get(key)
        return self._shards.get(self.index_of(key) if index is None else index)

    def all(self) -> Iterator[ShardDriver]:
        """By partition."""
        for _, shard in sorted(self._shards.items()):
            yield shard

    # What the publisher calls

    def on_partition(self, partition: InternalPartition) -> None:
        """A partition has come, gone, or got another leader."""
        if partition.is_removed or self.partition_count() != self._hashed_for:
            self._index_by_key.clear()
        shard = self._shards.get(partition.index)
        if partition.is_leader and not partition.is_removed:
            if shard is None or shard.partition is not partition:
                if shard is not None:
                    shard.close()
                self._load(partition)
        elif shard is not None and shard.partition is partition:
            del self._shards[partition.index]
            self._to_load.pop(shard, None)
            shard.close()

    def close(self) -> None:
        """The node stops: nothing is written any more, and who waits hears that another must be asked."""
        for shard in self._shards.values():
            shard.close()
        self._shards.clear()
        self._to_load.clear()

    def _on_state_diverged(self, shard: ShardDriver) -> None:
        if self._shards.get(shard.partition.index) is shard:
            shard.close()
            self._load(shard.partition)

    def _on_append_error(self, partition: InternalPartition, error: OSError) -> None:
        """Not at once: a directory that goes offline takes the shard with it, which is still deciding."""
        self._broker.loop.call_soon(self._broker.log_directories.on_partition_failure, partition, error)

    # Loading

    def _load(self, partition: InternalPartition) -> None:
        shard = self._shards[partition.index] = ShardDriver(partition, self._make_machine(), self._context)
        if partition.log.log_end_offset == partition.log.log_start_offset:
            shard.activate()
            return
        self._to_load[shard] = None
        if self._loading is None:
            self._loading = self._broker.loop.create_task(self._load_all())
            self._loading.add_done_callback(self._on_all_loaded)

    async def _load_all(self) -> None:
        while self._to_load:
            shard = next(iter(self._to_load))
            del self._to_load[shard]
            partition = shard.partition
            began_ms = self._broker.clock.now_ms()
            try:
                count = await self._load_one(shard)
            except (MalformedMessage, OSError) as error:
                log.error("%s-%d cannot be loaded: %s", partition.topic, partition.index, error)
                shard.fail()
                if isinstance(error, OSError):
                    self._on_append_error(partition, error)
                continue
            if shard.state == ShardState.LOADING:
                shard.activate()
                log.info(
                    "loaded %d records of %s-%d in %d ms",
                    count,
                    partition.topic,
                    partition.index,
                    self._broker.clock.now_ms() - began_ms,
                )

    def _on_all_loaded(self, loading: "asyncio.Task[None]") -> None:
        self._loading = None
        if not loading.cancelled() and loading.exception() is not None:
            log.error("shards of %s could not be loaded", self.topic, exc_info=loading.exception())

    async def _load_one(self, shard: ShardDriver) -> int:
        """Replay the log to its end, in slices; how many records that were is returned."""
        partition_log, now_ms = shard.partition.log, self._broker.clock.now_ms
        reader, replay = BatchReader(), shard.replay
        offset, count, look = partition_log.log_start_offset, 0, 0
        until_ms = now_ms() + SLICE_MS
        while offset < partition_log.log_end_offset and shard.state == ShardState.LOADING:
            data = await self._read(shard.partition, offset)
            until_ms = now_ms() + SLICE_MS
            before = offset
            for next_offset, records in reader.read(data):
                for at, key, value in records:
                    if key is not None and at >= partition_log.log_start_offset:
                        replay(at, key, value)
                count += len(records)
                offset = next_offset
                look += 1
                if look % BATCHES_PER_LOOK == 0 and now_ms() >= until_ms:
                    await self._broker.scheduler.next_slice()
                    if shard.state != ShardState.LOADING:
                        return count
                    until_ms = now_ms() + SLICE_MS
            if offset == before:
                raise MalformedMessage(f"no whole batch at offset {offset}")
        if reader.open_transactions:
            log.warning(
                "%s-%d has %d open transactions: what was written in them is not served",
                shard.partition.topic,
                shard.partition.index,
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
            raise MalformedMessage(f"nothing at offset {offset}, while the log ends at {partition_log.log_end_offset}")
        file, position, size = found
        return await self._broker.workers.run(lambda: file.read_at(position, size))


def _steady_clock(broker: Broker) -> Callable[[], int]:
    """Wall time when the node started, and from there on the loop's: no session ends because somebody set the clock."""
    loop_time = broker.loop.time
    start_ms = broker.clock.now_ms() - loop_time() * 1000
    return lambda: int(start_ms + loop_time() * 1000)
