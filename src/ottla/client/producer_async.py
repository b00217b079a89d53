"""The producer for asyncio.

async with AsyncProducer(bootstrap_servers="127.0.0.1:9092") as producer:
    future = await producer.send("orders", b"one")     # in a batch; waits only for metadata and memory
    metadata = await future                            # acknowledged
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from ottla.base.ports import ClientPorts
from ottla.client.accumulator import RecordAccumulator, TopicRoute
from ottla.client.batch import ProducerBatch
from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import PartitionInfo
from ottla.client.errors import BufferExhaustedError, ClientClosedError, ClientError
from ottla.client.producer_config import ProducerSettings, producer_settings
from ottla.client.records import HeadersLike, ProducerRecord, RecordMetadata
from ottla.client.send_future import ColumnSendFuture, SendFuture
from ottla.client.sender_driver import SenderDriver
from ottla.client.serialization import SerializedRecord, notify_interceptors, serialize

if TYPE_CHECKING:
    from ottla.wire.column_encoding import EncodedBatch


def wake_waiter(waiter: "asyncio.Future[None]") -> None:
    """Set the waiter's result, unless it was cancelled."""
    if not waiter.done():
        waiter.set_result(None)


class AsyncSendFuture(SendFuture):
    """`await` it for the RecordMetadata, or the error."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            self._when_done(lambda: wake_waiter(waiter))
            yield from waiter
        return self._outcome()

    def result(self) -> RecordMetadata:
        """Return the metadata. Raises asyncio.InvalidStateError while the future is not done."""
        if not self.done():
            raise asyncio.InvalidStateError("the record is not acknowledged yet; await the future")
        return self._outcome()

    def exception(self) -> ClientError | None:
        """Return the error, if any. Raises asyncio.InvalidStateError while the future is not done."""
        if not self.done():
            raise asyncio.InvalidStateError("the record is not acknowledged yet; await the future")
        return self.peek()[1]


class AsyncColumnSendFuture(ColumnSendFuture):
    """`await` it for the number of acknowledged records per partition, or the first error."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, dict[int, int]]:
        if not self.done():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._when_done(lambda: wake_waiter(waiter))
            yield from waiter
        return self._outcome()


