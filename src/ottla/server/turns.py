"""Large requests have the loop one at a time, in slices, and a part of the time only: whoever asks for little is served in between.

What is counted is the time that a slice took; after it the loop belongs to others for a multiple of that time.
"""

import asyncio
from collections import deque
from typing import TypeVar

from ottla.base.ports import Clock
from ottla.wire.schema import SlicedWork

T = TypeVar("T")

REST = 9
"""Large requests take one part of the loop's time, all others have so many."""
REST_SECONDS_MAX = 1.0
WAITING_BYTES_MAX = 64 << 20
"""Of large requests that wait for their turn."""


class Turns:
    """`take` before work and `give_back` after it; `run` does work that comes in slices."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False
        self._began = 0.0
        self.waiting_bytes = 0

    def has_room(self, size: int) -> bool:
        return self.waiting_bytes + size <= WAITING_BYTES_MAX

    async def take(self, size: int) -> None:
        """`size` bytes are held meanwhile."""
        if self._is_taken:
            future = self._loop.create_future()
            self._waiting.append(future)
            self.waiting_bytes += size
            try:
                await future
            except asyncio.CancelledError:
                if not future.cancelled():
                    self._next()  # it was given, and is not wanted any more
                raise
            finally:
                self.waiting_bytes -= size
        self._is_taken = True
        self._began = self._clock.monotonic()

    def give_back(self) -> None:
        """The next one comes when others have had theirs."""
        rest = min(REST * (self._clock.monotonic() - self._began), REST_SECONDS_MAX)
        self._loop.call_later(rest, self._next)

    async def run(self, work: SlicedWork[T]) -> T:
        """The result of work that comes in slices; the turn must have been taken."""
        clock = self._clock
        while True:
            self._began = clock.monotonic()
            try:
                next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            await asyncio.sleep(min(REST * (clock.monotonic() - self._began), REST_SECONDS_MAX))

    def _next(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._is_taken = False
