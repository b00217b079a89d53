"""SliceScheduler: which job runs when, for how long, and what is freed in slices."""

import asyncio
import math
from collections.abc import Generator
from itertools import pairwise

import pytest

from ottla.runtime.slice_scheduler import (
    CLIENT_ACTIVE_SECONDS,
    EXTRA_SLICE_SECONDS,
    FREED_PER_PIECE,
    SINGLE_CLIENT_SLICE_SECONDS,
    SLICE_SECONDS,
    SliceScheduler,
    in_pieces,
)

PIECE_SECONDS = SLICE_SECONDS * 0.51


class Clock:
    now = 0.0
    cpu_yields = reads = 0

    def yield_cpu(self) -> None:
        self.cpu_yields += 1

    def monotonic(self) -> float:
        self.reads += 1
        return self.now

    def now_ms(self) -> int:
        raise AssertionError("the scheduler measures durations only")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def scheduler(clock: Clock) -> SliceScheduler:
    """One that serves several clients."""
    scheduler = SliceScheduler(asyncio.get_running_loop(), clock)
    scheduler._other_senders_until = float("inf")
    return scheduler


def pieces(clock: Clock, name: str, count: int, log: list[tuple[str, int]] | None = None) -> Generator[None, None, str]:
    """Work of `count` pieces, two of which fill a slice."""
    for number in range(count):
        clock.now += PIECE_SECONDS
        if log is not None:
            log.append((name, number))
        yield
    return name


async def once_around() -> None:
    """Run all callbacks that are due now, and those that they schedule."""
    loop = asyncio.get_running_loop()
    for _ in range(2):
        done = loop.create_future()
        loop.call_soon(done.set_result, None)
        await done


async def test_queue_runs_one_job_per_iteration(scheduler: SliceScheduler) -> None:
    ran: list[str] = []
    for name in "abc":
        scheduler.schedule(lambda name=name: ran.append(name))
    seen = []
    while len(ran) < 3:
        await asyncio.sleep(0)
        seen.append(len(ran))
    assert ran == ["a", "b", "c"]
    assert [later - before for before, later in pairwise(seen) if later > before] == [1] * (3 - seen[0])


async def test_queue_runs_more_jobs_where_iterations_are_long(scheduler: SliceScheduler, clock: Clock) -> None:
    """Otherwise sliced work would starve while many clients are active."""
    ran: list[int] = []
    for number in range(10):
        scheduler.schedule(lambda number=number: ran.append(number))
    clock.now += 4.5 * EXTRA_SLICE_SECONDS
    await once_around()
    assert ran[:5] == [0, 1, 2, 3, 4]
    assert len(ran) < 10


async def test_failed_or_cancelled_jobs_do_not_stop_the_queue(scheduler: SliceScheduler) -> None:
    loop, ran, failures = asyncio.get_running_loop(), [], []
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fail() -> None:
        raise RuntimeError("on purpose")

    scheduler.schedule(fail)
    scheduler.schedule(lambda: ran.append("next"))
    cancelled = asyncio.ensure_future(scheduler.next_slice())
    await asyncio.sleep(0)
    cancelled.cancel()
    await scheduler.next_slice()
    assert (ran, [str(failure) for failure in failures]) == (["next"], ["on purpose"])


async def test_start_returns_the_result_of_work_that_fits_one_slice(scheduler: SliceScheduler, clock: Clock) -> None:
    assert scheduler.start(pieces(clock, "short", 1)) == "short"


async def test_start_returns_a_coroutine_for_the_rest_of_long_work(scheduler: SliceScheduler, clock: Clock) -> None:
    log: list[tuple[str, int]] = []
    rest = scheduler.start(pieces(clock, "long", 5, log))
    assert asyncio.iscoroutine(rest)
    assert len(log) == 2
    assert await rest == "long"
    assert len(log) == 5


async def test_start_runs_longer_slices_while_one_client_is_active(scheduler: SliceScheduler, clock: Clock) -> None:
    scheduler._other_senders_until = 0.0
    log: list[tuple[str, int]] = []
    rest = scheduler.start(pieces(clock, "long", 20, log))
    assert asyncio.iscoroutine(rest)
    assert len(log) == math.ceil(SINGLE_CLIENT_SLICE_SECONDS / PIECE_SECONDS)
    assert await rest == "long"


async def test_clock_is_read_less_often_where_pieces_are_short(scheduler: SliceScheduler, clock: Clock) -> None:
    def short_pieces(count: int, seconds: float) -> Generator[None, None, None]:
        for _ in range(count):
            clock.now += seconds
            yield

    clock.reads = 0
    assert scheduler.start(short_pieces(200, SLICE_SECONDS / 1000)) is None
    assert clock.reads < 40
    clock.reads = 0
    assert scheduler.start(short_pieces(12, SLICE_SECONDS / 13)) is None
    assert clock.reads > 12


