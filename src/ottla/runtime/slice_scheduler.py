"""Cooperative time slicing. Long work runs in 0.3 ms slices; each event-loop iteration runs one slice of one queued
job.

Most requests take microseconds, but some name thousands of partitions, hundreds may arrive together on one connection,
and maintenance scans all logs. All of these divide their work into pieces, and only this module decides when a slice
is over:

- Work that never waits is a generator that yields after each piece (`SlicedWork`). `start` and `run` drive it.
- A coroutine calls `await yield_if_due()` between pieces.
- A connection asks `is_burst_over` between the requests of a burst.

Requests without records that are larger than 32 kB go through `large_requests` as well: see `LargeRequestThrottle`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from ottla.base.ports import Clock
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import SlicedWork

T = TypeVar("T")

SLICE_SECONDS = 0.0003
"""Length of a slice."""
SINGLE_CLIENT_SLICE_SECONDS = 0.002
"""Slice length of requests while only one client is active. Longer slices answer a pipelined burst with fewer writes;
the next client to send waits at most this long, once."""
CLIENT_ACTIVE_SECONDS = 0.1
"""A client is active for this long after it sent something."""
EXTRA_SLICE_SECONDS = 0.003
"""Run one extra slice per 3 ms that an iteration takes, so that sliced work gets at least 10 % of the loop."""
ITEMS_PER_PIECE = 20
"""Partitions or topics in a piece where each takes a microsecond or so."""
CLOCK_SECONDS = SLICE_SECONDS / 15
"""Where pieces are short several run before the clock is read again: reading it after each would cost up to a tenth."""
PIECES_PER_CLOCK_READ_MAX = 8
FREED_PER_PIECE = 500
"""Objects, together with all that only they refer to."""
PAUSE_FACTOR = 9
"""Large requests pause for this multiple of each slice, and so get a tenth of the loop's time."""
PAUSE_SECONDS_MAX = 1.0
QUEUED_BYTES_MAX = 64 << 20
"""Upper limit of the large requests that wait for their turn."""

_UNFINISHED: Any = object()


