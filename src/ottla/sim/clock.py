"""Wall clock: virtual time plus an offset."""

from ottla.sim.loop import SimulatedLoop
from ottla.sim.process import Process
from ottla.sim.trace import Trace

# Wall-clock time at virtual time 0, in 2025.
EPOCH_MS = 1_750_000_000_000

MONOTONIC_READ_SECONDS = 0.0001
"""Advance of the monotonic clock per read.

Virtual time does not pass within a callback; without this, sliced work would never reach the end of its time slice.
"""


class SimulatedClock:
    """The Clock port. Change `offset_ms` at any time to make the wall clock jump."""

    __slots__ = ("_loop", "_process", "_reading_seconds", "_trace", "offset_ms")

    def __init__(self, loop: SimulatedLoop, process: Process, trace: Trace, *, offset_ms: int = 0) -> None:
        self._loop = loop
        self._process = process
        self._trace = trace
        self.offset_ms = offset_ms
        self._reading_seconds = 0.0

    def now_ms(self) -> int:
        self._process.check()
        now_ms = EPOCH_MS + int(self._loop.time() * 1_000) + self.offset_ms
        self._trace.add(self._process.name, "now_ms", now_ms)
        return now_ms

    def monotonic(self) -> float:
        self._reading_seconds += MONOTONIC_READ_SECONDS
        return self._loop.time() + self._reading_seconds

    def yield_cpu(self) -> None:
        """Do nothing: time does not pass within a callback."""
