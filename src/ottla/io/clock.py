"""The machine's wall clock."""

import time


class RealClock:
    __slots__ = ()

    seconds = staticmethod(time.perf_counter)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
