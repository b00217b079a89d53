"""Exponential backoff with jitter."""

from ottla.base.ports import Rng

JITTER_PERCENT = 20
_GRAIN = 1 << 20


class Backoff:
    """Delays that double from about `first_ms` up to `max_ms`, each ±20 %."""

    __slots__ = ("_first_ms", "_max_ms", "_rng")

    def __init__(self, rng: Rng, first_ms: float, max_ms: float) -> None:
        self._rng = rng
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)

    def delay_ms(self, attempt: int) -> float:
        """Return the delay before retry number `attempt`, counted from 1."""
        if self._first_ms <= 0:
            return 0.0
        plain: float = min(self._first_ms * 2 ** min(max(attempt - 1, 0), 30), self._max_ms)
        swing = (self._rng.below(_GRAIN) / _GRAIN * 2 - 1) * JITTER_PERCENT / 100
        return min(plain * (1 + swing), self._max_ms)
