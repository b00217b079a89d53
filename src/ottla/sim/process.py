"""A simulated process: what is alive, and which code belongs to it.

All nodes and clients of a world share one loop. Which of them a callback belongs to is found in its context, which tasks, timers and
callbacks inherit, so that a crash can stop exactly the code of one node: nothing of it runs again, not even a `finally`.
"""

import asyncio
from contextvars import Context, ContextVar, copy_context
from typing import Any


class SimulatedCrash(BaseException):
    """Raised by every port of a process that is dead. Not an Exception, so that no handler in a node can survive its own death."""


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
        """A context for code that belongs to this process."""
        context = copy_context()
        context.run(_current.set, self)
        return context

    def own(self, task: asyncio.Task[Any]) -> None:
        """Hold a task until it ends: a collected coroutine would run its `finally`, which a dead process does not."""
        self._tasks[task] = None
        task.add_done_callback(self._release_task)

    def _release_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def die(self) -> None:
        self.is_alive = False

    def clean_up(self) -> None:
        """Let go of what a dead process left. Its coroutines unwind now, while all its ports refuse, so that they reach nothing."""
        assert not self.is_alive, self.name
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            coroutine = task.get_coro()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if coroutine is None:
                continue
            try:
                coroutine.close()
            except BaseException as error:  # the complaints of the dead: whatever a `finally` met, it met after the end
                del error


_current: ContextVar[Process | None] = ContextVar("process", default=None)


def current_process(context: Context | None = None) -> Process | None:
    """The process that the running code, or the code of a context, belongs to."""
    return _current.get() if context is None else context.get(_current)
