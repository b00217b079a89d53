"""Child processes of a simulated machine. Their work runs step by step; each step is a delayed event of the loop."""

import asyncio
import importlib
import random
from collections.abc import Callable, Iterator
from typing import Any

from ottla.base.ports import ProcessFailed
from ottla.sim.disk import SimulatedDisk
from ottla.sim.loop import SimulatedLoop
from ottla.sim.process import Process
from ottla.sim.trace import Trace

_DELAY_SECONDS_MAX = 0.02


class SimulatedProcesses:
    """The Processes port. Child processes share the disk of their parent and die with it."""

    __slots__ = ("_disk", "_loop", "_process", "_random", "_trace")

    def __init__(
        self, loop: SimulatedLoop, source: random.Random, process: Process, trace: Trace, disk: SimulatedDisk
    ) -> None:
        self._loop = loop
        self._random = source
        self._process = process
        self._trace = trace
        self._disk = disk

    def run(self, work: str, request: bytes, on_report: Callable[[bytes], None]) -> "asyncio.Future[None]":
        self._process.check()
        self._trace.add(self._process.name, "process", work)
        module, _, function = work.partition(":")
        steps = getattr(importlib.import_module(module), function)(self._disk, request)
        future: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_later(self._delay(), self._step, steps, on_report, future)
        return future

    def _step(self, steps: Iterator[Any], on_report: Callable[[bytes], None], future: "asyncio.Future[None]") -> None:
        if future.cancelled():
            return
        delay = self._delay()
        try:
            step = next(steps)
        except StopIteration:
            future.set_result(None)
            return
        except OSError as error:
            future.set_exception(error)
            return
        except Exception as error:
            future.set_exception(ProcessFailed(f"{type(error).__name__}: {error}"))
            return
        if isinstance(step, float):
            delay = max(delay, step)
        else:
            on_report(step)
        self._loop.call_later(delay, self._step, steps, on_report, future)

    def _delay(self) -> float:
        return self._random.uniform(0.0, _DELAY_SECONDS_MAX)

    def close(self) -> None:
        """Nothing to stop."""
