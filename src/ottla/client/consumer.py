"""The consumer's face for code that blocks; an event loop on a thread of its own fetches ahead and sends heartbeats.

    with Consumer(bootstrap_servers="127.0.0.1:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            print(record.offset, record.value)

A consumer belongs to one thread at a time; `wakeup` alone may be called from any.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from ottla.client.cluster_metadata import PartitionInfo
from ottla.client.column_batch import ColumnBatch
from ottla.client.consumer_async import CLOSE_SECONDS_MAX
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
from ottla.client.loop_thread import EventLoopThread, Work
from ottla.client.real_ports import real_client_ports
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

T = TypeVar("T")


class Consumer:
    """Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.

    Callbacks run in the thread that polls.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        self._config = consumer_config(config, keywords)
        self._loop_thread = EventLoopThread("ottla-consumer")
        self._is_closed = False

        async def start() -> ConsumerEngine:
            self._ports = real_client_ports(self._loop_thread.loop)
            return ConsumerEngine(self._config, self._ports)

        try:
            self._engine = self._loop_thread.run(start)
        except BaseException:
            self._loop_thread.close()
            raise

    def _do(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call it in the loop's thread, and wait."""

        async def work() -> T:
            return call(*arguments)

        return self._run(work)

    def _run(self, work: Work[T]) -> T:
        if self._is_closed:
            raise ClientClosedError("The consumer is closed.")
        return self._loop_thread.run(work)

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
        Callbacks are called with lists of partitions, from within `poll` and iterations."""
        self._do(self._engine.subscribe, topics, RebalanceListener(on_assigned, on_revoked, on_lost))

    def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        self._run(self._engine.unsubscribe)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without a group's say. Those that stay keep their place."""
        self._do(self._engine.assign, partitions)

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._do(lambda: list(self._engine.positions.states))

    @property
    def subscription(self) -> list[str]:
        return self._do(lambda: list(self._engine.subscribed or ()))

    # Records

    def poll(self, timeout: float | None = None, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Up to `max_records` (max.poll.records) records; an empty list after `timeout` seconds without any."""
        found = self._step(StepKind.RECORDS, timeout, max_records)
        return found if isinstance(found, list) else []

    def poll_batch(self, timeout: float | None = None) -> ColumnBatch | None:
        """The next fetch response as columns; None after `timeout` seconds without one."""
        found = self._step(StepKind.BATCH, timeout)
        return found if isinstance(found, ColumnBatch) else None

    def batches(self, timeout: float | None = None) -> Iterator[ColumnBatch]:
        """Fetch responses as columns, one after another; it ends after `timeout` seconds without one. Deserializers
        and interceptors are for records: columns hold bytes."""
        while (batch := self.poll_batch(timeout)) is not None:
            yield batch

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while not self._is_closed:
            chunk = self._step(StepKind.CHUNK, None)
            assert isinstance(chunk, Chunk)
            yield from chunk

    def _step(self, kind: StepKind, timeout: float | None, records_max: int | None = None) -> Step:
        engine = self._engine
        deadline_ms = None if timeout is None else engine.core.now_ms() + timeout * 1000
        while isinstance(step := self._run(lambda: engine.step(kind, deadline_ms, records_max)), PendingCallback):
            step.function(step.partitions)
        return step

    def wakeup(self) -> None:
        """Make a poll that waits, or the next one, raise WakeupError. May be called from any thread."""
        if not self._is_closed:
            self._loop_thread.call_soon(self._engine.wakeup)

    # Places

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset."""
        self._do(self._engine.seek, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Of these partitions, or of all."""
        self._do(self._engine.seek_to_timestamp, partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Of these partitions, or of all."""
        self._do(self._engine.seek_to_timestamp, partitions, LATEST)

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """To the first record at or after a time in milliseconds, or to the end where there is none."""
        if timestamp < 0:
            raise ValueError("a time is not negative")
        self._do(self._engine.seek_to_timestamp, partitions, timestamp)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until they are resumed."""
        self._do(self._engine.pause, partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._do(self._engine.resume, partitions)

    @property
    def paused(self) -> list[TopicPartition]:
        return self._do(
            lambda: [partition for partition, state in self._engine.positions.states.items() if state.is_paused]
        )

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that will be handed out."""
        return self._run(lambda: self._engine.position(partition))

    def lag(self, partition: TopicPartition) -> int | None:
        """How far the end is away, as of the last fetch; None before the first."""
        return self._do(self._engine.lag, partition)

    # Offsets

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit these offsets, or those of all records that were handed out, and wait until it is done."""
        committer = self._engine.require_committer()
        self._run(lambda: committer.commit(offsets))

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: "Callable[[dict[TopicPartition, OffsetAndMetadata], ClientError | None], Any] | None" = None,
    ) -> None:
        """Begin to commit; the callback hears the offsets, and the error if there was one, in the consumer's own
        thread.
        """
        self._do(self._engine.require_committer().commit_soon, offsets, callback)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed for these partitions, or for those that are assigned; None where it did not."""
        committer, wanted = self._engine.require_committer(), partitions or self.assignment
        return self._run(lambda: committer.committed(wanted))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._run(lambda: self._engine.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Behind the last record that can be read: with isolation.level=read_committed, before the first open
        transaction.
        """
        return self._run(lambda: self._engine.latest(partitions))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in milliseconds, for each partition; None where there is none."""
        return self._run(lambda: self._engine.offsets_for_times(times))

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        return self._run(lambda: self._engine.core.topic(topic, timeout_ms=self._engine.api_timeout_ms)).partitions

    def metrics(self) -> dict[str, float]:
        """Counters, and how far behind each partition is."""
        return self._do(self._engine.metrics)

    # The end

    def close(self, timeout: float = CLOSE_SECONDS_MAX) -> None:
        """Commit if that is automatic, leave the group, end all connections."""
        if self._is_closed:
            return
        try:
            call = self._run(self._engine.prepare_close)
            if call is not None:
                call.function(call.partitions)
        finally:
            self._is_closed = True
            self._loop_thread.run(lambda: self._engine.close(timeout * 1000))
            self._ports.workers.close()
            self._loop_thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
