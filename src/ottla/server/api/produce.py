"""Produce (key 0), versions 3–13: append batches to partitions.

Idempotent producers are served (KIP-98), topic ids from version 13 on (KIP-516), record errors from 8 on (KIP-467).
Skipped: transactional batches are rejected; see docs/SKIPPED.md. As in Kafka a transactional id alone changes nothing.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.runtime.broker import Partitions
from ottla.runtime.partition import INLINE_COMPRESSED_BYTES_MAX, Partition
from ottla.runtime.slice_scheduler import ITEMS_PER_PIECE, in_pieces
from ottla.runtime.validation_process import validate_in_process
from ottla.server.connection import ServerConnection
from ottla.server.large_requests import encode_large
from ottla.server.produce_response import (
    PRODUCE,
    AppendFailed,
    AwaitingFlush,
    NeedsWorker,
    Outcome,
    Outcomes,
    PartitionError,
    ProduceContext,
    error_response,
    errors_of,
    needs_worker,
    rejected,
    respond,
)
from ottla.wire.batch_validation import WORKER_BUDGET, BatchRejected, BudgetExceeded, ValidatedBatch, validate_batch
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.produce_codec import (
    TOPIC_IDS_MIN_VERSION,
    PartitionPart,
    TopicPart,
    pack_produce_response,
    pack_single_produce_response,
    read_produce,
    read_single_partition,
)
from ottla.wire.schema import SlicedWork

ACKS = (-1, 0, 1)
BATCHES_PER_PIECE = 4
"""Each takes some microseconds, or up to a millisecond if it is large."""
PIECE_BYTES_MAX = 128 << 10
"""Up to this size the batches of a few partitions are appended at once."""
BATCH_ATTRIBUTES_AT = 22
CODEC_BITS = 7
ZSTD = 4
ZSTD_MIN_VERSION = 7
"""A client of an older version could not read what it wrote (KIP-110)."""


def handle_raw(
    connection: ServerConnection,
    buffer: bytearray,
    view: memoryview,
    position: int,
    end: int,
    version: int,
    correlation_id: int,
) -> bool:
    if version >= TOPIC_IDS_MIN_VERSION:
        # Nearly every request has a single partition: a straight line takes a fifth less time than the general path.
        single = read_single_partition(buffer, position, end)
        if single is not None:
            acks, topic, part = single
            broker = connection.broker
            partitions = broker.partitions_by_id.get(topic)
            if acks in ACKS and (
                part[2] - part[1] <= INLINE_COMPRESSED_BYTES_MAX or not _is_for_worker(partitions, view, part)
            ):
                outcome = _append(partitions, version, view, part, broker.clock.now_ms())
                if outcome.__class__ is PartitionError:
                    return _respond(ProduceContext(connection, version, correlation_id, acks), [(topic, [outcome])])
                return not acks or connection.send_small(pack_single_produce_response(correlation_id, topic, outcome))  # type: ignore[arg-type]
    _, acks, _, topics = read_produce(buffer, view, position, end, version)
    count = 0
    for _, parts in topics:
        count += len(parts)
    if acks in ACKS and (count == 1 or (count <= ITEMS_PER_PIECE and end - position <= PIECE_BYTES_MAX)):
        # A single piece: there is nothing to schedule.
        broker = connection.broker
        by_topic = broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name
        now_ms = broker.clock.now_ms()
        if count != 1 or len(topics) != 1:
            topics = _without_duplicates(topics)
        outcomes = [
            (topic, _append_parts(by_topic.get(topic), version, view, parts, now_ms)) for topic, parts in topics
        ]
        for _, done in outcomes:
            if PartitionError in map(type, done):
                return _respond(ProduceContext(connection, version, correlation_id, acks), outcomes)
        return not acks or connection.send_small(pack_produce_response(version, correlation_id, outcomes))  # type: ignore[arg-type]
    context = ProduceContext(connection, version, correlation_id, acks)
    if acks in ACKS:
        return ProduceOperation(context, view, _without_duplicates(topics)).handle(end)
    error = ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    return _respond(context, [(topic, [PartitionError(part[0], error) for part in parts]) for topic, parts in topics])


def _partitions_of(context: ProduceContext, topic: bytes) -> Partitions | None:
    broker = context.connection.broker
    by_topic = broker.partitions_by_id if context.version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name
    return by_topic.get(topic)


def _partition(partitions: Partitions | None, index: int) -> Partition | None:
    return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None


def _is_for_worker(partitions: Partitions | None, view: memoryview, part: PartitionPart) -> bool:
    """Return whether a large batch must be decompressed or recompressed, which is not done on the loop."""
    index, start, stop = part
    partition = _partition(partitions, index)
    return partition is not None and partition.log.needs_worker_validation(view[start:stop])


def _append_parts(
    partitions: Partitions | None, version: int, view: memoryview, parts: Sequence[PartitionPart], now_ms: int
) -> list[Outcome]:
    """Append batches, except those that need a worker."""
    return [
        _append(partitions, version, view, part, now_ms)
        if part[2] - part[1] <= INLINE_COMPRESSED_BYTES_MAX or not _is_for_worker(partitions, view, part)
        else PartitionError(part[0], NeedsWorker(bytearray(view[part[1] : part[2]])))
        for part in parts
    ]


def _append(
    partitions: Partitions | None,
    version: int,
    view: memoryview,
    part: PartitionPart,
    now_ms: int,
    validated: ValidatedBatch | None = None,
) -> Outcome:
    index, start, stop = part
    partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
    if partition is None:
        unknown = version >= TOPIC_IDS_MIN_VERSION and partitions is None
        return PartitionError(
            index, ApiError(ErrorCode.UNKNOWN_TOPIC_ID if unknown else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        )
    if (
        version < ZSTD_MIN_VERSION
        and stop - start > BATCH_ATTRIBUTES_AT
        and view[start + BATCH_ATTRIBUTES_AT] & CODEC_BITS == ZSTD
    ):
        return PartitionError(index, ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
    try:
        base_offset, append_time_ms = partition.append(view[start:stop] if start >= 0 else view[:0], now_ms, validated)
    except BatchRejected as error:
        return rejected(partition, error)
    except BudgetExceeded:
        return PartitionError(index, NeedsWorker(bytearray(view[start:stop])))
    except OSError as error:
        return PartitionError(index, AppendFailed(partition, error))
    if not partition.flush_due_offset:
        return PartitionError(
            index, AwaitingFlush(partition, (index, base_offset, append_time_ms, partition.log.log_start_offset))
        )
    return index, base_offset, append_time_ms, partition.log.log_start_offset


def _without_duplicates(topics: list[TopicPart]) -> list[TopicPart]:
    """As in Kafka the last batch of a partition counts, and a topic without partitions gets no response."""
    merged: dict[bytes, dict[int, PartitionPart]] = {}
    for topic, parts in topics:
        if parts:
            merged.setdefault(topic, {}).update((part[0], part) for part in parts)
    return [(topic, list(parts.values())) for topic, parts in merged.items()]


class ProduceOperation:
    """A request of several partitions: appends as many batches as fit a slice at once, and the others in later
    slices."""

    __slots__ = ("_context", "_has_errors", "_outcomes", "_topics", "_view")

    def __init__(self, context: ProduceContext, view: memoryview, topics: list[TopicPart]) -> None:
        self._context = context
        self._view = view
        self._topics = topics
        self._outcomes: Outcomes = []
        self._has_errors = False

    def handle(self, end: int) -> bool:
        """Respond, or defer the request. Returns what a raw handler does."""
        connection, version, correlation_id, acks = self._context
        response = connection.broker.scheduler.start(self._append_all())
        if asyncio.iscoroutine(response):
            self._view = memoryview(bytearray(self._view[:end]))  # the receive buffer is used for the next request
            connection.start_task(self._finish(response))
            return connection.defer()
        if response is not None:
            return connection.send(
                [connection.encode_response(connection.apis[PRODUCE], version, correlation_id, response)]
            )
        if self._has_errors:
            return _respond(self._context, self._outcomes)
        return not acks or connection.send_small(pack_produce_response(version, correlation_id, self._outcomes))  # type: ignore[arg-type]

    def _append_all(self) -> SlicedWork[ProduceResponse | None]:
        """Append the batches, and return the response if it has errors. Topics may be deleted while others have their
        slices."""
        context = self._context
        broker, version = context.connection.broker, context.version
        by_topic = broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name
        for topic, parts in self._topics:
            done: list[Outcome] = []
            self._outcomes.append((topic, done))
            for some in in_pieces(parts, BATCHES_PER_PIECE):
                partitions, now_ms = by_topic.get(topic), broker.clock.now_ms()
                done += _append_parts(partitions, version, self._view, some, now_ms)
                yield
            self._has_errors = self._has_errors or PartitionError in map(type, done)
        return (yield from error_response(context, self._outcomes)) if self._has_errors else None

    async def _finish(self, rest: Coroutine[Any, Any, ProduceResponse | None]) -> None:
        response = await rest
        if needs_worker(errors_of(self._outcomes)):
            await _append_postponed(self._context, self._outcomes)
            response = await self._context.connection.broker.scheduler.run(
                error_response(self._context, self._outcomes)
            )
        if response is None:
            respond(self._context, self._outcomes, errors_of(self._outcomes), is_deferred=True)
            return
        connection, version, correlation_id, _ = self._context
        body = await encode_large(connection, connection.apis[PRODUCE], version, response)
        connection.complete_deferred(
            [connection.encode_response(connection.apis[PRODUCE], version, correlation_id, body)]
        )


def _respond(context: ProduceContext, outcomes: Outcomes) -> bool:
    """Respond, or defer the request until its batches are validated and fsynced. Returns what a raw handler does."""
    errors = errors_of(outcomes)
    if not needs_worker(errors):
        return respond(context, outcomes, errors)
    context.connection.start_task(_append_postponed_and_respond(context, outcomes))
    return context.connection.defer()


async def _append_postponed_and_respond(context: ProduceContext, outcomes: Outcomes) -> None:
    await _append_postponed(context, outcomes)
    respond(context, outcomes, errors_of(outcomes), is_deferred=True)


async def _append_postponed(context: ProduceContext, outcomes: Outcomes) -> None:
    """Append the batches that need a worker; all others of the request are appended already."""
    clock = context.connection.broker.clock
    for topic, done in outcomes:
        for at, outcome in enumerate(done):
            if not isinstance(outcome, PartitionError) or not isinstance(outcome.error, NeedsWorker):
                continue
            records = memoryview(outcome.error.records)
            partition = _partition(_partitions_of(context, topic), outcome.partition)
            validated = None
            if partition is not None:
                try:
                    validated = await _validate(context.connection, partition, records)
                except BatchRejected as error:
                    done[at] = rejected(partition, error)
                    continue
            part = (outcome.partition, 0, len(records))
            done[at] = _append(
                _partitions_of(context, topic), context.version, records, part, clock.now_ms(), validated
            )


async def _validate(connection: ServerConnection, partition: Partition, records: memoryview) -> ValidatedBatch:
    """Validate a batch in a worker, or in a child process if that takes long: one such batch at a time."""
    broker = connection.broker
    rules = partition.log.config.rules()
    with contextlib.suppress(BudgetExceeded):
        return await broker.workers.run(partial(validate_batch, records, rules, broker.clock.now_ms(), WORKER_BUDGET))
    throttle = broker.scheduler.large_requests
    await throttle.acquire(len(records))
    try:
        return await validate_in_process(broker.processes, broker.workers, records, rules, broker.clock.now_ms())
    finally:
        throttle.release()
