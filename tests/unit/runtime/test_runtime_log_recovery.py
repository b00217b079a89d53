"""Logs are opened several at a time, directory by directory, and what cannot be opened does not keep the others."""

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
    """Work is done a turn later; how much of it was under way at a time is remembered."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.runs = 0

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.running += 1
        self.runs += 1
        self.most = max(self.most, self.running)

        def do() -> None:
            self.running -= 1
            future.set_result(work())

        loop.call_later(0.001, do)
        return future


def fail(text: str) -> int:
    raise OSError(text)


@pytest.mark.parametrize(("directories", "threads", "most"), [(1, 1, 1), (1, 3, 3), (2, 2, 4)])
def test_so_many_of_each_directory_at_a_time(directories: int, threads: int, most: int) -> None:
    workers = CountingWorkers()
    works = [Work(f"/{number % directories}", False, lambda number=number: number) for number in range(20)]  # type: ignore[misc]
    assert asyncio.run(run_all(workers, works, threads_per_group=threads)) == list(range(20))
    assert (workers.most, workers.runs) == (most, 20)


def test_quick_ones_share_a_worker() -> None:
    workers = CountingWorkers()
    works = [Work("/data", True, lambda number=number: number) for number in range(120)]  # type: ignore[misc]
    assert asyncio.run(run_all(workers, works, threads_per_group=2)) == list(range(120))
    assert workers.runs == 3


def test_what_the_file_system_refuses_is_a_result() -> None:
    works = [Work("/data", True, lambda: 1), Work("/data", True, lambda: fail("gone")), Work("/data", False, lambda: 3)]
    found = asyncio.run(run_all(CountingWorkers(), works, threads_per_group=1))
    assert [str(one) for one in found] == ["1", "gone", "3"]


def test_a_recovery_that_is_stopped_begins_no_other_log_and_waits_for_those_it_has_begun() -> None:
    workers = CountingWorkers()
    done: list[int] = []
    recovering = LogRecovery(workers, threads_per_directory=2, is_stopping=lambda: len(done) >= 3)
    works = [Work("/data", False, lambda number=number: done.append(number)) for number in range(20)]  # type: ignore[misc]
    with pytest.raises(RecoveryInterrupted):
        asyncio.run(recovering.open_all(works))  # type: ignore[arg-type]  # it does not matter what is opened
    assert (done, workers.running) == ([0, 1, 2], 0)


def test_logs_that_were_left_in_order_are_opened_in_any_case() -> None:
    """It takes no time, and so the node can be stopped in order, too."""
    recovering = LogRecovery(CountingWorkers(), threads_per_directory=2, is_stopping=lambda: True)
    works = [Work("/data", True, lambda number=number: number) for number in range(20)]  # type: ignore[misc]
    opened: list[object] = [*asyncio.run(recovering.open_all(works))]
    assert opened == list(range(20))


def test_an_unclean_directory_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was read and what was cut off are said, and progress is told to who wants to see it."""
    for number in range(3):
        log = open_log(tmp_path / f"t-{number}")
        append(log)
        log.flush()
        log.release_files()
    with (tmp_path / "t-1" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn")
    seen: list[RecoveryProgress] = []

    async def recover() -> list[PartitionLog | OSError]:
        recovering = LogRecovery(CountingWorkers(), threads_per_directory=2, on_progress=seen.append)
        works = []
        for number in range(3):
            progress = recovering.progress()
            works.append(
                Work(
                    str(tmp_path),
                    False,
                    lambda number=number, progress=progress: PartitionLog.open(  # type: ignore[misc]
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
        return await recovering.open_all(works)

    with caplog.at_level(logging.WARNING, "ottla.recovery"):
        opened = asyncio.run(recover())
    assert [isinstance(one, PartitionLog) and one.log_end_offset for one in opened] == [1, 1, 1]
    size = (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size
    assert seen[-1] == RecoveryProgress(3, 3, 3 * size + 4)
    said = [record.getMessage() for record in caplog.records]
    assert (
        said[0] == "the last stop was not a clean one: 3 logs are checked from where they are known to be on the disk"
    )
    assert said[1] == f"{tmp_path}/t-1 ended in 4 bytes that were not whole batches: it goes on at offset 1"
    assert said[2].startswith("3 logs are checked")
