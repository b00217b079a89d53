"""Child processes for long work in Python, started on demand and ended when idle."""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.ports import ProcessFailed
from ottla.io.child_process import DONE, LENGTH_BYTES, REPORT, frame
from ottla.io.workers import ThreadWorkers

if TYPE_CHECKING:
    import subprocess

IDLE_SECONDS = 30.0
REAP_SECONDS = 0.1
READ_BYTES = 64 << 10
OnReport = Callable[[bytes], None]


class ChildProcesses:
    """A pool of children, each of which runs one request at a time."""

    __slots__ = ("_children", "_closed", "_idle", "_loop", "_workers")

    def __init__(self, loop: asyncio.AbstractEventLoop, workers: ThreadWorkers) -> None:
        self._loop = loop
        self._workers = workers
        self._idle: list[_Child] = []
        self._children: dict[_Child, None] = {}
        self._closed = False

    def run(self, work: str, request: bytes, on_report: OnReport) -> "asyncio.Future[None]":
        return self._loop.create_task(self._run(frame(work.encode(), b"\n", request), on_report))

    async def _run(self, message: bytes, on_report: OnReport) -> None:
        if self._closed:
            raise ProcessFailed("child processes are closed")
        child = self._idle.pop() if self._idle else None
        if child is None or child.has_ended:
            child = _Child(self._loop, await self._workers.run(_start))
            self._children[child] = None
        child.cancel_idle_timer()
        try:
            await child.run(message, on_report, self._workers)
        except (ProcessFailed, asyncio.CancelledError):
            self._end(child)
            raise
        self._return_to_pool(child)

    def _return_to_pool(self, child: "_Child") -> None:
        if self._closed or child.has_ended:
            self._end(child)
        else:
            self._idle.append(child)
            child.idle_timer = self._loop.call_later(IDLE_SECONDS, self._end, child)

    def _end(self, child: "_Child") -> None:
        if child in self._idle:
            self._idle.remove(child)
        self._children.pop(child, None)
        child.end()

    def close(self) -> None:
        """Kill all children, even busy ones."""
        self._closed = True
        for child in list(self._children):
            self._end(child)
            child.reap(wait=True)


def _start() -> "subprocess.Popen[bytes]":
    """Start a child. Call from a worker, as it takes some milliseconds."""
    import subprocess  # a node that never compacts need not load it

    # By default NumPy reserves memory for many threads.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "ottla.io.child_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=environment,
        start_new_session=True,
    )


class _Child:
    """One process. When its output ends, it has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self._loop = loop
        self._process = process
        self._output = process.stdout
        self._received = bytearray()
        self._result: asyncio.Future[None] | None = None
        self._on_report: OnReport = _ignore_report
        self.has_ended = False
        self.idle_timer: asyncio.TimerHandle | None = None
        os.set_blocking(self._output.fileno(), False)
        loop.add_reader(self._output.fileno(), self._on_readable)

    async def run(self, message: bytes, on_report: OnReport, workers: ThreadWorkers) -> None:
        self._on_report = on_report
        self._result = self._loop.create_future()
        try:
            await workers.run(partial(self._send, message))
        except OSError as error:
            raise ProcessFailed(f"could not send a request to a child process: {error}") from error
        await self._result

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(message)
        while rest:
            rest = rest[self._process.stdin.write(rest) or 0 :]

    def _on_readable(self) -> None:
        try:
            data = os.read(self._output.fileno(), READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._on_end()
            return
        self._received += data
        while len(self._received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES], "big")
            if len(self._received) < end:
                return
            response = bytes(self._received[LENGTH_BYTES:end])
            del self._received[:end]
            self._on_response(response[:1], response[1:])

    def _on_response(self, response_type: bytes, body: bytes) -> None:
        result = self._result
        if result is None or result.done():
            return
        if response_type == REPORT:
            self._on_report(body)
        elif response_type == DONE:
            result.set_result(None)
        else:
            import json

            failure = json.loads(body)
            number, message = failure["errno"], failure["message"]
            result.set_exception(ProcessFailed(message) if number is None else OSError(number, message))

    def _on_end(self) -> None:
        code = self._process.poll()
        self.end()
        if self._result is not None and not self._result.done():
            status = "" if code is None else f" with exit code {code}"
            self._result.set_exception(ProcessFailed(f"the child process ended{status}"))

    def cancel_idle_timer(self) -> None:
        if self.idle_timer is not None:
            self.idle_timer.cancel()

    def end(self) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        self.cancel_idle_timer()
        self._loop.remove_reader(self._output.fileno())
        self._process.kill()
        self._output.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.reap()

    def reap(self, *, wait: bool = False) -> None:
        """Collect the exit status, which is available some milliseconds after the signal."""
        if wait:
            self._process.wait()
        elif self._process.poll() is None:
            self._loop.call_later(REAP_SECONDS, self.reap)


def _ignore_report(report: bytes) -> None:
    """Before the first request."""
