"""An event loop on its own thread, for the blocking clients."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ottla.client.errors import ClientClosedError, ClientTimeoutError

T = TypeVar("T")
Work: TypeAlias = Callable[[], Coroutine[Any, Any, T]]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a uvloop event loop if installed, which halves the cost of a request."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class EventLoopThread:
    """A running event loop.

    Its daemon thread does not keep the process alive, so close clients to finish their work.
    """

    def __init__(self, name: str) -> None:
        self.loop = new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Work[T], timeout: float | None = None, what: str = "The call") -> T:
        """Run a coroutine in the loop and wait for at most `timeout` seconds.

        The coroutine is created in the loop as well: a KeyboardInterrupt before the handover would otherwise leave a
        coroutine that was never awaited.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "blocking call from a client callback would deadlock; use the async client or another thread"
            )
        if self.loop.is_closed():
            raise ClientClosedError
        outcome: Future[T] = Future()
        try:
            self.loop.call_soon_threadsafe(self._begin, work, outcome)
            return outcome.result(timeout)
        except FutureTimeoutError:
            if outcome.done():
                raise
            outcome.cancel()
            raise ClientTimeoutError(f"{what} timed out after {timeout} s.") from None
        except BaseException:
            outcome.cancel()
            raise

    def _begin(self, work: Work[T], outcome: "Future[T]") -> None:
        try:
            task = self.loop.create_task(work())
        except Exception as error:
            if outcome.set_running_or_notify_cancel():
                outcome.set_exception(error)
            return

        def cancel(outcome: "Future[T]") -> None:
            if outcome.cancelled() and not self.loop.is_closed():
                self.loop.call_soon_threadsafe(task.cancel)

        task.add_done_callback(partial(_copy_result, outcome))
        outcome.add_done_callback(cancel)

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Schedule a callback in the loop, from any thread."""
        self.loop.call_soon_threadsafe(callback, *arguments)

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def _copy_result(outcome: "Future[T]", task: "asyncio.Task[T]") -> None:
    """Copy the task's result to the future of the waiting thread, unless it was cancelled."""
    if task.cancelled():
        outcome.cancel()
        outcome.set_running_or_notify_cancel()
        return
    error = task.exception()
    if not outcome.set_running_or_notify_cancel():
        return
    if error is None:
        outcome.set_result(task.result())
    else:
        outcome.set_exception(error)
