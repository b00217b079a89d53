"""Logs are opened in parallel per directory; a log that cannot be opened does not affect the others."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ottla.io.disk import RealDisk
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.runtime.log_recovery import LogRecovery, RecoveryInterrupted, RecoveryProgress, Work, run_all
from tests.unit.log.log_fixtures import TOPIC_ID, append, open_log

T = TypeVar("T")


class CountingWorkers:
    """Workers that run each function after 1 ms and count how many run at a time."""

    def __init__(self) -> None:
        self.running = 0
        self.running_max = 0
        self.runs = 0

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.running += 1
        self.runs += 1
        self.running_max = max(self.running_max, self.running)

        def do() -> None:
            self.running -= 1
            future.set_result(work())

        loop.call_later(0.001, do)
        return future


def fail(text: str) -> int:
    raise OSError(text)


@pytest.mark.parametrize(("directories", "threads", "running_max"), [(1, 1, 1), (1, 3, 3), (2, 2, 4)])
def test_run_all_limits_threads_per_directory(directories: int, threads: int, running_max: int) -> None:
    workers = CountingWorkers()
    works = [Work(f"/{number % directories}", False, lambda number=number: number) for number in range(20)]
    assert asyncio.run(run_all(workers, works, threads_per_directory=threads)) == list(range(20))
    assert (workers.running_max, workers.runs) == (running_max, 20)


def test_run_all_batches_quick_works() -> None:
    workers = CountingWorkers()
    works = [Work("/data", True, lambda number=number: number) for number in range(120)]
    assert asyncio.run(run_all(workers, works, threads_per_directory=2)) == list(range(120))
    assert workers.runs == 3


def test_run_all_returns_os_errors_as_results() -> None:
    works = [Work("/data", True, lambda: 1), Work("/data", True, lambda: fail("gone")), Work("/data", False, lambda: 3)]
    results = asyncio.run(run_all(CountingWorkers(), works, threads_per_directory=1))
    assert [str(result) for result in results] == ["1", "gone", "3"]


def test_interrupted_recovery_starts_no_log_and_waits_for_the_started_ones() -> None:
    workers = CountingWorkers()
    done: list[int] = []
    recovery = LogRecovery(workers, threads_per_directory=2, is_stopping=lambda: len(done) >= 3)
    works = [Work("/data", False, lambda number=number: done.append(number)) for number in range(20)]
    with pytest.raises(RecoveryInterrupted):
        asyncio.run(recovery.open_all(works))  # numbers instead of logs
    assert (done, workers.running) == ([0, 1, 2], 0)


def test_recovery_opens_clean_logs_even_if_the_node_is_stopping() -> None:
    """Opening them is quick, and then the node can shut down cleanly."""
    recovery = LogRecovery(CountingWorkers(), threads_per_directory=2, is_stopping=lambda: True)
    works = [Work("/data", True, lambda number=number: number) for number in range(20)]
    opened: list[object] = [*asyncio.run(recovery.open_all(works))]
    assert opened == list(range(20))


def test_recovery_reports_progress_and_truncation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log messages contain the bytes read and truncated; `on_progress` is called."""
    for number in range(3):
        log = open_log(tmp_path / f"t-{number}")
        append(log)
        log.flush()
        log.release_files()
    with (tmp_path / "t-1" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn")
    seen: list[RecoveryProgress] = []

    async def recover() -> list[PartitionLog | OSError]:
        recovery = LogRecovery(CountingWorkers(), threads_per_directory=2, on_progress=seen.append)
        works = []
        for number in range(3):
            progress = recovery.progress()
            works.append(
                Work(
                    str(tmp_path),
                    False,
                    lambda number=number, progress=progress: PartitionLog.open(
                        RealDisk(),
                        str(tmp_path / f"t-{number}"),
                        config=LogConfig(),
                        topic_id=TOPIC_ID,
                        now_ms=0,
                        clean=False,
                        recovery_point=0,
                        progress=progress,
                    ),
                )
            )
        return await recovery.open_all(works)

    with caplog.at_level(logging.WARNING, "ottla.recovery"):
        opened = asyncio.run(recover())
    assert [isinstance(one, PartitionLog) and one.log_end_offset for one in opened] == [1, 1, 1]
    size = (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size
    assert seen[-1] == RecoveryProgress(3, 3, 3 * size + 4)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "unclean shutdown detected; recovering 3 logs from the recovery points"
    assert messages[1] == f"truncated 4 bytes of incomplete batches from {tmp_path}/t-1; log end offset is now 1"
    assert messages[2].startswith("recovered 3 logs, read ")
