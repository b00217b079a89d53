"""Responses to Produce requests: errors, and waiting for an fsync. Most requests have neither (see
`api/produce.py`)."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition
from ottla.runtime.slice_scheduler import in_pieces
from ottla.server.connection import ServerConnection
from ottla.wire.batch_validation import BatchRejected
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.wire.produce_codec import TOPIC_IDS_MIN_VERSION, Appended, pack_produce_response
from ottla.wire.schema import SlicedWork

PRODUCE = 0
UNKNOWN_ERRORS = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class PartitionError(NamedTuple):
    """Outcome of a partition without an offset: an error, or a reason to wait."""

    partition: int
    error: ApiError
    log_start_offset: int = -1


class NeedsWorker(ApiError):
    """The batch has not been appended yet: its validation takes too long for the loop. Owns the bytes of the batch."""

    def __init__(self, records: bytearray) -> None:
        super().__init__(ErrorCode.NONE)
        self.records = records


class AwaitingFlush(ApiError):
    """The batch is in the log, and must be fsynced before the producer gets its response."""

    def __init__(self, partition: Partition, appended: Appended) -> None:
        super().__init__(ErrorCode.NONE)
        self.partition = partition
        self.appended = appended


class AppendFailed(ApiError):
    """The file system could not write the batch. No part of it remains in the log: the client may retry."""

    def __init__(self, partition: Partition, error: OSError) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR)
        self.partition = partition
        self.error = error


Outcome = Appended | PartitionError
Outcomes = list[tuple[bytes, list[Outcome]]]
"""The outcomes of all partitions by topic."""


class ProduceContext(NamedTuple):
    """Fields of the request that its response depends on."""

    connection: ServerConnection
    version: int
    correlation_id: int
    acks: int


def rejected(partition: Partition, error: BatchRejected) -> PartitionError:
    """The error of a batch. Its traceback would keep the validated bytes in memory until the garbage collector runs."""
    error.__traceback__ = error.__context__ = None
    return PartitionError(partition.index, error, partition.log.log_start_offset if error.has_log_start else -1)


def errors_of(outcomes: Outcomes) -> list[ApiError]:
    return [outcome.error for _, done in outcomes for outcome in done if isinstance(outcome, PartitionError)]


def needs_worker(errors: list[ApiError]) -> bool:
    return NeedsWorker in map(type, errors)


def respond(context: ProduceContext, outcomes: Outcomes, errors: list[ApiError], *, is_deferred: bool = False) -> bool:
    """Respond, or defer the request until its batches are fsynced. Returns a raw handler's result.

    With acks=0 there is no response: an error closes the connection.
    """
    connection, version, correlation_id, acks = context
    if AwaitingFlush in map(type, errors):
        return _await_flush(context, outcomes, errors)
    if errors and not acks:
        _report_failures(connection.broker, errors)
        connection.close()
        return False
    if errors:
        _report_failures(connection.broker, errors)
        response = ProduceResponse(
            responses=[
                _topic_response(version, topic, _partition_responses(context, topic, done)) for topic, done in outcomes
            ]
        )
        parts = [connection.encode_response(connection.apis[PRODUCE], version, correlation_id, response)]
    else:
        parts = [pack_produce_response(version, correlation_id, outcomes)] if acks else []  # type: ignore[arg-type]
    if is_deferred:
        connection.complete_deferred(parts)
        return True
    return connection.send(parts)


def error_response(context: ProduceContext, outcomes: Outcomes) -> SlicedWork[ProduceResponse | None]:
    """Return the response if there are errors and nothing to wait for. It takes 4 µs per partition."""
    errors = errors_of(outcomes)
    if not errors or not context.acks or any(isinstance(error, NeedsWorker | AwaitingFlush) for error in errors):
        return None
    _report_failures(context.connection.broker, errors)
    response = ProduceResponse()
    for topic, done in outcomes:
        topic_response = _topic_response(context.version, topic, [])
        for some in in_pieces(done):
            topic_response.partition_responses += _partition_responses(context, topic, some)
            yield
        response.responses.append(topic_response)
    return response


def _topic_response(version: int, topic: bytes, partitions: list[PartitionProduceResponse]) -> TopicProduceResponse:
    response = TopicProduceResponse(partition_responses=partitions)
    if version >= TOPIC_IDS_MIN_VERSION:
        response.topic_id = topic  # type: ignore[assignment]
    else:
        response.name = topic.decode(errors="replace")
    return response


def _partition_responses(
    context: ProduceContext, topic: bytes, outcomes: Sequence[Outcome]
) -> list[PartitionProduceResponse]:
    return [
        _partition_response(
            _with_known_cause(context, topic, outcome)
            if isinstance(outcome, PartitionError) and outcome.error.code in UNKNOWN_ERRORS
            else outcome
        )
        for outcome in outcomes
    ]


def _await_flush(context: ProduceContext, outcomes: Outcomes, errors: list[ApiError]) -> bool:
    """Respond once all batches are fsynced; with acks=0, without waiting."""
    connection, acks = context.connection, context.acks
    awaited = [error.partition for error in errors if isinstance(error, AwaitingFlush)]
    missing = len(awaited) if acks else 1

    def on_committed() -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            for _, done in outcomes:
                done[:] = map(_after_flush, done)
            respond(context, outcomes, errors_of(outcomes), is_deferred=True)

    is_ready = connection.defer()
    if acks:
        for partition in awaited:
            partition.call_when_committed(on_committed)
    else:
        connection.broker.loop.call_soon(on_committed)
    return is_ready


def _after_flush(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, PartitionError) or not isinstance(outcome.error, AwaitingFlush):
        return outcome
    if outcome.error.partition.is_removed:
        return PartitionError(outcome.partition, ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
    return outcome.error.appended


def _report_failures(broker: Broker, errors: list[ApiError]) -> None:
    """Report the file system's errors to the log directories."""
    for error in errors:
        if isinstance(error, AppendFailed):
            broker.log_directories.on_partition_failure(error.partition, error.error)


def _with_known_cause(context: ProduceContext, topic: bytes, outcome: PartitionError) -> PartitionError:
    """Return the outcome with the reason: the directory may be offline, or the partition not open yet."""
    key = topic if context.version >= TOPIC_IDS_MIN_VERSION else topic.decode(errors="replace")
    error = context.connection.broker.missing_error(key, outcome.partition)
    return (
        outcome if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else PartitionError(outcome.partition, ApiError(error))
    )


def _partition_response(outcome: Outcome) -> PartitionProduceResponse:
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
