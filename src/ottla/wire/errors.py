"""Errors of the wire layer: malformed messages, and batches of records that are rejected."""

from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode


class MalformedMessage(ValueError):
    """The bytes cannot be read as the message they should be. The text says why, for the broker's log."""


class RecordError(NamedTuple):
    """Why one record was rejected; `batch_index` counts from 0 within its batch."""

    batch_index: int
    message: str


class BatchRejected(ApiError):
    """A batch was rejected; none of its records is written.

    `message` is sent to the client: as in Apache Kafka, only for single records and invalid sizes. `reason` is for the
    broker's log. `has_log_start` says whether the response contains the partition's log start offset.
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str,
        *,
        message: str | None = None,
        record_errors: tuple[RecordError, ...] = (),
        has_log_start: bool = True,
    ) -> None:
        super().__init__(code, message)
        self.reason = reason
        self.record_errors = record_errors
        self.has_log_start = has_log_start
