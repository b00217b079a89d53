"""Worker threads for calls that would block the loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ottla.io.process import reset_timeslice

T = TypeVar("T")


class ThreadWorkers:
    """A pool of at most `threads` threads, created with the first call of `run`."""

    __slots__ = ("_closed", "_loop", "_pool", "_threads_max")

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"number of worker threads must be >= 1, got {threads}")
        self._loop = loop
        self._threads_max = threads
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        if self._closed:
            raise RuntimeError("worker threads are closed")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(
                self._threads_max, thread_name_prefix="ottla-worker", initializer=reset_timeslice
            )
        try:
            return self._loop.run_in_executor(self._pool, work)
        except RuntimeError:  # the interpreter is exiting and starts no more threads
            return self._run_here(work)

    def _run_here(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Accept no more work and wait for submitted work, such as a started fsync, to end."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
