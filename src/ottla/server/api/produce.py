"""Produce (key 0), versions 3–13: append batches to partitions.

Idempotent producers are served (KIP-98), topic ids from version 13 on (KIP-516), record errors from 8 on (KIP-467).
Skipped: transactional batches are refused; see docs/SKIPPED.md. As in Kafka a transactional id alone changes nothing.
"""

import contextlib
from functools import partial
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.runtime.broker import Broker, Partitions
from ottla.runtime.partition import INLINE_COMPRESSED_BYTES_MAX, Partition
from ottla.runtime.validation_process import validate_in_process
from ottla.server.connection import ServerConnection
from ottla.server.large_requests import encode_large
from ottla.wire.batch_validation import WORKER_BUDGET, BatchRejected, BudgetExceeded, ValidatedBatch, validate_batch
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.produce_codec import (
    TOPIC_IDS_MIN_VERSION,
    Appended,
    PartitionPart,
    TopicPart,
    pack_produced,
    pack_single,
    read_produce,
    read_single,
)

ACKS = (-1, 0, 1)
PARTS_AT_ONCE = 100
"""Batches of as many partitions take half a millisecond; of more of them, others have their turn in between."""
BATCH_ATTRIBUTES_AT = 22
CODEC_BITS = 7
ZSTD = 4
ZSTD_FROM = 7
"""A client of an older version could not read what it wrote (KIP-110)."""


class PartitionError(NamedTuple):
    """A partition that got an error instead of an offset."""

    partition: int
    error: ApiError
    log_start_offset: int = -1


class NeedsWorker(ApiError):
    """No answer: a batch that has not been appended yet, as it takes more than it looked. It owns its bytes."""

    def __init__(self, records: bytearray) -> None:
        super().__init__(ErrorCode.NONE)
        self.records = records


class AwaitingFlush(ApiError):
    """No answer yet: the batch is in the log, and must be on the disk before its producer may hear of it."""

    def __init__(self, partition: Partition, appended: Appended) -> None:
        super().__init__(ErrorCode.NONE)
        self.partition = partition
        self.appended = appended


class AppendFailed(ApiError):
    """The file system has refused a batch. Nothing of it was written, or it was cut off again: the client may send it once more."""

    def __init__(self, partition: Partition, error: OSError) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR)
        self.partition = partition
        self.error = error


Outcomes = list[tuple[bytes, list[Appended | PartitionError]]]


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
        # One partition, as nearly every request has it, in a straight line: a fifth of the time that the general way takes is saved.
        single = read_single(buffer, position, end)
        if single is not None:
            acks, topic, part = single
            broker = connection.broker
            partitions = broker.partitions_by_id.get(topic)
            if acks in ACKS and (
                part[2] - part[1] <= INLINE_COMPRESSED_BYTES_MAX or not _wants_worker(partitions, view, part)
            ):
                outcome = _append(partitions, version, view, part, broker.clock.now_ms())
                if outcome.__class__ is PartitionError:
                    return _answer_refused(connection, version, correlation_id, acks, [(topic, [outcome])])
                return not acks or connection.send_small(pack_single(correlation_id, topic, outcome))  # type: ignore[arg-type]
    _, acks, _, topics = read_produce(buffer, view, position, end, version)
    if acks not in ACKS:
        return _refuse_all(connection, version, correlation_id, acks, topics, ApiError(ErrorCode.INVALID_REQUIRED_ACKS))
    if len(topics) != 1 or len(topics[0][1]) != 1:
        topics = _each_once(topics)
    broker = connection.broker
    partitions_of = broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name
    if sum(len(wanted) for _, wanted in topics) > PARTS_AT_ONCE or any(
        _wants_worker(partitions_of.get(topic), view, part) for topic, wanted in topics for part in wanted
    ):
        # The request waits for a worker, or for others to have their turn, and so it owns its bytes: the buffer is for the next one.
        owned = memoryview(bytearray(view[:end]))
        connection.start_task(_append_inspected(connection, owned, version, correlation_id, acks, topics))
        return connection.defer()
    now_ms = broker.clock.now_ms()
    outcomes: Outcomes = []
    is_refused = False
    for topic, wanted in topics:
        partitions = partitions_of.get(topic)
        done: list[Appended | PartitionError] = []
        for part in wanted:
            outcome = _append(partitions, version, view, part, now_ms)
            is_refused = is_refused or outcome.__class__ is PartitionError
            done.append(outcome)
        outcomes.append((topic, done))
    if is_refused:
        return _answer_refused(connection, version, correlation_id, acks, outcomes)
    if acks:
        return connection.send_small(pack_produced(version, correlation_id, outcomes))  # type: ignore[arg-type]
    return True


