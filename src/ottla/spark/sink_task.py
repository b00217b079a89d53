"""A write task: collects rows, sends them as columns, and waits for acknowledgements."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError
from ottla.spark.worker_process import freeze_imported_objects

if TYPE_CHECKING:
    from ottla.client.producer import BlockingColumnSendFuture, Producer
    from ottla.spark.sink_plan import SinkPlan

ROWS_MAX = 1 << 16
BYTES_MAX = 4 << 20
"""Amount collected before sending: with many partitions, a single Spark batch has few rows for each."""
IN_FLIGHT_MAX = 64
"""Limit of sends with unknown results."""


class SinkError(Exception):
    """A failed write, with topic, partition and cause."""


class ProducerPool:
    """Idle producers of a worker process, by config.

    Workers run one task after another. A new producer takes milliseconds to connect and get an id, a large part of a
    small micro-batch.
    """

    def __init__(self, producers_max: int = 8) -> None:
        self._idle: dict[tuple[tuple[str, str], ...], Producer] = {}
        self._producers_max = producers_max

    def acquire(self, configs: tuple[tuple[str, str], ...]) -> "Producer":
        """Return a producer for exclusive use until it is released."""
        found = self._idle.pop(configs, None)
        if found is not None:
            return found
        from ottla.client.producer import Producer

        return Producer(dict(configs))

    def release(self, configs: tuple[tuple[str, str], ...], producer: "Producer") -> None:
        if configs in self._idle or len(self._idle) >= self._producers_max:
            producer.close()
        else:
            self._idle[configs] = producer


@cache
def producer_pool() -> ProducerPool:
    """Return the pool of this process."""
    return ProducerPool()


def write_task(plan: "SinkPlan", batches: Iterator[Any]) -> dict[tuple[str, int], int]:
    """Write all rows and wait for acknowledgements.

    Return counts by topic and partition. Producers are not reused after errors.
    """
    producer = producer_pool().acquire(plan.kafka)
    writer = TaskWriter(plan, producer)
    try:
        for batch in batches:
            writer.add(batch)
        counts = writer.finish()
    except BaseException as error:
        producer.close(0)
        if isinstance(error, ClientError):
            raise SinkError(f"Writing failed: {error}") from error
        raise
    producer_pool().release(plan.kafka, producer)
    freeze_imported_objects()
    return counts


class TaskWriter:
    """Rows of one task on their way to the broker."""

    def __init__(self, plan: "SinkPlan", producer: "Producer") -> None:
        self._plan = plan
        self._producer = producer
        self._buffered: list[Any] = []
        self._buffered_rows = 0
        self._buffered_bytes = 0
        self._in_flight: list[BlockingColumnSendFuture] = []
        self._counts: dict[tuple[str, int], int] = {}

    def add(self, batch: Any) -> None:
        """Add a `pyarrow.RecordBatch`, and send if enough is collected."""
        self._buffered.append(batch)
        self._buffered_rows += batch.num_rows
        self._buffered_bytes += batch.nbytes
        if self._buffered_rows >= ROWS_MAX or self._buffered_bytes >= BYTES_MAX:
            self._send_buffered()

    def finish(self) -> dict[tuple[str, int], int]:
        """Send the rest and wait for all acknowledgements."""
        self._send_buffered()
        self._producer.flush()
        for sent in self._in_flight:
            self._count(sent)
        return dict(sorted(self._counts.items()))

    def _send_buffered(self) -> None:
        if not self._buffered_rows:
            return
        import pyarrow as pa

        table = pa.Table.from_batches(self._buffered)
        self._buffered, self._buffered_rows, self._buffered_bytes = [], 0, 0
        table = table.rename_columns(
            [name.lower() if name.lower() in self._plan.columns else name for name in table.column_names]
        )
        if self._plan.topic is not None:
            self._send(self._plan.topic, table)
        else:
            for topic, rows in _by_topic(table):
                self._send(topic, rows)
        self._check_in_flight()

    def _send(self, topic: str, table: Any) -> None:
        plan = self._plan

        def column(name: str) -> Any:
            return table.column(name).combine_chunks() if name in plan.columns else None

        keys = column("key") if plan.key is None else plan.key.encode(table, topic)
        values = column("value") if plan.value is None else plan.value.encode(table, topic)
        sent = self._producer.send_columns(
            topic,
            values,
            keys,
            timestamps=column("timestamp"),
            partitions=column("partition"),
            headers=column("headers"),
        )
        self._in_flight.append(sent)

    def _check_in_flight(self) -> None:
        """Count completed sends, raising the first error."""
        left = []
        for sent in self._in_flight:
            if sent.error() is not None or sent.done():
                self._count(sent)
            else:
                left.append(sent)
        while len(left) > IN_FLIGHT_MAX:
            self._count(left.pop(0))
        self._in_flight = left

    def _count(self, sent: "BlockingColumnSendFuture") -> None:
        for partition, count in sent.result().items():
            key = (sent.topic, partition)
            self._counts[key] = self._counts.get(key, 0) + count


def _by_topic(table: Any) -> "Iterator[tuple[str, Any]]":
    """Yield the rows of each topic, in order."""
    import pyarrow.compute as pc

    topics = table.column("topic").combine_chunks()
    if topics.null_count:
        raise SinkError("A row has no topic: column 'topic' is null. Fill the column, or set option 'topic'.")
    names = topics.unique().to_pylist()
    if len(names) == 1:
        yield names[0], table
        return
    for name in names:
        yield name, table.filter(pc.equal(topics, name))
