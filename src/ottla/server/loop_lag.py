"""Event loop lag, measured by a timer that compares when it fires with when it was due."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable

INTERVAL_SECONDS = 0.1
BOUNDS_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class LoopLag:
    """A histogram of the lag; `on_lag` is called with each measurement, in seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_lag: Callable[[float], None]) -> None:
        self._loop = loop
        self._on_lag = on_lag
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.counts = [0] * (len(BOUNDS_SECONDS) + 1)
        """Measurements per bound; the last entry counts those above all bounds."""
        self.sum_seconds = 0.0

    def start(self) -> None:
        self._due = self._loop.time() + INTERVAL_SECONDS
        self._timer = self._loop.call_at(self._due, self._on_timer)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        lag = max(self._loop.time() - self._due, 0.0)
        self.counts[bisect_left(BOUNDS_SECONDS, lag)] += 1
        self.sum_seconds += lag
        self._on_lag(lag)
        self.start()