def _partition(partitions: Partitions | None, index: int) -> Partition | None:
    return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None


def _wants_worker(partitions: Partitions | None, view: memoryview, part: PartitionPart) -> bool:
    """Whether a batch has to be decompressed, or compressed anew, and is too large for that to be done on the loop."""
    index, start, stop = part
    if stop - start <= INLINE_COMPRESSED_BYTES_MAX:
        return False
    partition = _partition(partitions, index)
    return partition is not None and partition.log.needs_worker_validation(view[start:stop])


def _append(
    partitions: Partitions | None,
    version: int,
    view: memoryview,
    part: PartitionPart,
    now_ms: int,
    validated: ValidatedBatch | None = None,
) -> Appended | PartitionError:
    index, start, stop = part
    partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
    if partition is None:
        unknown = version >= TOPIC_IDS_MIN_VERSION and partitions is None
        return PartitionError(
            index, ApiError(ErrorCode.UNKNOWN_TOPIC_ID if unknown else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        )
    if (
        version < ZSTD_FROM
        and stop - start > BATCH_ATTRIBUTES_AT
        and view[start + BATCH_ATTRIBUTES_AT] & CODEC_BITS == ZSTD
    ):
        return PartitionError(index, ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
    try:
        base_offset, append_time_ms = partition.append(view[start:stop] if start >= 0 else view[:0], now_ms, validated)
    except BatchRejected as error:
        return _rejected(partition, error)
    except BudgetExceeded:
        return PartitionError(index, NeedsWorker(bytearray(view[start:stop])))
    except OSError as error:
        return PartitionError(index, AppendFailed(partition, error))
    if not partition.flush_due_offset:
        return PartitionError(
            index, AwaitingFlush(partition, (index, base_offset, append_time_ms, partition.log.log_start_offset))
        )
    return index, base_offset, append_time_ms, partition.log.log_start_offset


def _rejected(partition: Partition, error: BatchRejected) -> PartitionError:
    """The error is kept, but not the way it came: that holds the bytes that were looked at, as long as nobody collects what is garbage."""
    error.__traceback__ = error.__context__ = None
    return PartitionError(partition.index, error, partition.log.log_start_offset if error.has_log_start else -1)


def _each_once(topics: list[TopicPart]) -> list[TopicPart]:
    """Of a partition that is named twice the last batch counts, and a topic without partitions is not answered: as in Kafka."""
    merged: dict[bytes, dict[int, PartitionPart]] = {}
    for topic, wanted in topics:
        if wanted:
            merged.setdefault(topic, {}).update((part[0], part) for part in wanted)
    return [(topic, list(parts.values())) for topic, parts in merged.items()]


async def _append_inspected(
    connection: ServerConnection,
    view: memoryview,
    version: int,
    correlation_id: int,
    acks: int,
    topics: list[TopicPart],
) -> None:
    """As `handle_raw`, with the batches inspected in a worker first; what was checked before is checked again at the append. Where there
    are many, others have their turn after every few of them."""
    broker = connection.broker
    partitions_of = broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name
    outcomes: Outcomes = []
    seen = 0
    for topic, wanted in topics:
        done: list[Appended | PartitionError] = []
        for part in wanted:
            seen += 1
            if seen % PARTS_AT_ONCE == 0:
                await broker.scheduler.next_slice()
            index, start, stop = part
            partition = _partition(partitions_of.get(topic), index)
            validated = None
            if partition is not None and _wants_worker(partitions_of.get(topic), view, part):
                try:
                    validated = await _inspected(connection, partition, view[start:stop])
                except BatchRejected as error:
                    done.append(_rejected(partition, error))
                    continue
            done.append(_append(partitions_of.get(topic), version, view, part, broker.clock.now_ms(), validated))
        outcomes.append((topic, done))
    if seen > PARTS_AT_ONCE and acks and _is_any_refused(outcomes):
        await _answer_many(connection, version, correlation_id, outcomes)
    else:
        _answer_later(connection, version, correlation_id, acks, outcomes)


async def _answer_many(connection: ServerConnection, version: int, correlation_id: int, outcomes: Outcomes) -> None:
    """What nothing is waited for any more, of many partitions: in slices, as an error of each takes 4 µs."""
    responses: list[TopicProduceResponse] = []
    for topic, done in outcomes:
        response = _topic_response(version, topic, [])
        for first in range(0, len(done), PARTS_AT_ONCE):
            some = done[first : first + PARTS_AT_ONCE]
            _look_at_storage(connection.broker, [(topic, some)], by_id=version >= TOPIC_IDS_MIN_VERSION)
            response.partition_responses += map(_partition_response, some)
            await connection.broker.scheduler.next_slice()
        responses.append(response)
    api = connection.apis[0]
    body = await encode_large(connection, api, version, ProduceResponse(responses=responses))
    connection.complete_deferred([connection.encode_response(api, version, correlation_id, body)])


def _is_any_refused(outcomes: Outcomes) -> bool:
    """And for good: nothing is waited for."""
    refused = [outcome.error for _, done in outcomes for outcome in done if isinstance(outcome, PartitionError)]
    return bool(refused) and not any(isinstance(error, NeedsWorker | AwaitingFlush) for error in refused)


async def _append_postponed(
    connection: ServerConnection, version: int, correlation_id: int, acks: int, outcomes: Outcomes
) -> None:
    """The batches that take more than they looked; all others of the request are appended already."""
    broker = connection.broker
    partitions_of = broker.partitions_by_id if version >= TOPIC_IDS_MIN_VERSION else broker.partitions_by_name
    for topic, done in outcomes:
        for at, outcome in enumerate(done):
            if isinstance(outcome, PartitionError) and isinstance(outcome.error, NeedsWorker):
                records = memoryview(outcome.error.records)
                partition = _partition(partitions_of.get(topic), outcome.partition)
                validated = None
                if partition is not None:
                    try:
                        validated = await _inspected(connection, partition, records)
                    except BatchRejected as error:
                        done[at] = _rejected(partition, error)
                        continue
                part = (outcome.partition, 0, len(records))
                done[at] = _append(partitions_of.get(topic), version, records, part, broker.clock.now_ms(), validated)
    _answer_later(connection, version, correlation_id, acks, outcomes)


async def _inspected(connection: ServerConnection, partition: Partition, records: memoryview) -> ValidatedBatch:
    """A worker looks at a batch; at one that takes much another process, while no other such is looked at."""
    broker = connection.broker
    with contextlib.suppress(BudgetExceeded):
        return await broker.workers.run(
            partial(validate_batch, records, partition.log.config.rules(), broker.clock.now_ms(), WORKER_BUDGET)
        )
    await broker.scheduler.large_requests.acquire(len(records))
    try:
        return await validate_in_process(
            broker.processes, broker.workers, records, partition.log.config.rules(), broker.clock.now_ms()
        )
    finally:
        broker.scheduler.large_requests.release()


def _answer_later(
    connection: ServerConnection, version: int, correlation_id: int, acks: int, outcomes: Outcomes
) -> None:
    if not any(isinstance(outcome, PartitionError) for _, done in outcomes for outcome in done):
        connection.complete_deferred([pack_produced(version, correlation_id, outcomes)] if acks else [])  # type: ignore[arg-type]
    else:
        _answer_refused(connection, version, correlation_id, acks, outcomes, later=True)


def _refuse_all(
    connection: ServerConnection, version: int, correlation_id: int, acks: int, topics: list[TopicPart], error: ApiError
) -> bool:
    outcomes: Outcomes = [(topic, [PartitionError(index, error) for index, _, _ in wanted]) for topic, wanted in topics]
    return _answer_refused(connection, version, correlation_id, acks, outcomes)


def _answer_refused(
    connection: ServerConnection,
    version: int,
    correlation_id: int,
    acks: int,
    outcomes: Outcomes,
    *,
    later: bool = False,
) -> bool:
    """An answer in which something is refused. A client that wants no answer learns of it by the closed connection."""
    if any(
        isinstance(outcome, PartitionError) and isinstance(outcome.error, NeedsWorker)
        for _, done in outcomes
        for outcome in done
    ):
        connection.start_task(_append_postponed(connection, version, correlation_id, acks, outcomes))
        return connection.defer()
    awaited = [
        outcome.error.partition
        for _, done in outcomes
        for outcome in done
        if isinstance(outcome, PartitionError) and isinstance(outcome.error, AwaitingFlush)
    ]
    if awaited:
        return _await_flush(connection, version, correlation_id, acks, outcomes, awaited)
    _look_at_storage(connection.broker, outcomes, by_id=version >= TOPIC_IDS_MIN_VERSION)
    if not acks:
        connection.close()
        return False
    response = ProduceResponse(responses=[_topic_response(version, topic, done) for topic, done in outcomes])
    frame = connection.encode_response(connection.apis[0], version, correlation_id, response)
    if later:
        connection.complete_deferred([frame])
        return True
    return connection.send([frame])


def _await_flush(
    connection: ServerConnection,
    version: int,
    correlation_id: int,
    acks: int,
    outcomes: Outcomes,
    awaited: list[Partition],
) -> bool:
    """Answer once all that was appended is on the disk. A client that wants no answer need not wait."""
    missing = len(awaited) if acks else 1

    def on_committed() -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            for _, done in outcomes:
                done[:] = map(_after_flush, done)
            _answer_later(connection, version, correlation_id, acks, outcomes)

    is_waiting = connection.defer()
    if acks:
        for partition in awaited:
            partition.call_when_committed(on_committed)
    else:
        connection.broker.loop.call_soon(on_committed)
    return is_waiting


def _after_flush(outcome: Appended | PartitionError) -> Appended | PartitionError:
    if not isinstance(outcome, PartitionError) or not isinstance(outcome.error, AwaitingFlush):
        return outcome
    if outcome.error.partition.is_removed:
        return PartitionError(outcome.partition, ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
    return outcome.error.appended


def _look_at_storage(broker: Broker, outcomes: Outcomes, *, by_id: bool) -> None:
    """Directories that have failed are told of, and partitions that such a one has taken away, or that are still to be opened, are said to
    be there."""
    for topic, done in outcomes:
        for at, outcome in enumerate(done):
            if not isinstance(outcome, PartitionError):
                continue
            if isinstance(outcome.error, AppendFailed):
                broker.log_directories.on_partition_failure(outcome.error.partition, outcome.error.error)
            elif outcome.error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                error = broker.missing_error(topic if by_id else topic.decode(errors="replace"), outcome.partition)
                if error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    done[at] = PartitionError(outcome.partition, ApiError(error))


def _topic_response(version: int, topic: bytes, done: list[Appended | PartitionError]) -> TopicProduceResponse:
    response = TopicProduceResponse(partition_responses=[_partition_response(outcome) for outcome in done])
    if version >= TOPIC_IDS_MIN_VERSION:
        response.topic_id = topic  # type: ignore[assignment]
    else:
        response.name = topic.decode(errors="replace")
    return response


def _partition_response(outcome: Appended | PartitionError) -> PartitionProduceResponse:
    if not isinstance(outcome, PartitionError):
        index, base_offset, append_time_ms, log_start_offset = outcome
        return PartitionProduceResponse(
            index=index, base_offset=base_offset, log_append_time_ms=append_time_ms, log_start_offset=log_start_offset
        )
    index, error, log_start_offset = outcome
    response = PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=log_start_offset,
        error_message=error.message,
    )
    if isinstance(error, BatchRejected):
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=text)
            for at, text in error.record_errors
        ]
    return response
