"""A child process validates batches as this process does."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.ports import ProcessFailed
from ottla.io.processes import ChildProcesses
from ottla.io.workers import ThreadWorkers
from ottla.runtime.validation_process import serve, validate_in_process
from ottla.wire.batch_validation import BatchRejected, BatchRules, ValidatedBatch, validate_batch
from ottla.wire.batches import Record, build_batch

NOW_MS = 1_750_000_000_000


class HereAndNow:
    """Runs the work of a child process in this one."""

    def run(self, work: str, request: bytes, on_report: Callable[[bytes], None]) -> "asyncio.Future[None]":
        for report in serve(None, request):
            on_report(report)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


class NoProcesses:
    def run(self, work: str, request: bytes, on_report: Callable[[bytes], None]) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_exception(ProcessFailed("there are too many"))
        return done


def batch(count: int, *, codec: int = 4, late_ms: int = 0, **options: Any) -> memoryview:
    records = [Record(timestamp=NOW_MS + late_ms * (index % 2), value=b"v" * index) for index in range(count)]
    return memoryview(bytes(build_batch(records, codec=codec, **options)))


def said(work: Callable[[], ValidatedBatch]) -> Any:
    try:
        return work()
    except BatchRejected as error:
        return error.code, error.reason, error.message, error.record_errors, error.has_log_start


CASES = [
    (batch(300), BatchRules()),
    (batch(300, producer_id=7, producer_epoch=1, base_sequence=5), BatchRules(log_append_time=True)),
    (batch(300), BatchRules(target_codec=1, target_level=9)),
    (batch(300, codec=0), BatchRules(target_codec=3)),
    (batch(300, late_ms=10**8), BatchRules()),
    (batch(300), BatchRules(compacted=True)),
    (batch(300), BatchRules(max_message_bytes=10)),
    (memoryview(bytes(batch(300))[:-20] + bytes(20)), BatchRules()),
    (memoryview(b"\n" * 30), BatchRules()),
]


@pytest.mark.parametrize(("records", "rules"), CASES)
async def test_child_process_returns_the_same_result(records: memoryview, rules: BatchRules) -> None:
    expected = said(lambda: validate_batch(records, rules, NOW_MS))
    workers = ThreadWorkers(asyncio.get_running_loop(), 1)
    for processes in (HereAndNow(), NoProcesses()):
        try:
            found = await validate_in_process(processes, workers, records, rules, NOW_MS)
        except BatchRejected as error:
            found = error.code, error.reason, error.message, error.record_errors, error.has_log_start  # type: ignore[assignment]
        assert found == expected
        assert type(found) is type(expected)
    workers.close()


async def test_real_process_validates_a_decompression_bomb() -> None:
    workers = ThreadWorkers(asyncio.get_running_loop(), 1)
    processes = ChildProcesses(asyncio.get_running_loop(), workers)
    bomb = memoryview(bytes(build_batch([Record(timestamp=NOW_MS, value=bytes(140 << 20))], codec=4)))
    try:
        assert await validate_in_process(processes, workers, *CASES[0], NOW_MS) == validate_batch(*CASES[0], NOW_MS)
        with pytest.raises(BatchRejected, match="MESSAGE_TOO_LARGE"):
            await validate_in_process(processes, workers, bomb, BatchRules(), NOW_MS)
    finally:
        processes.close()
        workers.close()
