"""Looks into batches that take much, bombs among them, in another process: a worker would keep the loop waiting, for the interpreter or for
a processor that it has."""

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
    """As `validate_batch` with all the effort that it may take. Where no process can be had, a worker does it."""
    request = b"\n".join((json.dumps((rules, now_ms)).encode(), records))
    reports: list[bytes] = []
    try:
        await processes.run(WORK, request, reports.append)
    except (ProcessFailed, OSError) as error:
        log.warning("a large batch is looked at by a thread, as no process could do it: %s", error)
        return await workers.run(partial(validate_batch, records, rules, now_ms))
    return _found(reports[0])


def serve(disk: Disk, request: bytes) -> Iterator[bytes]:
    """The other side: one request, one report."""
    head, _, records = request.partition(b"\n")
    rules, now_ms = json.loads(head)
    try:
        found = validate_batch(memoryview(records), BatchRules(*rules), now_ms)
    except BatchRejected as error:
        yield json.dumps(
            {"rejected": (error.code, error.reason, error.message, error.record_errors, error.has_log_start)}
        ).encode()
    else:
        told = {"found": found[:-1], "is_replaced": found.replacement is not None}
        yield b"\n".join((json.dumps(told).encode(), found.replacement or b""))


def _found(report: bytes) -> ValidatedBatch:
    head, _, replacement = report.partition(b"\n")
    told = json.loads(head)
    if "rejected" in told:
        code, reason, message, record_errors, has_log_start = told["rejected"]
        raise BatchRejected(
            ErrorCode(code),
            reason,
            message=message,
            has_log_start=has_log_start,
            record_errors=tuple(RecordError(*each) for each in record_errors),
        )
    return ValidatedBatch._make((*told["found"], bytearray(replacement) if told["is_replaced"] else None))
