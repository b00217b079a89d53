"""An event loop in virtual time, without selector, threads or wall clock.

When nothing is ready, time jumps to the next timer.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from ottla.sim.process import Process, SimulatedCrash, current_process

# Not zero, to find code that treats 0 as "no deadline".
_START_SECONDS = 1_000.0


class SimulatedDeadlock(RuntimeError):
    """The main coroutine is not done, but no callback or timer is left."""


class TooManySteps(RuntimeError):
    """The run exceeded its step limit, most likely in an endless loop."""


class CallbackFailed(RuntimeError):
    """A callback or task raised an exception, which asyncio would only log."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order they were scheduled, and timers by time, then by the order they were created."""

    def __init__(self, *, steps_max: int = 5_000_000) -> None:
        super().__init__()
        self._now = _START_SECONDS
        self._queue: deque[tuple[asyncio.Handle, Process | None]] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process | None]] = []
        self._timers_created = 0
        self._steps_max = steps_max
        self._failure: dict[str, Any] | None = None
        self.steps = 0

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        if context is None:
            context = copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        self._queue.append((handle, current_process(context)))
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)  # there is only one thread

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = copy_context()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_created += 1
        heapq.heappush(self._timers, (when, self._timers_created, handle, current_process(context)))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are skipped when they expire."""

    def create_task(  # type: ignore[override]
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        task = super().create_task(coro, name=name, context=context, **options)
        process = current_process(context)
        if process is not None:
            process.hold_task(task)
        return task

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        raise RuntimeError("there are no threads in a simulation: use the Workers port")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Save the first failure; the run ends with it after the current step."""
        process = current_process()
        if isinstance(context.get("exception"), SimulatedCrash) or (process is not None and not process.is_alive):
            return
        if self._failure is None and not self.is_closed():
            self._failure = context

    def _run_once(self) -> None:
        if not self._queue:
            self._advance()
        handle, process = self._queue.popleft()
        if handle.cancelled() or (process is not None and not process.is_alive):
            return
        self.steps += 1
        if self.steps > self._steps_max:
            raise TooManySteps(f"more than {self._steps_max} steps, at {self._now:.6f} s: {handle!r}")
        handle._run()
        del handle  # the traceback of a failed task refers to this frame; a reference to the task would be a cycle
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise CallbackFailed(
                f"{failure.get('message')} ({process.name if process else 'the test'})"
            ) from failure.get("exception")

    def _advance(self) -> None:
        """Jump to the next active timer, and schedule all timers due by then."""
        timers = self._timers
        while timers and (timers[0][2].cancelled() or not _is_alive(timers[0][3])):
            heapq.heappop(timers)
        if not timers:
            waiting = sorted(repr(task.get_coro()) for task in asyncio.all_tasks(self))
            raise SimulatedDeadlock(f"nothing left to do at {self._now:.6f} s; waiting: " + "; ".join(waiting))
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            _, _, handle, process = heapq.heappop(timers)
            self._queue.append((handle, process))

    def close(self) -> None:
        self._queue.clear()
        self._timers.clear()
        super().close()


def _is_alive(process: Process | None) -> bool:
    return process is None or process.is_alive
