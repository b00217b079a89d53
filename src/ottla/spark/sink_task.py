"""The part of a write that one task does: rows are collected, sent as columns, and waited for."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from ottla.client.producer import BlockingColumnSendFuture, Producer
    from ottla.spark.sink_plan import SinkPlan

ROWS_MAX = 1 << 16
BYTES_MAX = 4 << 20
"""So much is collected before it is sent: with many partitions a batch of Spark's is small for each."""
IN_FLIGHT_MAX = 64
"""Of sends whose outcome nobody has looked at."""


class SinkError(Exception):
    """A write that failed, with topic, partition and cause."""


class ProducerPool:
    """The producers of a worker process by their configs. Workers serve one task after another, and a new producer takes milliseconds to
    connect and to be given an id: much of what a small micro-batch costs."""

    def __init__(self, producers_max: int = 8) -> None:
        self._idle: dict[tuple[tuple[str, str], ...], Producer] = {}
        self._producers_max = producers_max

    def acquire(self, configs: tuple[tuple[str, str], ...]) -> "Producer":
        """One that nobody else uses until it is given back."""
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
    """That of this process."""
    return ProducerPool()


def write_task(plan: "SinkPlan", batches: Iterator[Any]) -> dict[tuple[str, int], int]:
    """Write all rows and wait until they are acknowledged; how many went where. A producer that failed is not used again."""
    producer = producer_pool().acquire(plan.kafka)
    writer = TaskWriter(plan, producer)
    try:
        for batch in batches:
            writer.add(batch)
        counts = writer.finish()
    except BaseException as error:
        producer.close(0)
        if isinstance(error, ClientError):
            raise SinkError(f"Writing to Kafka failed: {error}") from error
        raise
    producer_pool().release(plan.kafka, producer)
    return counts


class TaskWriter:
    """Rows on their way from one task."""

    def __init__(self, plan: "SinkPlan", producer: "Producer") -> None:
        self._plan = plan
        self._producer = producer
        self._buffered: list[Any] = []
        self._buffered_rows = 0
        self._buffered_bytes = 0
        self._in_flight: list[BlockingColumnSendFuture] = []
        self._counts: dict[tuple[str, int], int] = {}

    def add(self, batch: Any) -> None:
        """Take a `pyarrow.RecordBatch`; send when enough came together."""
        self._buffered.append(batch)
        self._buffered_rows += batch.num_rows
        self._buffered_bytes += batch.nbytes
        if self._buffered_rows >= ROWS_MAX or self._buffered_bytes >= BYTES_MAX:
            self._send_buffered()

    def finish(self) -> dict[tuple[str, int], int]:
        """Send the rest and wait for everything."""
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
        """Fail as soon as something has; let go of what is acknowledged."""
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
    """The rows of each topic, in their order."""
    import pyarrow.compute as pc

    topics = table.column("topic").combine_chunks()
    if topics.null_count:
        raise SinkError("A row has no topic: its column 'topic' is null. Fill it, or give the option 'topic'.")
    names = topics.unique().to_pylist()
    if len(names) == 1:
        yield names[0], table
        return
    for name in names:
        yield name, table.filter(pc.equal(topics, name))
