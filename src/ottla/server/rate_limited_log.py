"""Rate-limited log messages, for events that clients can cause at any rate."""

import logging
from collections.abc import Callable

INTERVAL_SECONDS = 1.0


class RateLimitedLog:
    """One message, logged at most once a second, with the number of those suppressed in between."""

    def __init__(self, log: logging.Logger, level: int, now: Callable[[], float]) -> None:
        self._log = log
        self._level = level
        self._now = now
        self._next = float("-inf")
        self._suppressed = 0

    def emit(self, text: str, *values: object, error: BaseException | None = None) -> None:
        now = self._now()
        if now < self._next:
            self._suppressed += 1
            return
        self._next = now + INTERVAL_SECONDS
        if self._suppressed:
            text, self._suppressed = f"{text} ({self._suppressed} similar messages suppressed)", 0
        self._log.log(self._level, text, *values, exc_info=error)
