"""Fetches that wait until enough bytes have been appended, or until `max_wait_ms` have passed."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.runtime.partition import Partition


class DelayedFetch:
    """A fetch that waits for data. `on_ready` is called once, from the loop: never inside the append that ends the
    wait."""

    __slots__ = ("_loop", "_missing_bytes", "_on_ready", "_partitions", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: list["Partition"],
        *,
        missing_bytes: int,
        wait_ms: int,
        on_ready: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._missing_bytes = missing_bytes
        self._on_ready = on_ready
        self._partitions = partitions
        self._timer: asyncio.TimerHandle | asyncio.Handle = loop.call_later(wait_ms / 1000, self._finish)
        for partition in partitions:
            partition.delayed_fetches[self] = None

    def on_appended(self, size: int) -> None:
        """Count bytes that have become readable in one of the partitions."""
        if self._missing_bytes > 0:
            self._missing_bytes -= size
            if self._missing_bytes <= 0:
                self.wake()

    def wake(self) -> None:
        """End the wait: there is enough data, or a partition was removed."""
        self._missing_bytes = 0
        self._timer.cancel()
        self._timer = self._loop.call_soon(self._finish)

    def cancel(self) -> None:
        """The client has disconnected."""
        self._timer.cancel()
        self._leave()

    def _finish(self) -> None:
        self._leave()
        self._on_ready()

    def _leave(self) -> None:
        del self._timer  # a reference cycle otherwise: it refers to this object
        for partition in self._partitions:
            partition.delayed_fetches.pop(self, None)
