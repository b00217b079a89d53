"""Work in other processes: reports, results, failures, and an end in time."""

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


def say_where(disk: Disk, request: bytes) -> Iterator[bytes]:
    print("this goes elsewhere")
    yield json.dumps([os.getpid(), os.getppid(), os.nice(0)]).encode()


def refuse(disk: Disk, request: bytes) -> Iterator[bytes]:
    yield b"before"
    disk.read("/nowhere/at/all")


def break_down(disk: Disk, request: bytes) -> Iterator[bytes]:
    yield b"before"
    raise KeyError("broken")


def vanish(disk: Disk, request: bytes) -> Iterator[bytes]:
    yield b"before"
    os._exit(3)


def take_long(disk: Disk, request: bytes) -> Iterator[bytes | float]:
    yield b"%d" % os.getpid()
    yield 1000.0


def with_processes(
    story: Callable[[ChildProcesses], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())

    async def run() -> None:
        loop = asyncio.get_running_loop()
        workers = ThreadWorkers(loop, 2)
        processes = ChildProcesses(loop, workers)
        try:
            await story(processes)
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
    async def story(processes: ChildProcesses) -> None:
        reports: list[bytes] = []
        await processes.run(f"{HERE}:count", b"3", reports.append)
        await processes.run(f"{HERE}:count", b"1", reports.append)
        assert reports[:3] + reports[4:5] == [b"0", b"1", b"2", b"0"]
        assert reports[3] == reports[5] != b"%d" % os.getpid()

    with_processes(story, monkeypatch)


def test_child_has_lower_priority(monkeypatch):
    async def story(processes: ChildProcesses) -> None:
        reports: list[bytes] = []
        await processes.run(f"{HERE}:say_where", b"", reports.append)
        pid, parent, niceness = json.loads(reports[0])
        assert (pid != os.getpid(), parent, niceness > os.nice(0)) == (True, os.getpid(), True)

    with_processes(story, monkeypatch)


def test_failures_are_reported_and_the_child_survives(monkeypatch):
    async def story(processes: ChildProcesses) -> None:
        reports: list[bytes] = []
        with pytest.raises(OSError, match="nowhere") as refused:
            await processes.run(f"{HERE}:refuse", b"", reports.append)
        assert refused.value.errno == errno.ENOENT
        with pytest.raises(ProcessFailed, match="KeyError: 'broken'"):
            await processes.run(f"{HERE}:break_down", b"", reports.append)
        with pytest.raises(ProcessFailed, match="ended"):
            await processes.run(f"{HERE}:vanish", b"", reports.append)
        assert reports == [b"before"] * 3
        await processes.run(f"{HERE}:count", b"0", reports.append)
        assert len(reports) == 4

    with_processes(story, monkeypatch)


def test_cancellation_kills_the_child(monkeypatch):
    async def story(processes: ChildProcesses) -> None:
        began: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        work = processes.run(f"{HERE}:take_long", b"", began.set_result)
        pid = int(await began)
        assert is_alive(pid)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        processes.close()
        while is_alive(pid):  # until the kernel is done with it; the test's own time limit ends it otherwise
            await asyncio.sleep(0.01)
        with pytest.raises(ProcessFailed, match="closed"):
            await processes.run(f"{HERE}:count", b"0", lambda report: None)

    with_processes(story, monkeypatch)
