"""What takes long is done in slices, and in each round of the loop one of those who have more to do has its turn.

A request of its own is a matter of microseconds, but there are requests that name thousands of partitions, connections on which hundreds of
requests arrive together, and work that looks at all logs. If each of them had a slice in each round, whoever asks for little would wait
for the slices of all.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ottla.base.ports import Clock
from ottla.wire.schema import SlicedWork

T = TypeVar("T")

SLICE_SECONDS = 0.0003
"""What one turn may take."""
SINGLE_CLIENT_SLICE_SECONDS = 0.002
"""While nobody else is about: to answer together what arrived together is cheaper, and who comes now waits for so long once."""
CLIENT_ACTIVE_SECONDS = 0.1
"""Who has sent something is about for so long."""
EXTRA_SLICE_SECONDS = 0.003
"""Where scheduler are long, as all are busy, there are more turns in each: so much of the loop's time is for slices at least."""
FREED_PER_SLICE = 2000
"""Objects, with what only they know."""


class SliceScheduler:
    """`after` calls back when it is one's turn, `next` is awaited."""

    __slots__ = (
        "_began",
        "_clock",
        "_other_senders_until",
        "_loop",
        "_waiting",
        "has_other_senders",
        "latest",
        "sender",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._waiting: deque[Callable[[], object]] = deque()
        self._began = 0.0
        self.latest: object = None
        """Who has sent something since the last turn, if not those who wait for one."""
        self.sender: object = None
        """Who was the last to send something."""
        self.has_other_senders = False
        """Whether that was somebody else than before, since it was last looked at."""
        self._other_senders_until = 0.0

    def slice_seconds(self, now: float) -> float:
        """What a turn may take that is under way: it depends on whether more than one is about."""
        if self.has_other_senders:
            self.has_other_senders = False
            self._other_senders_until = now + CLIENT_ACTIVE_SECONDS
        return SLICE_SECONDS if self._waiting or now < self._other_senders_until else SINGLE_CLIENT_SLICE_SECONDS

    def schedule(self, work: Callable[[], object]) -> None:
        """Do it when all who wait already have had a turn."""
        if not self._waiting:
            self._began = self._clock.monotonic()
            self._loop.call_soon(self._turn)
        self._waiting.append(work)

    def next_slice(self) -> "asyncio.Future[None]":
        """One's next turn."""
        future = self._loop.create_future()
        self.schedule(partial(_wake, future))
        return future

    async def run(self, work: SlicedWork[T]) -> T:
        """The result of work that comes in slices."""
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            await self.next_slice()

    async def free_in_slices(self, *many: list[Any] | dict[Any, Any]) -> None:
        """Empty what nobody needs any more, in slices: to free a hundred thousand objects takes some milliseconds."""
        for each in many:
            while len(each) > FREED_PER_SLICE:
                if isinstance(each, list):
                    del each[-FREED_PER_SLICE:]
                else:
                    for _ in range(FREED_PER_SLICE):
                        each.popitem()
                await self.next_slice()

    def _turn(self) -> None:
        if (
            self.latest is not None
        ):  # who was answered may have this very processor to go on with, as the next slice has time
            self.latest = None
            self._clock.yield_cpu()
        now = self._clock.monotonic()
        turns, self._began = 1 + int((now - self._began) / EXTRA_SLICE_SECONDS), now
        for _ in range(min(turns, len(self._waiting))):
            self._loop.call_soon(self._waiting.popleft())
        if self._waiting:
            self._loop.call_soon(self._turn)


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
