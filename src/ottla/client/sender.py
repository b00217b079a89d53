"""The producer's sender as a state machine: which batch goes to which broker, when, and what follows a response.

Order and exactly-once delivery per partition rest on three rules. A batch keeps its sequence number across retries.
While a batch waits for a retry, its partition has one batch in flight at a time, oldest first. When a sequence number
is lost (a batch expired, or was rejected after others followed it), the partition continues at sequence 0 of the next
epoch, once it has nothing in flight.
"""

from collections.abc import Callable

from ottla.base.errors import ErrorCode
from ottla.client.accumulator import PartitionQueue, RecordAccumulator
from ottla.client.backoff import Backoff
from ottla.client.batch import NO_OFFSET, ProducerBatch
from ottla.client.cluster_metadata import NO_LEADER, ClusterMetadata
from ottla.client.errors import RETRIABLE, STALE_METADATA, ClientError, ClientTimeoutError, broker_error, error_code
from ottla.client.outages import OutageMonitor
from ottla.client.producer_config import ProducerSettings

EPOCH_MAX = 32_767
SEQUENCE_MASK = 0x7FFF_FFFF
REQUEST_OVERHEAD = 512
"""Bytes of a request besides its batches, including topic names and ids."""
PARTITION_OVERHEAD = 64

OUTAGE_ATTEMPTS_MIN = 3
"""Fewer attempts of a batch are part of normal operation, such as a leader change."""
_OTHER_OUTAGES = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Errors that are reported as outages of a broker or of a topic."""
_SEQUENCE_ERRORS = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)


class PendingProduce:
    """A Produce request: batches of different partitions for one broker."""

    __slots__ = ("batches", "node", "size")

    def __init__(self, node: int) -> None:
        self.node = node
        self.batches: list[tuple[PartitionQueue, ProducerBatch]] = []
        self.size = REQUEST_OVERHEAD


class Sender:
    """Call `poll` until it returns nothing; then again at `next_ms`, and after new batches, responses or metadata."""

    def __init__(
        self, settings: ProducerSettings, accumulator: RecordAccumulator, cluster: ClusterMetadata, backoff: Backoff
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._cluster = cluster
        self._backoff = backoff
        self._in_flight: dict[int, int] = {}
        self.outages = OutageMonitor()
        self.identity: tuple[int, int] | None = None
        """Producer id and epoch, once known."""
        self.is_flushing = 0
        self.is_closing = False
        self.next_ms: float | None = None
        self.needs_identity = False
        self.needs_metadata = False
        self.counts = dict.fromkeys(
            ("requests", "batches", "records", "bytes", "retries", "splits", "errors", "acknowledged"), 0
        )

    def in_flight(self, node: int) -> int:
        return self._in_flight.get(node, 0)

    # Selecting batches

    def poll(self, now_ms: float, can_send: Callable[[int], bool]) -> list[PendingProduce]:
        """Return at most one request per broker. Their batches count as in flight from now on."""
        self.next_ms = None
        ready: dict[int, PendingProduce] = {}
        open_nodes: dict[int, bool] = {}
        expired: list[ProducerBatch] = []
        accumulator = self._accumulator
        with accumulator.lock:
            for queue in list(accumulator.active):
                self._expire(queue, now_ms, expired)
                if queue.batches:
                    self._maybe_take(queue, now_ms, ready, open_nodes, can_send)
                elif not queue.in_flight:
                    del accumulator.active[queue]
        for batch in expired:
            self._fail(batch, self._timeout_error(batch))
        return list(ready.values())

    def _timeout_error(self, batch: ProducerBatch) -> ClientError:
        """Return the error of an expired batch, with the reason why it was not delivered, if one is known."""
        seconds = self._settings.delivery_timeout_ms / 1000
        records = "1 record" if batch.count == 1 else f"{batch.count} records"
        message = (
            f"{records} for partition {batch.partition} of topic {batch.topic!r} "
            f"{'was' if batch.count == 1 else 'were'} not delivered within {seconds:g} s."
        )
        reason = batch.last_error
        if reason is None or reason.code == ErrorCode.NETWORK_EXCEPTION:
            reason = self.outages.latest or reason
        if reason is None and self._cluster.leader(batch.topic, batch.partition) == NO_LEADER:
            reason = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader.")
        if reason is None and batch.attempts:
            reason = ClientTimeoutError("The broker did not respond.")
        if reason is not None:
            return ClientTimeoutError(f"{message} {reason.message}", advice=reason.advice)
        return ClientTimeoutError(
            message, advice="Check that the partition's leader is reachable, or raise delivery.timeout.ms."
        )

    def _maybe_take(
        self,
        queue: PartitionQueue,
        now_ms: float,
        ready: dict[int, PendingProduce],
        open_nodes: dict[int, bool],
        can_send: Callable[[int], bool],
    ) -> None:
        batch = queue.batches[0]
        if not self._is_ready(queue, batch, now_ms):
            return
        if queue.in_flight and (queue.retrying or queue.needs_reset):
            return
        node = self._cluster.leader(queue.topic, queue.partition)
        if node == NO_LEADER:
            self.needs_metadata = True
            return
        if self._settings.is_idempotent and self.identity is None:
            self.needs_identity = True
            return
        if queue.needs_reset and not self._bump_epoch(queue):
            return
        if node not in open_nodes:
            open_nodes[node] = self.in_flight(node) < self._settings.in_flight_max and can_send(node)
        if not open_nodes[node]:
            return
        pending = ready.get(node)
        size = len(batch.buffer) + PARTITION_OVERHEAD
        if pending is None:
            pending = ready[node] = PendingProduce(node)
            self._in_flight[node] = self.in_flight(node) + 1
        elif pending.size + size > self._settings.request_size_max:
            return
        pending.size += size
        pending.batches.append((queue, batch))
        self._take(queue, batch)

    def _is_ready(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: float) -> bool:
        if batch.attempts:
            if batch.retry_at_ms <= now_ms:
                return True
            self._schedule(batch.retry_at_ms)
            return False
        if len(queue.batches) > 1 or batch is not queue.open or len(batch.buffer) >= batch.limit:
            return True
        if self.is_flushing or self.is_closing or self._accumulator.is_out_of_memory:
            return True
        due_ms = batch.created_ms + self._settings.linger_ms
        if due_ms <= now_ms:
            return True
        self._schedule(due_ms)
        return False

    def _take(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.batches.popleft()
        if queue.open is batch:
            queue.open = None
        if batch.attempts:
            queue.retrying -= 1
        if self.identity is not None and not batch.has_sequence:
            if (queue.producer_id, queue.epoch) != self.identity and not queue.in_flight:
                queue.producer_id, queue.epoch = self.identity
                queue.next_sequence = 0
            self._assign_sequence(queue, batch)
        queue.in_flight.append(batch)
        batch.attempts += 1

    def _assign_sequence(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.producer_id, batch.epoch, batch.sequence = queue.producer_id, queue.epoch, queue.next_sequence
        batch.is_sealed = False
        queue.next_sequence = queue.next_sequence + batch.count & SEQUENCE_MASK

    def _bump_epoch(self, queue: PartitionQueue) -> bool:
        """Start a new epoch for the partition. Returns False if a new producer id is needed first."""
        assert self.identity is not None
        if (queue.producer_id, queue.epoch) == self.identity:
            producer_id, epoch = self.identity
            if epoch >= EPOCH_MAX:
                self.identity = None
                self.needs_identity = True
                return False
            self.identity = (producer_id, epoch + 1)
        queue.producer_id, queue.epoch = self.identity
        queue.next_sequence = 0
        queue.needs_reset = False
        for batch in queue.batches:
            if batch.has_sequence:
                self._assign_sequence(queue, batch)
        return True

    def _expire(self, queue: PartitionQueue, now_ms: float, expired: list[ProducerBatch]) -> None:
        """Fail batches past their delivery timeout, also those in flight."""
        timeout_ms = self._settings.delivery_timeout_ms
        for batch in queue.in_flight:
            if not batch.is_done:
                self._maybe_expire(batch, now_ms, timeout_ms, expired)
        while queue.batches and self._maybe_expire(queue.batches[0], now_ms, timeout_ms, expired):
            batch = queue.batches.popleft()
            if queue.open is batch:
                queue.open = None
            if batch.attempts:
                queue.retrying -= 1
            if batch.has_sequence:
                queue.needs_reset = True

    def _maybe_expire(
        self, batch: ProducerBatch, now_ms: float, timeout_ms: float, expired: list[ProducerBatch]
    ) -> bool:
        if batch.created_ms + timeout_ms <= now_ms:
            expired.append(batch)
            return True
        self._schedule(batch.created_ms + timeout_ms)
        return False

    def _schedule(self, due_ms: float) -> None:
        if self.next_ms is None or due_ms < self.next_ms:
            self.next_ms = due_ms

    # Outcomes

    def on_sent(self, pending: PendingProduce) -> None:
        """Count a request that was sent."""
        counts = self.counts
        counts["requests"] += 1
        for _, batch in pending.batches:
            counts["batches"] += 1
            counts["records"] += batch.count
            counts["bytes"] += len(batch.buffer)
            counts["retries"] += batch.count if batch.attempts > 1 else 0

    def on_request_failed(self, pending: PendingProduce, error: ClientError, now_ms: float) -> None:
        """Retry the batches with the same sequences: without a response it is unknown whether they were appended."""
        self._in_flight[pending.node] -= 1
        for queue, batch in pending.batches:
            self._on_result(queue, batch, error.code, error, now_ms, is_answer=False)

    def on_sent_without_acks(self, pending: PendingProduce) -> None:
        """Complete the batches of a request with acks=0, which has no response."""
        self._in_flight[pending.node] -= 1
        for queue, batch in pending.batches:
            queue.in_flight.remove(batch)
            self._succeed(batch, NO_OFFSET, -1)

    def on_response(self, pending: PendingProduce) -> None:
        """A response arrived; `on_partition_response` follows for each of its partitions."""
        self._in_flight[pending.node] -= 1

    def on_partition_response(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        number: int,
        message: str | None,
        base_offset: int,
        log_append_ms: int,
        record_errors: dict[int, str | None],
        now_ms: float,
    ) -> None:
        """Apply the result of one batch."""
        code = error_code(number)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            queue.in_flight.remove(batch)
            if not batch.is_done:
                self._succeed(batch, base_offset if code == ErrorCode.NONE else NO_OFFSET, log_append_ms)
            return
        error = broker_error(number, message, about=f"partition {batch.partition} of topic {batch.topic!r}")
        self._on_result(queue, batch, code, error, now_ms, is_answer=True, record_errors=record_errors)

    def _on_result(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        code: ErrorCode,
        error: ClientError,
        now_ms: float,
        *,
        is_answer: bool,
        record_errors: dict[int, str | None] | None = None,
    ) -> None:
        queue.in_flight.remove(batch)
        if batch.is_done:
            queue.needs_reset |= batch.has_sequence  # expired in flight: it may or may not be in the log
            return
        if code in STALE_METADATA:
            self.needs_metadata = True
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(queue, batch)
            return
        if code in _SEQUENCE_ERRORS and batch.has_sequence:
            if not self._has_older(queue, batch):
                queue.needs_reset = True  # no older batch: the broker lost its producer state
            self._requeue(queue, batch, error, now_ms)
            return
        if code in RETRIABLE and batch.attempts <= self._settings.retries_max:
            self._requeue(queue, batch, error, now_ms)
            return
        if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED):
            self.identity = None
        self._maybe_reclaim_sequence(queue, batch, is_known=is_answer and batch.attempts == 1)
        self._fail(batch, error, record_errors)

    def _has_older(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        waiting = any(other.has_sequence and other.serial < batch.serial for other in queue.batches)
        return waiting or any(other.serial < batch.serial for other in queue.in_flight)

    def _requeue(self, queue: PartitionQueue, batch: ProducerBatch, error: ClientError, now_ms: float) -> None:
        """Return a batch to the waiting ones, in order."""
        batch.last_error = error
        if batch.attempts >= OUTAGE_ATTEMPTS_MIN and error.code not in _OTHER_OUTAGES:
            self.outages.begin(f"{batch.topic}-{batch.partition}", error)
        batch.retry_at_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        self._insert(queue, [batch])

    def _insert(self, queue: PartitionQueue, batches: list[ProducerBatch]) -> None:
        with self._accumulator.lock:
            position = 0
            for waiting in queue.batches:
                if waiting.serial > batches[0].serial:
                    break
                position += 1
            for batch in reversed(batches):
                queue.batches.insert(position, batch)
            queue.retrying += len(batches)
            self._accumulator.active[queue] = None

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Replace a batch by its parts.

        They take its sequences: the broker did not append it, so later batches are unaffected.
        """
        parts = self._accumulator.split(batch)
        sequence = batch.sequence
        for part in parts:
            part.attempts = 1
            part.codec = 0
            if batch.has_sequence:
                part.producer_id, part.epoch, part.sequence = batch.producer_id, batch.epoch, sequence
                sequence = sequence + part.count & SEQUENCE_MASK
        self.counts["splits"] += 1
        self._insert(queue, parts)

    def _maybe_reclaim_sequence(self, queue: PartitionQueue, batch: ProducerBatch, *, is_known: bool) -> None:
        """Reuse the sequence of a rejected batch if no other batch followed it; otherwise the partition needs a new
        epoch.
        """
        if not batch.has_sequence:
            return
        is_last = (
            not queue.in_flight
            and not queue.retrying
            and queue.next_sequence == (batch.sequence + batch.count & SEQUENCE_MASK)
        )
        if is_known and is_last:
            queue.next_sequence = batch.sequence
        else:
            queue.needs_reset = True

    def _succeed(self, batch: ProducerBatch, base_offset: int, log_append_ms: int) -> None:
        self.counts["acknowledged"] += batch.count
        if batch.last_error is not None:
            self.outages.end(f"{batch.topic}-{batch.partition}")
        batch.succeed(base_offset, log_append_ms)
        self._accumulator.finish(batch)

    def _fail(
        self, batch: ProducerBatch, error: ClientError, record_errors: dict[int, str | None] | None = None
    ) -> None:
        self.counts["errors"] += batch.count
        batch.fail(error, record_errors)
        self._accumulator.finish(batch)

    def fail_all(self, error: ClientError) -> None:
        """Fail all batches that are not done, on close."""
        with self._accumulator.lock:
            batches = list(self._accumulator.incomplete)
        for batch in batches:
            self._fail(batch, error)
