"""Workers without threads: a job and its result are separate, delayed events of the loop."""

import asyncio
import random
from collections.abc import Callable
from typing import TypeVar

from ottla.sim.loop import SimulatedLoop
from ottla.sim.process import Process
from ottla.sim.trace import Trace

T = TypeVar("T")

_DELAY_SECONDS_MAX = 0.005
_SLOW_DELAY_SECONDS_MAX = 0.25


class SimulatedWorkers:
    """The Workers port.

    The loop runs other callbacks before a job and before its result, as with threads. Jobs may overtake each other.
    """

    __slots__ = ("_loop", "_process", "_random", "_trace")

    def __init__(self, loop: SimulatedLoop, source: random.Random, process: Process, trace: Trace) -> None:
        self._loop = loop
        self._random = source
        self._process = process
        self._trace = trace

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        self._process.check()
        self._trace.add(self._process.name, "run")
        future: asyncio.Future[T] = self._loop.create_future()
        self._loop.call_later(self._delay(), self._execute, work, future)
        return future

    def _execute(self, work: Callable[[], T], future: "asyncio.Future[T]") -> None:
        if future.cancelled():
            return
        try:
            result = work()
        except Exception as error:
            self._loop.call_later(self._delay(), _fail, future, error)
        else:
            self._loop.call_later(self._delay(), _finish, future, result)

    def _delay(self) -> float:
        longest = _SLOW_DELAY_SECONDS_MAX if self._random.random() < 0.02 else _DELAY_SECONDS_MAX
        return self._random.uniform(0.0, longest)

    def close(self) -> None:
        """Nothing to stop: submitted jobs are pending events."""


def _finish(future: "asyncio.Future[T]", result: T) -> None:
    if not future.cancelled():
        future.set_result(result)


def _fail(future: "asyncio.Future[T]", error: Exception) -> None:
    if not future.cancelled():
        future.set_exception(error)
