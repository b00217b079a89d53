"""Responses to Produce requests: errors, and waiting for an fsync. Most requests have neither (see
`api/produce.py`)."""

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
from ottla.wire.schema import SlicedWork, run_to_end

PRODUCE = 0


class PartitionError(NamedTuple):
    """A partition that has no offset: an error, or something to wait for."""

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
    """What a response needs to know of its request."""

    connection: ServerConnection
    version: int
    correlation_id: int
    acks: int


def rejected(partition: Partition, error: BatchRejected) -> PartitionError:
    """The error of a batch. Its traceback would keep the validated bytes in memory until the garbage collector runs."""
    error.__traceback__ = error.__context__ = None
    return PartitionError(partition.index, error, partition.log.log_start_offset if error.has_log_start else -1)


def needs_worker(outcomes: Outcomes) -> bool:
    return any(isinstance(error, NeedsWorker) for error in _errors(outcomes))


def _errors(outcomes: Outcomes) -> list[ApiError]:
    return [outcome.error for _, done in outcomes for outcome in done if isinstance(outcome, PartitionError)]


def respond(context: ProduceContext, outcomes: Outcomes, *, is_deferred: bool = False) -> bool:
    """Respond, or defer the request until its batches are fsynced. Returns what a raw handler does.

    A client that wants no response notices an error by the closed connection.
    """
    connection, version, correlation_id, acks = context
    errors = _errors(outcomes)
    awaited = [error.partition for error in errors if isinstance(error, AwaitingFlush)]
    if awaited:
        return _await_flush(context, outcomes, awaited)
    if errors and not acks:
        _report_failures(connection.broker, outcomes)
        connection.close()
        return False
    if errors:
        response = run_to_end(error_response(context, outcomes))
        assert response is not None, outcomes
        parts = [connection.encode_response(connection.apis[PRODUCE], version, correlation_id, response)]
    else:
        parts = [pack_produce_response(version, correlation_id, outcomes)] if acks else []  # type: ignore[arg-type]
    if is_deferred:
        connection.complete_deferred(parts)
        return True
    return connection.send(parts)


def error_response(context: ProduceContext, outcomes: Outcomes) -> SlicedWork[ProduceResponse | None]:
    """Return the response if there are errors, and nothing to wait for: 4 µs for each partition."""
    errors = _errors(outcomes)
    if not errors or not context.acks or any(isinstance(error, NeedsWorker | AwaitingFlush) for error in errors):
        return None
    by_id = context.version >= TOPIC_IDS_MIN_VERSION
    broker = context.connection.broker
    _report_failures(broker, outcomes)
    response = ProduceResponse()
    for topic, done in outcomes:
        topic_response = TopicProduceResponse()
        if by_id:
            topic_response.topic_id = topic  # type: ignore[assignment]
        else:
            topic_response.name = topic.decode(errors="replace")
        for some in in_pieces(done):
            topic_response.partition_responses += [
                _partition_response(_with_known_cause(broker, topic, outcome, by_id=by_id)) for outcome in some
            ]
            yield
        response.responses.append(topic_response)
    return response


def _await_flush(context: ProduceContext, outcomes: Outcomes, awaited: list[Partition]) -> bool:
    """Respond once all batches are fsynced. A client that wants no response need not wait."""
    connection, acks = context.connection, context.acks
    missing = len(awaited) if acks else 1

    def on_committed() -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            for _, done in outcomes:
                done[:] = map(_after_flush, done)
            respond(context, outcomes, is_deferred=True)

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


def _report_failures(broker: Broker, outcomes: Outcomes) -> None:
    """Report the file system's errors to the log directories."""
    for error in _errors(outcomes):
        if isinstance(error, AppendFailed):
            broker.log_directories.on_partition_failure(error.partition, error.error)


def _with_known_cause(broker: Broker, topic: bytes, outcome: Outcome, *, by_id: bool) -> Outcome:
    """Say of an unknown partition why it is not here: its directory may be offline, or it may be about to be opened."""
    if not isinstance(outcome, PartitionError) or outcome.error.code not in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ):
        return outcome
    error = broker.missing_error(topic if by_id else topic.decode(errors="replace"), outcome.partition)
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
