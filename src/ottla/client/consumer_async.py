"""The consumer for asyncio.

async with AsyncConsumer(bootstrap_servers="127.0.0.1:9092", group_id="billing", auto_offset_reset="earliest") as
consumer: consumer.subscribe(["orders"]) async for record in consumer: print(record.offset, record.value)

async for batch in consumer.batches():                 # as columns: NumPy arrays, no work per record
    total += batch.values.offsets[-1]
"""

# ruff: noqa: ASYNC109 (polling without a result is not an error, so `timeout` does not raise)
import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any, Self

from ottla.base.ports import ClientPorts
from ottla.client.cluster_metadata import PartitionInfo
from ottla.client.column_batch import ColumnBatch
from ottla.client.consumer_config import EARLIEST, LATEST, consumer_config
from ottla.client.consumer_engine import ConsumerEngine, PendingCallback, Step, StepType
from ottla.client.consumer_subscription import RebalanceCallback, RebalanceListener
from ottla.client.errors import ClientClosedError, ClientError
from ottla.client.fetch_collector import Chunk
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

CLOSE_SECONDS_MAX = 30.0


class AsyncConsumer:
    """Consumer for asyncio.

    Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.
    `ports` are for simulations.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, ports: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self._config = consumer_config(config, keywords)
        self._ports = ports
        self._own_workers: Any = None
        self._engine: ConsumerEngine | None = None
        self._is_closed = False

    def _get_engine(self) -> ConsumerEngine:
        """Return the engine, created on first use as it needs the running loop."""
        if self._is_closed:
            raise ClientClosedError("The consumer is closed.")
        if self._engine is None:
            ports = self._ports
            if ports is None:
                from ottla.client.real_ports import real_client_ports

                ports = real = real_client_ports(asyncio.get_running_loop())
                self._own_workers = real.workers
            self._engine = ConsumerEngine(self._config, ports)
        return self._engine

    # Subscription

    def subscribe(
        self,
        topics: "Iterable[str] | re.Pattern[str]",
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to topics as a group member, by names or by a compiled pattern that matches the full name.

        Callbacks get a list of partitions and are called while the consumer polls; they may be coroutine functions.
        """
        self._get_engine().subscription.subscribe(topics, RebalanceListener(on_assigned, on_revoked, on_lost))

    async def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        await self._get_engine().unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without group management. Partitions already assigned keep their positions."""
        self._get_engine().subscription.assign(partitions)

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._get_engine().positions.states)

    @property
    def subscription(self) -> list[str]:
        return list(self._get_engine().subscription.topics or ())

    # Records

    async def poll(self, timeout: float | None = None, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return up to `max_records` (max.poll.records) records; an empty list after `timeout` seconds without any."""
        found = await self._step(StepType.RECORDS, timeout, max_records)
        return found if isinstance(found, list) else []

    async def poll_batch(self, timeout: float | None = None) -> ColumnBatch | None:
        """Return the next fetch response as columns, or None after `timeout` seconds without one."""
        found = await self._step(StepType.BATCH, timeout)
        return found if isinstance(found, ColumnBatch) else None

    async def batches(self, timeout: float | None = None) -> AsyncIterator[ColumnBatch]:
        """Iterate over fetch responses as columns, until `timeout` seconds pass without one.

        Columns hold bytes: deserializers and interceptors do not apply.
        """
        while (batch := await self.poll_batch(timeout)) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        while True:
            try:
                chunk = await self._step(StepType.CHUNK, None)
            except ClientClosedError:
                return
            assert isinstance(chunk, Chunk)
            for record in chunk:
                yield record

    async def _step(self, kind: StepType, timeout: float | None, records_max: int | None = None) -> Step:
        engine = self._get_engine()
        deadline_ms = None if timeout is None else engine.core.now_ms() + timeout * 1000
        while isinstance(step := await engine.step(kind, deadline_ms, records_max), PendingCallback):
            await _call_back(step)
        return step

    # Positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at an offset."""
        self._get_engine().subscription.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Move these partitions, or all, to their first record."""
        self._get_engine().subscription.seek_to_timestamp(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Move these partitions, or all, to their end."""
        self._get_engine().subscription.seek_to_timestamp(partitions, LATEST)

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """Move to the first record at or after a time in milliseconds, or to the end if there is none."""
        if timestamp < 0:
            raise ValueError(f"timestamp must be >= 0, got {timestamp}")
        self._get_engine().subscription.seek_to_timestamp(partitions, timestamp)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until they are resumed."""
        self._get_engine().subscription.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._get_engine().subscription.resume(partitions)

    @property
    def paused(self) -> list[TopicPartition]:
        return [partition for partition, state in self._get_engine().positions.states.items() if state.is_paused]

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record to be returned."""
        return await self._get_engine().position(partition)

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets up to the end as of the last fetch, or None before the first fetch."""
        return self._get_engine().lag(partition)

    # Offsets

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit these offsets, or those of all returned records, and wait for the broker."""
        await self._get_engine().require_committer().commit(offsets)

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: "Callable[[dict[TopicPartition, OffsetAndMetadata], ClientError | None], Any] | None" = None,
    ) -> None:
        """Start a commit. `callback` gets the offsets and the error, if any."""
        self._get_engine().require_committer().commit_soon(offsets, callback)

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of these partitions, or of the assigned ones; None where there is none."""
        return await self._get_engine().require_committer().committed(partitions or self.assignment)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._get_engine().beginning_offsets(partitions)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record: with read_committed, that of the first open transaction."""
        return await self._get_engine().end_offsets(partitions)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at or after a time in milliseconds for each partition, or None."""
        return await self._get_engine().offsets_for_times(times)

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        engine = self._get_engine()
        return (await engine.core.topic(topic, timeout_ms=engine.api_timeout_ms)).partitions

    def metrics(self) -> dict[str, float]:
        """Return counters and the lag of each partition."""
        return self._get_engine().metrics()

    # Closing

    async def close(self, timeout: float = CLOSE_SECONDS_MAX) -> None:
        """Commit if automatic, leave the group and close all connections."""
        if self._is_closed:
            return
        engine = self._engine
        if engine is None:
            self._is_closed = True
        else:
            try:
                call = await engine.prepare_close()
                if call is not None:
                    await _call_back(call)  # the callback may commit
            finally:
                self._is_closed = True
                await engine.close(timeout * 1000)
        if self._own_workers is not None:
            self._own_workers.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


async def _call_back(call: PendingCallback) -> None:
    result = call.function(call.partitions)
    if isawaitable(result):
        await result
