"""The blocking consumer. An event loop on its own thread prefetches records and sends heartbeats.

    with Consumer(bootstrap_servers="127.0.0.1:9092", group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            print(record.offset, record.value)

A consumer may be used by one thread at a time; only `wakeup` is thread-safe.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from ottla.client.cluster_metadata import PartitionInfo
from ottla.client.column_batch import ColumnBatch
from ottla.client.consumer_async import CLOSE_SECONDS_MAX
from ottla.client.consumer_config import EARLIEST, LATEST, consumer_config
from ottla.client.consumer_engine import ConsumerEngine, PendingCallback, Step, StepType
from ottla.client.consumer_subscription import RebalanceCallback, RebalanceListener
from ottla.client.errors import ClientClosedError, ClientError
from ottla.client.fetch_collector import Chunk
from ottla.client.loop_thread import EventLoopThread, Work
from ottla.client.outages import OutageCallback
from ottla.client.real_ports import real_client_ports
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

T = TypeVar("T")


class Consumer:
    """Blocking consumer. Callbacks run in the polling thread.

    Configs are Kafka's: a mapping with dotted names, keywords with underscores, or both.
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
        """Call a function in the loop's thread and wait for its result."""

        async def work() -> T:
            return call(*arguments)

        return self._run(work)

    def _run(self, work: Work[T]) -> T:
        if self._is_closed:
            raise ClientClosedError("The consumer is closed.")
        return self._loop_thread.run(work)

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

        Callbacks get a list of partitions and are called from `poll` and iterations.
        """
        self._do(self._engine.subscription.subscribe, topics, RebalanceListener(on_assigned, on_revoked, on_lost))

    def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        self._run(self._engine.unsubscribe)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without group management. Partitions already assigned keep their positions."""
        self._do(self._engine.subscription.assign, partitions)

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._do(lambda: list(self._engine.positions.states))

    @property
    def subscription(self) -> list[str]:
        return self._do(lambda: list(self._engine.subscription.topics or ()))

    # Records

    def poll(self, timeout: float | None = None, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return up to `max_records` (max.poll.records) records; an empty list after `timeout` seconds without any."""
        found = self._step(StepType.RECORDS, timeout, max_records)
        return found if isinstance(found, list) else []

    def poll_batch(self, timeout: float | None = None) -> ColumnBatch | None:
        """Return the next fetch response as columns, or None after `timeout` seconds without one."""
        found = self._step(StepType.BATCH, timeout)
        return found if isinstance(found, ColumnBatch) else None

    def batches(self, timeout: float | None = None) -> Iterator[ColumnBatch]:
        """Iterate over fetch responses as columns, until `timeout` seconds pass without one.

        Columns hold bytes: deserializers and interceptors do not apply.
        """
        while (batch := self.poll_batch(timeout)) is not None:
            yield batch

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while not self._is_closed:
            chunk = self._step(StepType.CHUNK, None)
            assert isinstance(chunk, Chunk)
            yield from chunk

    def _step(self, kind: StepType, timeout: float | None, records_max: int | None = None) -> Step:
        engine = self._engine
        deadline_ms = None if timeout is None else engine.core.now_ms() + timeout * 1000
        while isinstance(step := self._run(lambda: engine.step(kind, deadline_ms, records_max)), PendingCallback):
            step.function(step.partitions)
        return step

    def wakeup(self) -> None:
        """Make the current or next poll raise WakeupError. Thread-safe."""
        if not self._is_closed:
            self._loop_thread.call_soon(self._engine.wakeup)

    # Positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at an offset."""
        self._do(self._engine.subscription.seek, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Move these partitions, or all, to their first record."""
        self._do(self._engine.subscription.seek_to_timestamp, partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Move these partitions, or all, to their end."""
        self._do(self._engine.subscription.seek_to_timestamp, partitions, LATEST)

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """Move to the first record at or after a time in milliseconds, or to the end if there is none."""
        if timestamp < 0:
            raise ValueError(f"timestamp must be >= 0, got {timestamp}")
        self._do(self._engine.subscription.seek_to_timestamp, partitions, timestamp)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until they are resumed."""
        self._do(self._engine.subscription.pause, partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._do(self._engine.subscription.resume, partitions)

    @property
    def paused(self) -> list[TopicPartition]:
        return self._do(
            lambda: [partition for partition, state in self._engine.positions.states.items() if state.is_paused]
        )

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record to be returned."""
        return self._run(lambda: self._engine.position(partition))

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets up to the end as of the last fetch, or None before the first fetch."""
        return self._do(self._engine.lag, partition)

    # Offsets

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit these offsets, or those of all returned records, and wait for the broker."""
        committer = self._engine.require_committer()
        self._run(lambda: committer.commit(offsets))

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: "Callable[[dict[TopicPartition, OffsetAndMetadata], ClientError | None], Any] | None" = None,
    ) -> None:
        """Start a commit. `callback` gets the offsets and the error, if any, in the consumer's own thread."""
        self._do(self._engine.require_committer().commit_soon, offsets, callback)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets of these partitions, or of the assigned ones; None where there is none."""
        committer, requested = self._engine.require_committer(), partitions or self.assignment
        return self._run(lambda: committer.committed(requested))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._run(lambda: self._engine.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record: with read_committed, that of the first open transaction."""
        return self._run(lambda: self._engine.end_offsets(partitions))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at or after a time in milliseconds for each partition, or None."""
        return self._run(lambda: self._engine.offsets_for_times(times))

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        return self._run(lambda: self._engine.core.topic(topic, timeout_ms=self._engine.api_timeout_ms)).partitions

    def watch_outages(self, callback: OutageCallback) -> None:
        """Call `callback(subject, error)` when a broker is unreachable or a topic deleted,
        and `callback(subject, None)` when that is over. Retries go on meanwhile. Called in the client's own thread.
        """
        self._engine.core.outages.callback = callback

    def metrics(self) -> dict[str, float]:
        """Return counters and the lag of each partition."""
        return self._do(self._engine.metrics)

    # Closing

    def close(self, timeout: float = CLOSE_SECONDS_MAX) -> None:
        """Commit if automatic, leave the group and close all connections."""
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

    def __exit__(self, *exc_info: object) -> None:
        self.close()
