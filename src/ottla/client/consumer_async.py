"""The consumer's face for event loops.

async with AsyncConsumer(bootstrap_servers="127.0.0.1:9092", group_id="billing", auto_offset_reset="earliest") as
consumer: consumer.subscribe(["orders"]) async for record in consumer: print(record.offset, record.value)

async for batch in consumer.batches():                 # the same as columns: NumPy arrays, no work for each record
    total += batch.values.offsets[-1]
"""

# ruff: noqa: ASYNC109 (to poll for a while and get nothing is no failure: no exception says so)
import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any, Self

from ottla.base.ports import ClientPorts
from ottla.client.cluster_metadata import PartitionInfo
from ottla.client.column_batch import ColumnBatch
from ottla.client.consumer_config import EARLIEST, LATEST, consumer_config
from ottla.client.consumer_engine import (
    ConsumerEngine,
    PendingCallback,
    RebalanceCallback,
    RebalanceListener,
    Step,
    StepKind,
)
from ottla.client.errors import ClientClosedError, ClientError
from ottla.client.fetch_collector import Chunk
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

CLOSE_SECONDS_MAX = 30.0


class AsyncConsumer:
    """Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.

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
        """The engine, made on first use: it needs the running loop."""
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

    # What is read

    def subscribe(
        self,
        topics: "Iterable[str] | re.Pattern[str]",
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Read topics together with the group, by their names or by a compiled pattern that matches whole names.
        Callbacks are called with lists of partitions while the consumer is polled; they may be coroutine functions."""
        self._get_engine().subscribe(topics, RebalanceListener(on_assigned, on_revoked, on_lost))

    async def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        await self._get_engine().unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without a group's say. Those that stay keep their place."""
        self._get_engine().assign(partitions)

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._get_engine().positions.states)

    @property
    def subscription(self) -> list[str]:
        return list(self._get_engine().subscribed or ())

    # Records

    async def poll(self, timeout: float | None = None, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Up to `max_records` (max.poll.records) records; an empty list after `timeout` seconds without any."""
        found = await self._step(StepKind.RECORDS, timeout, max_records)
        return found if isinstance(found, list) else []

    async def poll_batch(self, timeout: float | None = None) -> ColumnBatch | None:
        """The next fetch response as columns; None after `timeout` seconds without one."""
        found = await self._step(StepKind.BATCH, timeout)
        return found if isinstance(found, ColumnBatch) else None

    async def batches(self, timeout: float | None = None) -> AsyncIterator[ColumnBatch]:
        """Fetch responses as columns, one after another; it ends after `timeout` seconds without one. Deserializers
        and interceptors are for records: columns hold bytes."""
        while (batch := await self.poll_batch(timeout)) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        while True:
            try:
                chunk = await self._step(StepKind.CHUNK, None)
            except ClientClosedError:
                return
            assert isinstance(chunk, Chunk)
            for record in chunk:
                yield record

    async def _step(self, kind: StepKind, timeout: float | None, records_max: int | None = None) -> Step:
        engine = self._get_engine()
        deadline_ms = None if timeout is None else engine.core.now_ms() + timeout * 1000
        while isinstance(step := await engine.step(kind, deadline_ms, records_max), PendingCallback):
            await _call(step)
        return step

    # Places

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset."""
        self._get_engine().seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Of these partitions, or of all."""
        self._get_engine().seek_to_timestamp(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Of these partitions, or of all."""
        self._get_engine().seek_to_timestamp(partitions, LATEST)

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """To the first record at or after a time in milliseconds, or to the end where there is none."""
        if timestamp < 0:
            raise ValueError("a time is not negative")
        self._get_engine().seek_to_timestamp(partitions, timestamp)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until they are resumed."""
        self._get_engine().pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._get_engine().resume(partitions)

    @property
    def paused(self) -> list[TopicPartition]:
        return [partition for partition, state in self._get_engine().positions.states.items() if state.is_paused]

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that will be handed out."""
        return await self._get_engine().position(partition)

    def lag(self, partition: TopicPartition) -> int | None:
        """How far the end is away, as of the last fetch; None before the first."""
        return self._get_engine().lag(partition)

    # Offsets

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit these offsets, or those of all records that were handed out, and wait until it is done."""
        await self._get_engine().require_committer().commit(offsets)

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: "Callable[[dict[TopicPartition, OffsetAndMetadata], ClientError | None], Any] | None" = None,
    ) -> None:
        """Begin to commit; the callback hears the offsets, and the error if there was one."""
        self._get_engine().require_committer().commit_soon(offsets, callback)

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed for these partitions, or for those that are assigned; None where it did not."""
        return await self._get_engine().require_committer().committed(partitions or self.assignment)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._get_engine().beginning_offsets(partitions)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Behind the last record that can be read: with isolation.level=read_committed, before the first open
        transaction.
        """
        return await self._get_engine().latest(partitions)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in milliseconds, for each partition; None where there is none."""
        return await self._get_engine().offsets_for_times(times)

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        engine = self._get_engine()
        return (await engine.core.topic(topic, timeout_ms=engine.api_timeout_ms)).partitions

    def metrics(self) -> dict[str, float]:
        """Counters, and how far behind each partition is."""
        return self._get_engine().metrics()

    # The end

    async def close(self, timeout: float = CLOSE_SECONDS_MAX) -> None:
        """Commit if that is automatic, leave the group, end all connections."""
        if self._is_closed:
            return
        engine = self._engine
        if engine is None:
            self._is_closed = True
        else:
            try:
                call = await engine.prepare_close()
                if call is not None:
                    await _call(call)  # it may still commit
            finally:
                self._is_closed = True
                await engine.close(timeout * 1000)
        if self._own_workers is not None:
            self._own_workers.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.close()


async def _call(call: PendingCallback) -> None:
    response = call.function(call.partitions)
    if isawaitable(response):
        await response
