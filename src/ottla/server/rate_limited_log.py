"""Log lines that somebody outside can cause: once in a while each, with the number of those that were left out."""

import logging
from collections.abc import Callable

INTERVAL_SECONDS = 1.0


class RateLimitedLog:
    """One kind of line: at most one in a second, whatever happens."""

    def __init__(self, log: logging.Logger, level: int, now: Callable[[], float]) -> None:
        self._log = log
        self._level = level
        self._now = now
        self._next = float("-inf")
        self._left_out = 0

    def emit(self, text: str, *values: object, error: BaseException | None = None) -> None:
        now = self._now()
        if now < self._next:
            self._left_out += 1
            return
        self._next = now + INTERVAL_SECONDS
        if self._left_out:
            text, self._left_out = f"{text} ({self._left_out} lines like this were left out)", 0
        self._log.log(self._level, text, *values, exc_info=error)
