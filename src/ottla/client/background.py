"""An event loop on a thread of its own: what the blocking face runs the other one on."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from ottla.client.errors import Closed, TimedOut

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: it halves the cost of a request."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Background:
    """Starts with its first use. Its thread does not keep the process alive: close what must be finished."""

    def __init__(self, name: str) -> None:
        self.loop = new_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None, what: str = "The call") -> T:
        """Run a coroutine there and wait for it, for at most `timeout` seconds."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a callback cannot wait for its own client: use the Async face, or another thread")
        if self.loop.is_closed():
            work.close()
            raise Closed
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout)
        except FutureTimeoutError:
            if future.done():
                raise
            future.cancel()
            raise TimedOut(f"{what} did not end within {timeout} s.") from None
        except BaseException:
            future.cancel()
            raise

    def soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call it there, from any thread."""
        self.loop.call_soon_threadsafe(callback, *arguments)

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