class ProducerEngine:
    """The event-loop side of both producers: accumulator, sender, connections. Created inside the loop."""

    def __init__(
        self,
        settings: ProducerSettings,
        ports: ClientPorts,
        *,
        lock: "AbstractContextManager[Any]",
        future: type[SendFuture],
        schedule: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self.settings = settings
        self.core = ClusterClient(settings.config, ports, creates_topics=True)
        self.is_woken = False
        self._schedule = self.core.loop.call_soon if schedule is None else schedule
        self.accumulator = RecordAccumulator(
            settings, ports.clock, ports.rng, lock, self.core.now_ms, self._wake, future
        )
        self._driver = SenderDriver(self.core, settings, self.accumulator)
        self.sender = self._driver.sender

    def _wake(self) -> None:
        """Schedule one poll of the sender, however often this is called before it runs."""
        if not self.is_woken:
            self.is_woken = True
            self._schedule(self._on_wake)

    def _on_wake(self) -> None:
        self.is_woken = False
        self._driver.poll()

    async def send_when_possible(self, record: SerializedRecord) -> SendFuture:
        """Wait for the topic and for memory, together at most max.block.ms."""
        deadline_ms = self.core.now_ms() + self.settings.block_ms_max
        accumulator = self.accumulator
        while True:
            if self.sender.is_closing:
                raise ClientClosedError("The producer is closed.")
            if record.topic not in accumulator.routes or record.partition is not None:
                left_ms = max(0.0, deadline_ms - self.core.now_ms())
                info = await self.core.topic(record.topic, timeout_ms=left_ms, partition=record.partition or 0)
                accumulator.update_topic(info)
            memory_free: asyncio.Future[None] = self.core.loop.create_future()
            accumulator.call_when_memory_free(partial(wake_waiter, memory_free))
            future = accumulator.try_send(*record)
            if future is not None:
                return future
            if record.topic in accumulator.routes:
                await self._wait_for_memory(memory_free, deadline_ms)

    async def _wait_for_memory(self, memory_free: "asyncio.Future[None]", deadline_ms: float) -> None:
        """Wait for memory. Raises BufferExhaustedError at the deadline."""
        try:
            async with asyncio.timeout_at(deadline_ms / 1000):
                await memory_free
        except TimeoutError:
            raise BufferExhaustedError(
                f"buffer.memory ({self.settings.buffer_memory} bytes) stayed full "
                f"for {self.settings.block_ms_max:g} ms.",
                advice="Send more slowly, raise buffer.memory, or check why the brokers are slow.",
            ) from None

    async def route(self, topic: str, partition: int = 0) -> TopicRoute:
        """Return the route of a topic, once the topic has the partition."""
        info = await self.core.topic(topic, timeout_ms=self.settings.block_ms_max, partition=partition)
        self.accumulator.update_topic(info)
        return self.accumulator.routes[topic]

    async def add_when_possible(self, topic: str, encoded: "EncodedBatch") -> ProducerBatch:
        """Queue an encoded batch once memory is free, waiting at most max.block.ms."""
        deadline_ms = self.core.now_ms() + self.settings.block_ms_max
        while True:
            if self.sender.is_closing:
                raise ClientClosedError("The producer is closed.")
            if topic not in self.accumulator.routes:
                await self.route(topic, encoded.partition)
            memory_free: asyncio.Future[None] = self.core.loop.create_future()
            self.accumulator.call_when_memory_free(partial(wake_waiter, memory_free))
            batch = self.accumulator.try_add(topic, encoded)
            if batch is not None:
                return batch
            await self._wait_for_memory(memory_free, deadline_ms)

    async def flush(self) -> None:
        """Send all batches without lingering, and wait until they are done."""
        with self.accumulator.lock:
            batches = list(self.accumulator.incomplete)
        self.sender.is_flushing += 1
        try:
            self._driver.poll()
            for batch in batches:
                await self._done(batch)
        finally:
            self.sender.is_flushing -= 1

    async def _done(self, batch: ProducerBatch) -> None:
        if not batch.is_done:
            waiter: asyncio.Future[None] = self.core.loop.create_future()
            batch.when_done(lambda: wake_waiter(waiter))
            await waiter

    async def close(self, timeout_seconds: float | None) -> None:
        """Deliver all records within `timeout_seconds`; the rest fails."""
        self.sender.is_closing = True
        try:
            with suppress(TimeoutError):  # the rest fails below
                async with asyncio.timeout(timeout_seconds):
                    await self.flush()
        finally:
            self._driver.stop()
            self.sender.fail_all(ClientClosedError("The producer was closed before the record was delivered."))
            await self.core.close()

    def metrics(self) -> dict[str, float]:
        """Return counters and current values, with Kafka's names."""
        counts = self.sender.counts
        return {
            "record-send-total": counts["records"],
            "record-acknowledged-total": counts["acknowledged"],
            "record-error-total": counts["errors"],
            "record-retry-total": counts["retries"],
            "batch-send-total": counts["batches"],
            "batch-split-total": counts["splits"],
            "outgoing-byte-total": counts["bytes"],
            "request-total": counts["requests"],
            "records-per-request-avg": counts["records"] / counts["requests"] if counts["requests"] else 0.0,
            "buffer-total-bytes": self.settings.buffer_memory,
            "buffer-available-bytes": self.settings.buffer_memory - self.accumulator.memory_used,
        }


class AsyncProducer:
    """Producer for asyncio.

    Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.
    `ports` are for simulations.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, ports: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self._settings = producer_settings(config, keywords)
        self._ports = ports
        self._own_workers: Any = None
        self._engine: ProducerEngine | None = None
        self._is_closed = False
        settings = self._settings
        self._takes_bytes_only = not (settings.key_serializer or settings.value_serializer or settings.interceptors)

    def _get_engine(self) -> ProducerEngine:
        """Return the engine, created on first use as it needs the running loop."""
        if self._is_closed:
            raise ClientClosedError("The producer is closed.")
        if self._engine is None:
            ports = self._ports
            if ports is None:
                from ottla.client.real_ports import real_client_ports

                ports = real = real_client_ports(asyncio.get_running_loop())
                self._own_workers = real.workers
            self._engine = ProducerEngine(self._settings, ports, lock=nullcontext(), future=AsyncSendFuture)
        return self._engine

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: HeadersLike | None = None,
    ) -> AsyncSendFuture:
        """Put a record into a batch. Waits only for the topic's metadata and for memory, at most max.block.ms."""
        engine = self._engine or self._get_engine()
        if (
            self._takes_bytes_only
            and type(value) is bytes
            and (key is None or type(key) is bytes)
            and (headers is None or type(headers) is list)
        ):
            future = engine.accumulator.try_send(topic, value, key, partition, timestamp, headers)
            if future is not None:
                if engine.is_woken:  # a new batch was opened: let the loop send full ones
                    await asyncio.sleep(0)
                return future  # type: ignore[return-value]
        if self._is_closed:
            raise ClientClosedError("The producer is closed.")
        record = serialize(self._settings, ProducerRecord(topic, value, key, partition, timestamp, headers))
        future = engine.accumulator.try_send(*record) or await engine.send_when_possible(record)
        if self._settings.interceptors:
            notify_interceptors(self._settings, future)
        return future  # type: ignore[return-value]

    async def send_and_wait(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> RecordMetadata:
        """Send a record and wait until it is acknowledged. For occasional records: it waits for linger.ms too."""
        return await (await self.send(topic, value, key, **more))

    async def send_columns(
        self,
        topic: str,
        values: Any,
        keys: Any = None,
        *,
        timestamps: Any = None,
        partitions: Any = None,
        headers: Any = None,
    ) -> "AsyncColumnSendFuture":
        """Send all rows of columns.

        `values` and `keys` are Arrow arrays of bytes or text; `timestamps`, `partitions` (-1 or null: by key) and
        `headers` (lists) are optional. Waits for metadata and memory. `await` the result for the number of acknowledged
        records per partition.
        """
        from ottla.client.column_producer import check_partitions, encode_rows, split_rows, to_columns

        engine = self._engine or self._get_engine()
        rows, bounds = to_columns(engine.accumulator, values, keys, timestamps, headers)
        given = check_partitions(topic, partitions, len(rows))
        batches = []
        for start, end in split_rows(rows, bounds):
            chunk_partitions = None if given is None else given[start:end]
            route = await engine.route(topic, 0 if chunk_partitions is None else max(0, int(chunk_partitions.max())))
            for encoded in encode_rows(engine.accumulator, route, rows.slice(start, end), chunk_partitions):
                batches.append(
                    engine.accumulator.try_add(topic, encoded) or await engine.add_when_possible(topic, encoded)
                )
        return AsyncColumnSendFuture(topic, batches)

    async def flush(self) -> None:
        """Wait until all records sent before are acknowledged or failed."""
        if self._engine is not None:
            await self._engine.flush()

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Return the partitions of a topic and their leaders."""
        info = await self._get_engine().core.topic(topic, timeout_ms=self._settings.block_ms_max)
        return info.partitions

    def metrics(self) -> dict[str, float]:
        return self._engine.metrics() if self._engine is not None else {}

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Deliver all records, then close.

        Records not delivered within `timeout` seconds fail with ClientClosedError.
        """
        if self._is_closed:
            return
        self._is_closed, self._takes_bytes_only = True, False
        if self._engine is not None:
            await self._engine.close(timeout)
        if self._own_workers is not None:
            self._own_workers.close()

    async def __aenter__(self) -> Self:
        self._get_engine()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
