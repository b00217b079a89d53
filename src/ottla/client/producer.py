"""The blocking producer. Sending threads encode the records; an event loop on its own thread delivers them.

with Producer(bootstrap_servers="127.0.0.1:9092") as producer:
    future = producer.send("orders", b"one")
    print(future.result(10).offset)
"""

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

from ottla.client.cluster_metadata import PartitionInfo
from ottla.client.errors import ClientClosedError, ClientError, ClientTimeoutError
from ottla.client.loop_thread import EventLoopThread
from ottla.client.outages import OutageCallback
from ottla.client.producer_async import ProducerEngine
from ottla.client.producer_config import ProducerSettings, producer_settings
from ottla.client.real_ports import RealClientPorts, real_client_ports
from ottla.client.records import HeadersLike, ProducerRecord, RecordMetadata
from ottla.client.send_future import ColumnSendFuture, SendFuture
from ottla.client.serialization import notify_interceptors, serialize


class BlockingSendFuture(SendFuture):
    """`result(timeout)` waits for the RecordMetadata, or raises the error."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for at most `timeout` seconds. ClientTimeoutError does not mean that the record failed."""
        if not self.done():
            event = threading.Event()
            self._when_done(event.set)
            if not event.wait(timeout):
                raise ClientTimeoutError(
                    f"The record was not acknowledged within {timeout} s; it may be later.", advice="Wait longer."
                )
        return self._outcome()

    def exception(self, timeout: float | None = None) -> ClientError | None:
        """Wait and return the error, or None if the send succeeded."""
        try:
            self.result(timeout)
        except ClientError as error:
            if not self.done():
                raise
            return error
        return None


class BlockingColumnSendFuture(ColumnSendFuture):
    """`result(timeout)` waits for the number of acknowledged records per partition, or raises the first error."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> dict[int, int]:
        if not self.done():
            event = threading.Event()
            self._when_done(event.set)
            if not event.wait(timeout):
                raise ClientTimeoutError(
                    f"The records were not acknowledged within {timeout} s; they may be later.",
                    advice="Wait longer.",
                )
        return self._outcome()


class Producer:
    """Blocking, thread-safe producer.

    Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        self._settings = producer_settings(config, keywords)
        self._is_closed = False
        self._closing = threading.Lock()
        settings = self._settings
        self._takes_bytes_only = not (settings.key_serializer or settings.value_serializer or settings.interceptors)
        self._loop_thread = EventLoopThread("ottla-producer")
        self._engine, self._ports = self._loop_thread.run(lambda: _create_engine(settings, self._loop_thread))
        self._try_send = self._engine.accumulator.try_send

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: HeadersLike | None = None,
    ) -> BlockingSendFuture:
        """Put a record into a batch and return.

        Blocks only for the topic's metadata and for memory, at most max.block.ms.
        """
        if (
            self._takes_bytes_only
            and type(value) is bytes
            and (key is None or type(key) is bytes)
            and (headers is None or type(headers) is list)
        ):
            future = self._try_send(topic, value, key, partition, timestamp, headers)
            if future is not None:
                return future  # type: ignore[return-value]
        return self._send_slow_path(ProducerRecord(topic, value, key, partition, timestamp, headers))

    def _send_slow_path(self, given: ProducerRecord) -> BlockingSendFuture:
        """Send anything but bytes to a known topic with free memory."""
        if self._is_closed:
            raise ClientClosedError("The producer is closed.")
        record = serialize(self._settings, given)
        future = self._try_send(*record)
        if future is None:
            future = self._loop_thread.run(lambda: self._engine.send_when_possible(record))
        if self._settings.interceptors:
            notify_interceptors(self._settings, future)
        return future  # type: ignore[return-value]

    def send_columns(
        self,
        topic: str,
        values: Any,
        keys: Any = None,
        *,
        timestamps: Any = None,
        partitions: Any = None,
        headers: Any = None,
    ) -> BlockingColumnSendFuture:
        """Send all rows of columns.

        `values` and `keys` are Arrow arrays of bytes or text; `timestamps`, `partitions` (-1 or null: by key) and
        `headers` (lists) are optional. This thread encodes entire batches, without Python code per row. Blocks for
        metadata and memory.
        """
        from ottla.client.column_producer import check_partitions, encode_rows, split_rows, to_columns

        if self._is_closed:
            raise ClientClosedError("The producer is closed.")
        engine = self._engine
        accumulator = engine.accumulator
        rows, bounds = to_columns(accumulator, values, keys, timestamps, headers)
        given = check_partitions(topic, partitions, len(rows))
        batches = []
        for start, end in split_rows(rows, bounds):
            chunk_partitions = None if given is None else given[start:end]
            highest = -1 if chunk_partitions is None else int(chunk_partitions.max())
            route = accumulator.routes.get(topic)
            if route is None or highest >= route.count:
                route = self._loop_thread.run(partial(engine.route, topic, max(0, highest)))
            for encoded in encode_rows(accumulator, route, rows.slice(start, end), chunk_partitions):
                batch = accumulator.try_add(topic, encoded)
                batches.append(batch or self._loop_thread.run(partial(engine.add_when_possible, topic, encoded)))
        return BlockingColumnSendFuture(topic, batches)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all records sent before are acknowledged or failed.

        Raises ClientTimeoutError after `timeout` seconds.
        """
        if not self._is_closed:
            self._loop_thread.run(self._engine.flush, timeout, "flush")

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Return the partitions of a topic and their leaders."""
        if self._is_closed:
            raise ClientClosedError("The producer is closed.")
        return self._loop_thread.run(
            lambda: self._engine.core.topic(topic, timeout_ms=self._settings.block_ms_max)
        ).partitions

    def watch_outages(self, callback: OutageCallback) -> None:
        """Call `callback(subject, error)` when a broker is unreachable, a topic deleted or a partition fails
        repeatedly, and `callback(subject, None)` when that is over. Retries go on meanwhile. Called in the client's own
        thread.
        """
        self._engine.core.outages.callback = callback

    def metrics(self) -> dict[str, float]:
        return self._engine.metrics()

    def close(self, timeout: float | None = None) -> None:
        """Deliver all records, then close.

        Records not delivered within `timeout` seconds fail with ClientClosedError.
        """
        with self._closing:
            if self._is_closed:
                return
            self._is_closed, self._takes_bytes_only = True, False
            try:
                self._loop_thread.run(lambda: self._engine.close(timeout))
            finally:
                self._ports.workers.close()
                self._loop_thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


async def _create_engine(
    settings: ProducerSettings, loop_thread: EventLoopThread
) -> tuple[ProducerEngine, RealClientPorts]:
    ports = real_client_ports(loop_thread.loop)
    lock = threading.Lock()
    engine = ProducerEngine(settings, ports, lock=lock, future=BlockingSendFuture, schedule=loop_thread.call_soon)
    return engine, ports
