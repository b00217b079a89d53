"""Wall time made of virtual time and an offset."""

from ottla.sim.loop import SimulatedLoop
from ottla.sim.process import Process
from ottla.sim.trace import Trace

# Some moment in 2025 at which virtual time began.
EPOCH_MS = 1_750_000_000_000


class SimulatedClock:
    """`offset_ms` may be changed at any time: that is a clock which jumps."""

    __slots__ = ("_loop", "_process", "_trace", "offset_ms")

    def __init__(self, loop: SimulatedLoop, process: Process, trace: Trace, *, offset_ms: int = 0) -> None:
        self._loop = loop
        self._process = process
        self._trace = trace
        self.offset_ms = offset_ms

    def now_ms(self) -> int:
        self._process.check()
        now_ms = EPOCH_MS + int(self._loop.time() * 1_000) + self.offset_ms
        self._trace.add(self._process.name, "now_ms", now_ms)
        return now_ms

    def monotonic(self) -> float:
        return self._loop.time()

    def yield_cpu(self) -> None:
        """Nothing passes inside a callback."""
