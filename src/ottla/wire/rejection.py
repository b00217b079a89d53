"""How a batch is refused."""

from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode


class RecordError(NamedTuple):
    """Why one record was refused; `batch_index` counts from 0 within its batch."""

    batch_index: int
    message: str


class BatchRejected(ApiError):
    """The whole batch is refused; nothing of it is written.

    `message` goes to the client, which Apache Kafka tells only of single records and of sizes that make no sense; `reason` is for the
    broker's own log. `has_log_start` says whether the answer names the partition's log start offset.
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
