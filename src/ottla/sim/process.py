"""A simulated process: whether it is alive, and which code belongs to it.

All nodes and clients of a world share one loop. The context that tasks, timers and callbacks inherit identifies their
process, so that a crash stops exactly the code of one node: nothing of it runs again, not even a `finally`.
"""

import asyncio
from contextvars import Context, ContextVar, copy_context
from typing import Any


class SimulatedCrash(BaseException):
    """Raised by every port of a dead process. A BaseException, so that handlers in the node cannot catch it."""


class Process:
    __slots__ = ("_tasks", "is_alive", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def check(self) -> None:
        if not self.is_alive:
            raise SimulatedCrash(f"{self.name} has crashed")

    def context(self) -> Context:
        """Return a context for code of this process."""
        context = copy_context()
        context.run(_current.set, self)
        return context

    def hold_task(self, task: asyncio.Task[Any]) -> None:
        """Keep a reference until the task ends.

        A garbage-collected coroutine would run its `finally`, which a dead process does not.
        """
        self._tasks[task] = None
        task.add_done_callback(self._release_task)

    def _release_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def die(self) -> None:
        self.is_alive = False

    def clean_up(self) -> None:
        """Close the coroutines of a dead process. All its ports raise, so their `finally` blocks have no effect."""
        assert not self.is_alive, self.name
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            coroutine = task.get_coro()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if coroutine is None:
                continue
            try:
                coroutine.close()
            except BaseException as error:  # errors in `finally` blocks of a dead process
                del error


_current: ContextVar[Process | None] = ContextVar("process", default=None)


def current_process(context: Context | None = None) -> Process | None:
    """Return the process that the running code, or the code of a context, belongs to."""
    return _current.get() if context is None else context.get(_current)