class SliceScheduler:
    """`start` and `run` drive generators, `yield_if_due` is awaited by coroutines, `schedule` queues a callback."""

    __slots__ = (
        "_burst_began",
        "_clock",
        "_first_slices_left",
        "_iteration_began",
        "_loop",
        "_monotonic",
        "_other_senders_until",
        "_queue",
        "_slice_ends",
        "has_other_senders",
        "has_served_client",
        "large_requests",
        "sender",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._monotonic = clock.monotonic
        self._queue: deque[Callable[[], object]] = deque()
        self._iteration_began = 0.0
        self._slice_ends = 0.0
        self._first_slices_left = 0.0
        self._burst_began = 0.0
        self._other_senders_until = 0.0
        self.large_requests = LargeRequestThrottle(self, loop, clock)
        self.has_served_client = False
        """Whether a client other than those that wait for a slice has sent something since the last slice. Set by
        connections."""
        self.sender: object = None
        """The connection that sent something last. Set by connections, as is `has_other_senders`: a call would cost
        more."""
        self.has_other_senders = False
        """Whether `sender` has changed since it was last checked."""

    # Work that never waits: generators

    def start(self, work: SlicedWork[T]) -> T | Coroutine[Any, Any, T]:
        """Run the first slice of `work` at once. Return its result if that finishes it, else a coroutine for the rest.

        While other jobs are queued, all first slices of one iteration share the time of one slice.
        """
        began = self._monotonic()
        result = self._run_slice(work, began + (self._first_slices_left if self._queue else self._slice_seconds(began)))
        if self._queue:
            self._first_slices_left -= self._monotonic() - began
        return self._finish(work) if result is _UNFINISHED else result

    async def run(self, work: SlicedWork[T]) -> T:
        """Return the result of `work`, of which the first slice runs at once."""
        result = self.start(work)
        return await result if asyncio.iscoroutine(result) else result

    async def _finish(self, work: SlicedWork[T]) -> T:
        result: T = _UNFINISHED
        while result is _UNFINISHED:
            await self.next_slice()
            now = self._monotonic()
            result = self._run_slice(work, now + self._slice_seconds(now))
        return result

    def _run_slice(self, work: SlicedWork[T], ends: float) -> T:
        """Run at least one piece. Return `_UNFINISHED` if the slice ended first."""
        monotonic = self._monotonic
        pieces = 1
        try:
            next(work)
            now = monotonic()
            while now < ends:
                for _ in range(pieces):
                    next(work)
                before, now = now, monotonic()
                if now - before > CLOCK_SECONDS:
                    pieces = 1
                elif pieces < PIECES_PER_CLOCK_READ_MAX:
                    pieces *= 2
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        return _UNFINISHED  # type: ignore[no-any-return]

    def free_in_slices(self, *collections: list[Any] | dict[Any, Any]) -> None:
        """Empty collections that nothing needs any more, in the background: to free 100,000 objects takes some
        milliseconds."""
        large = [collection for collection in collections if len(collection) > FREED_PER_PIECE]
        if large:
            self.schedule(partial(self._free, _free_in_pieces(large)))

    def _free(self, work: SlicedWork[None]) -> None:
        if self._run_slice(work, self._monotonic() + SLICE_SECONDS) is _UNFINISHED:
            self.schedule(partial(self._free, work))

    # Work that waits for other things, too: coroutines

    async def yield_if_due(self) -> None:
        """Wait for the next slice if the current one is over."""
        if self._monotonic() >= self._slice_ends:
            await self.next_slice()

    def begin_slice(self) -> None:
        """The calling coroutine goes on after it has waited for something else, and need not wait for a slice
        besides."""
        self._slice_ends = self._monotonic() + SLICE_SECONDS

    async def next_slice(self) -> None:
        future = self._loop.create_future()
        self.schedule(partial(_wake, future))
        await future
        self.begin_slice()

    # Bursts: requests that arrived together on one connection

    def begin_burst(self) -> None:
        self._burst_began = self._monotonic()

    def is_burst_over(self) -> bool:
        now = self._monotonic()
        spent = now - self._burst_began
        return spent >= SLICE_SECONDS and spent >= self._slice_seconds(now)

    def schedule_burst(self, connection: object, resume: Callable[[], object]) -> None:
        """Go on with a burst in a later iteration."""
        self.schedule(resume)
        if self.sender is connection:
            self.has_served_client = False

    def _slice_seconds(self, now: float) -> float:
        """Return the length of a request's slice."""
        if self.has_other_senders:
            self.has_other_senders = False
            self._other_senders_until = now + CLIENT_ACTIVE_SECONDS
        return SLICE_SECONDS if self._queue or now < self._other_senders_until else SINGLE_CLIENT_SLICE_SECONDS

    # The queue

    def schedule(self, job: Callable[[], object]) -> None:
        """Call `job` once when all jobs that are queued already have been called: one in each iteration of the loop."""
        if not self._queue:
            self._iteration_began = self._monotonic()
            self._first_slices_left = SLICE_SECONDS
            self._loop.call_soon(self._run_iteration)
        self._queue.append(job)

    def _run_iteration(self) -> None:
        if self.has_served_client:
            # A client that was just answered may be waiting for this CPU: yield it, since the next slice is not urgent.
            self.has_served_client = False
            self._clock.yield_cpu()
        now = self._monotonic()
        slices = 1 + int((now - self._iteration_began) / EXTRA_SLICE_SECONDS)
        self._iteration_began = now
        self._first_slices_left = SLICE_SECONDS
        for _ in range(min(slices, len(self._queue))):
            self._loop.call_soon(self._queue.popleft())
        if self._queue:
            self._loop.call_soon(self._run_iteration)


class LargeRequestThrottle:
    """Handles large requests one at a time, in slices, and in a tenth of the loop's time: small requests are served in
    between.

    `acquire` before the work and `release` after it; `run` drives a generator in between.
    """

    __slots__ = ("_clock", "_is_acquired", "_loop", "_scheduler", "_slice_began", "_waiters", "queued_bytes")

    def __init__(self, scheduler: SliceScheduler, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._clock = clock
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_acquired = False
        self._slice_began = 0.0
        self.queued_bytes = 0

    def check_capacity(self, size: int) -> None:
        """Raise `MalformedMessage` if the queue has no capacity for a request of this size."""
        if self.queued_bytes + size > QUEUED_BYTES_MAX:
            raise MalformedMessage(
                f"large-request queue is full ({self.queued_bytes} bytes queued); rejecting a request of {size} bytes"
            )

    async def acquire(self, size: int) -> None:
        """Wait until no other large request is being handled; `size` bytes of memory are in use meanwhile."""
        if self._is_acquired:
            future = self._loop.create_future()
            self._waiters.append(future)
            self.queued_bytes += size
            try:
                await future
            except asyncio.CancelledError:
                if not future.cancelled():
                    self._wake_next()  # cancelled after it had been woken
                raise
            finally:
                self.queued_bytes -= size
        self._is_acquired = True
        self._slice_began = self._clock.monotonic()

    def release(self) -> None:
        """Let the next request begin, after a pause that matches the last slice."""
        self._loop.call_later(self._pause_seconds(), self._wake_next)

    async def run(self, work: SlicedWork[T]) -> T:
        """Return the result of `work`. The throttle must have been acquired."""
        while True:
            self._slice_began = now = self._clock.monotonic()
            result = self._scheduler._run_slice(work, now + SLICE_SECONDS)
            if result is not _UNFINISHED:
                return result
            await asyncio.sleep(self._pause_seconds())

    def _pause_seconds(self) -> float:
        return min(PAUSE_FACTOR * (self._clock.monotonic() - self._slice_began), PAUSE_SECONDS_MAX)

    def _wake_next(self) -> None:
        while self._waiters:
            future = self._waiters.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._is_acquired = False


def in_pieces(items: Sequence[T], size: int = ITEMS_PER_PIECE) -> Iterator[Sequence[T]]:
    """Return the items, a piece at a time."""
    return (items[first : first + size] for first in range(0, len(items), size))


def _free_in_pieces(collections: Sequence[list[Any] | dict[Any, Any]]) -> SlicedWork[None]:
    for collection in collections:
        while collection:
            if isinstance(collection, list):
                del collection[-FREED_PER_PIECE:]
            else:
                for _ in range(min(FREED_PER_PIECE, len(collection))):
                    collection.popitem()
            yield


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