async def test_start_passes_errors_on(scheduler: SliceScheduler, clock: Clock) -> None:
    """In the first slice, and in a later one."""

    def failing(count: int) -> Generator[None, None, None]:
        yield from pieces(clock, "", count)
        raise ValueError(count)

    with pytest.raises(ValueError, match="1"):
        scheduler.start(failing(1))
    with pytest.raises(ValueError, match="5"):
        await scheduler.run(failing(5))


async def test_first_slices_share_one_slice_while_jobs_are_queued(scheduler: SliceScheduler, clock: Clock) -> None:
    scheduler.schedule(lambda: None)
    log: list[tuple[str, int]] = []
    rests = [scheduler.start(pieces(clock, name, 3, log)) for name in "abc"]
    assert log == [("a", 0), ("a", 1), ("b", 0), ("c", 0)]
    assert await asyncio.gather(*rests) == ["a", "b", "c"]


async def test_slices_of_several_jobs_alternate(scheduler: SliceScheduler, clock: Clock) -> None:
    log: list[tuple[str, int]] = []
    results = await asyncio.gather(*(scheduler.run(pieces(clock, name, 6, log)) for name in "ab"))
    assert results == ["a", "b"]
    assert [name for name, _ in log] == ["a", "a", "b", "b"] * 3


async def test_coroutine_yields_only_when_its_slice_is_over(scheduler: SliceScheduler, clock: Clock) -> None:
    ran: list[str] = []
    await scheduler.next_slice()
    scheduler.schedule(lambda: ran.append("other"))
    clock.now += SLICE_SECONDS * 0.9
    await scheduler.yield_if_due()
    assert not ran
    clock.now += SLICE_SECONDS * 0.2
    await scheduler.yield_if_due()
    assert ran == ["other"]
    clock.now += 1.0
    scheduler.begin_slice()
    scheduler.schedule(lambda: ran.append("another"))
    await scheduler.yield_if_due()
    assert ran == ["other"]


async def test_large_collections_are_freed_in_slices(scheduler: SliceScheduler) -> None:
    many, named = list(range(3 * FREED_PER_PIECE + 1)), dict.fromkeys(range(FREED_PER_PIECE + 1))
    few = list(range(FREED_PER_PIECE))
    scheduler.free_in_slices(many, named, few)
    assert len(many) == 3 * FREED_PER_PIECE + 1
    await scheduler.next_slice()
    await scheduler.next_slice()
    assert (len(many), len(named), len(few)) == (0, 0, FREED_PER_PIECE)


async def test_freeing_ends_its_slice(scheduler: SliceScheduler, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.runtime.slice_scheduler.SLICE_SECONDS", 0.0)
    many = list(range(3 * FREED_PER_PIECE))
    scheduler.free_in_slices(many)
    await scheduler.next_slice()
    assert len(many) == 2 * FREED_PER_PIECE


async def test_cpu_is_yielded_before_a_slice_if_a_client_was_served(scheduler: SliceScheduler, clock: Clock) -> None:
    await scheduler.next_slice()
    assert clock.cpu_yields == 0
    scheduler.has_served_client = True
    await scheduler.next_slice()
    await scheduler.next_slice()
    assert clock.cpu_yields == 1


async def test_burst_that_waits_for_a_slice_is_not_a_served_client(scheduler: SliceScheduler, clock: Clock) -> None:
    connection, other = object(), object()
    for sender in (connection, other):
        scheduler.sender, scheduler.has_served_client = sender, True
        scheduler.schedule_burst(connection, lambda: None)
        await once_around()
    assert clock.cpu_yields == 1


async def test_burst_has_longer_slices_while_one_client_is_active(scheduler: SliceScheduler, clock: Clock) -> None:
    scheduler._other_senders_until = 0.0

    def burst_seconds() -> float:
        """The length of a burst that begins now."""
        began = clock.now
        scheduler.begin_burst()
        for seconds in (SLICE_SECONDS, SINGLE_CLIENT_SLICE_SECONDS):
            clock.now = began + seconds * 0.9
            assert not scheduler.is_burst_over()
            clock.now = began + seconds * 1.01
            if scheduler.is_burst_over():
                return seconds
        raise AssertionError

    assert burst_seconds() == SINGLE_CLIENT_SLICE_SECONDS
    scheduler.has_other_senders = True
    assert burst_seconds() == SLICE_SECONDS
    clock.now += CLIENT_ACTIVE_SECONDS * 0.9
    assert burst_seconds() == SLICE_SECONDS
    clock.now += CLIENT_ACTIVE_SECONDS * 1.1
    assert burst_seconds() == SINGLE_CLIENT_SLICE_SECONDS
    scheduler.schedule(lambda: None)
    assert burst_seconds() == SLICE_SECONDS
    await once_around()


def test_pieces_keep_the_order_of_items() -> None:
    split = list(in_pieces(range(45)))
    assert [len(piece) for piece in split] == [20, 20, 5]
    assert [item for piece in split for item in piece] == list(range(45))
