"""The machine's wall clock."""

import time

NAP_SECONDS = 0.00003
"""The kernel makes up to 0.05 ms more of it."""


class RealClock:
    __slots__ = ()

    monotonic = staticmethod(time.perf_counter)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def yield_cpu(self) -> None:
        time.sleep(NAP_SECONDS)
