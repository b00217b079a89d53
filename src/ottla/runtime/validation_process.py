"""Validate expensive batches, such as decompression bombs, in a child process: a worker thread would hold the GIL, or
the loop's CPU."""

import json
import logging
from collections.abc import Iterator
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ports import Disk, Processes, ProcessFailed, Workers
from ottla.wire.batch_validation import BatchRejected, BatchRules, RecordError, ValidatedBatch, validate_batch

WORK = "ottla.runtime.validation_process:serve"
log = logging.getLogger("ottla.produce")


async def validate_in_process(
    processes: Processes, workers: Workers, records: memoryview, rules: BatchRules, now_ms: int
) -> ValidatedBatch:
    """As `validate_batch` without a budget. If no process can be started, a worker thread does it."""
    request = b"\n".join((json.dumps((rules, now_ms)).encode(), records))
    reports: list[bytes] = []
    try:
        await processes.run(WORK, request, reports.append)
    except (ProcessFailed, OSError) as error:
        log.warning("validating a large batch in a worker thread; the validation process failed: %s", error)
        return await workers.run(partial(validate_batch, records, rules, now_ms))
    return _decode_report(reports[0])


def serve(disk: Disk, request: bytes) -> Iterator[bytes]:
    """Handle one request in the child process, and report once."""
    head, _, records = request.partition(b"\n")
    rules, now_ms = json.loads(head)
    try:
        validated = validate_batch(memoryview(records), BatchRules(*rules), now_ms)
    except BatchRejected as error:
        yield json.dumps(
            {"rejected": (error.code, error.reason, error.message, error.record_errors, error.has_log_start)}
        ).encode()
    else:
        header = {"validated": validated[:-1], "is_replaced": validated.replacement is not None}
        yield b"\n".join((json.dumps(header).encode(), validated.replacement or b""))


def _decode_report(report: bytes) -> ValidatedBatch:
    head, _, replacement = report.partition(b"\n")
    header = json.loads(head)
    if "rejected" in header:
        code, reason, message, record_errors, has_log_start = header["rejected"]
        raise BatchRejected(
            ErrorCode(code),
            reason,
            message=message,
            has_log_start=has_log_start,
            record_errors=tuple(RecordError(*each) for each in record_errors),
        )
    return ValidatedBatch._make((*header["validated"], bytearray(replacement) if header["is_replaced"] else None))
