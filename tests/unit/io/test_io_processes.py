"""Child processes: reports, results, failures and cancellation."""

import asyncio
import errno
import json
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ottla.base.ports import Disk, ProcessFailed
from ottla.io.processes import ChildProcesses
from ottla.io.workers import ThreadWorkers

HERE = "tests.unit.io.test_io_processes"


def count(disk: Disk, request: bytes) -> Iterator[bytes | float]:
    for number in range(json.loads(request)):
        yield b"%d" % number
        yield 0.001
    yield b"%d" % os.getpid()


def report_process(disk: Disk, request: bytes) -> Iterator[bytes]:
    print("to stderr")
    yield json.dumps([os.getpid(), os.getppid(), os.nice(0)]).encode()


def raise_os_error(disk: Disk, request: bytes) -> Iterator[bytes]:
    yield b"before"
    disk.read("/nowhere/at/all")


def raise_key_error(disk: Disk, request: bytes) -> Iterator[bytes]:
    yield b"before"
    raise KeyError("broken")


def exit_process(disk: Disk, request: bytes) -> Iterator[bytes]:
    yield b"before"
    os._exit(3)


def run_long(disk: Disk, request: bytes) -> Iterator[bytes | float]:
    yield b"%d" % os.getpid()
    yield 1000.0


def with_processes(
    scenario: Callable[[ChildProcesses], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())

    async def run() -> None:
        loop = asyncio.get_running_loop()
        workers = ThreadWorkers(loop, 2)
        processes = ChildProcesses(loop, workers)
        try:
            await scenario(processes)
        finally:
            processes.close()
            workers.close()

    asyncio.run(run())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_reports_are_in_order_and_the_process_is_reused(monkeypatch):
    async def scenario(processes: ChildProcesses) -> None:
        reports: list[bytes] = []
        await processes.run(f"{HERE}:count", b"3", reports.append)
        await processes.run(f"{HERE}:count", b"1", reports.append)
        assert reports[:3] + reports[4:5] == [b"0", b"1", b"2", b"0"]
        assert reports[3] == reports[5] != b"%d" % os.getpid()

    with_processes(scenario, monkeypatch)


def test_child_has_lower_priority(monkeypatch):
    async def scenario(processes: ChildProcesses) -> None:
        reports: list[bytes] = []
        await processes.run(f"{HERE}:report_process", b"", reports.append)
        pid, parent, niceness = json.loads(reports[0])
        assert (pid != os.getpid(), parent, niceness > os.nice(0)) == (True, os.getpid(), True)

    with_processes(scenario, monkeypatch)


def test_failures_are_reported_and_the_child_survives(monkeypatch):
    async def scenario(processes: ChildProcesses) -> None:
        reports: list[bytes] = []
        with pytest.raises(OSError, match="nowhere") as raised:
            await processes.run(f"{HERE}:raise_os_error", b"", reports.append)
        assert raised.value.errno == errno.ENOENT
        with pytest.raises(ProcessFailed, match="KeyError: 'broken'"):
            await processes.run(f"{HERE}:raise_key_error", b"", reports.append)
        with pytest.raises(ProcessFailed, match="ended"):
            await processes.run(f"{HERE}:exit_process", b"", reports.append)
        assert reports == [b"before"] * 3
        await processes.run(f"{HERE}:count", b"0", reports.append)
        assert len(reports) == 4

    with_processes(scenario, monkeypatch)


def test_cancellation_kills_the_child(monkeypatch):
    async def scenario(processes: ChildProcesses) -> None:
        started: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        work = processes.run(f"{HERE}:run_long", b"", started.set_result)
        pid = int(await started)
        assert is_alive(pid)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        processes.close()
        while is_alive(pid):  # until the kernel has ended it, within the test's time limit
            await asyncio.sleep(0.01)
        with pytest.raises(ProcessFailed, match="closed"):
            await processes.run(f"{HERE}:count", b"0", lambda report: None)

    with_processes(scenario, monkeypatch)
