"""SliceScheduler: one of those who have more to do has its turn in each, and what is let go is let go in slices."""

import asyncio
from collections.abc import Generator
from itertools import pairwise

from ottla.runtime.slice_scheduler import (
    CLIENT_ACTIVE_SECONDS,
    EXTRA_SLICE_SECONDS,
    FREED_PER_SLICE,
    SINGLE_CLIENT_SLICE_SECONDS,
    SLICE_SECONDS,
    SliceScheduler,
)


class Clock:
    now = 0.0
    naps = 0

    def yield_cpu(self) -> None:
        self.naps += 1

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        raise AssertionError("nobody asks")


async def once_around() -> None:
    """Until all that is due now, and what that calls for at once, has been done."""
    loop = asyncio.get_running_loop()
    for _ in range(2):
        done = loop.create_future()
        loop.call_soon(done.set_result, None)
        await done


async def test_one_has_its_turn_in_each_round() -> None:
    clock, turns = Clock(), []
    scheduler = SliceScheduler(asyncio.get_running_loop(), clock)
    for name in "abc":
        scheduler.schedule(lambda name=name: turns.append(name))  # type: ignore[misc]
    seen = []
    while len(turns) < 3:
        await asyncio.sleep(0)
        seen.append(len(turns))
    assert turns == ["a", "b", "c"]
    assert [later - before for before, later in pairwise(seen) if later > before] == [1] * (3 - seen[0])


async def test_where_rounds_are_long_more_have_their_turn() -> None:
    """Else those who have much to do would starve while all are busy."""
    clock, turns = Clock(), []
    scheduler = SliceScheduler(asyncio.get_running_loop(), clock)
    for number in range(10):
        scheduler.schedule(lambda number=number: turns.append(number))  # type: ignore[misc]
    clock.now += 4.5 * EXTRA_SLICE_SECONDS
    await once_around()
    assert turns[:5] == [0, 1, 2, 3, 4]
    assert len(turns) < 10


async def test_one_that_fails_does_not_stop_the_others() -> None:
    loop, turns, failures = asyncio.get_running_loop(), [], []
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    scheduler = SliceScheduler(loop, Clock())

    def fail() -> None:
        raise RuntimeError("on purpose")

    scheduler.schedule(fail)
    scheduler.schedule(lambda: turns.append("next"))
    given_up = scheduler.next_slice()
    given_up.cancel()
    await scheduler.next_slice()
    assert (turns, [str(failure) for failure in failures]) == (["next"], ["on purpose"])


async def test_slices_are_run_with_others_in_between() -> None:
    scheduler = SliceScheduler(asyncio.get_running_loop(), Clock())
    order = []

    def work(name: str) -> Generator[None, None, str]:
        for number in range(3):
            order.append((name, number))
            yield
        return name

    assert await asyncio.gather(scheduler.run(work("a")), scheduler.run(work("b"))) == ["a", "b"]
    assert order == [(name, number) for number in range(3) for name in "ab"]


async def test_what_is_let_go_is_freed_in_slices() -> None:
    scheduler = SliceScheduler(asyncio.get_running_loop(), Clock())
    many, named = list(range(3 * FREED_PER_SLICE + 1)), dict.fromkeys(range(FREED_PER_SLICE + 1))
    letting_go = asyncio.ensure_future(scheduler.free_in_slices(many, named))
    await asyncio.sleep(0)
    assert len(many) == 2 * FREED_PER_SLICE + 1
    await letting_go
    assert (len(many), len(named)) == (1, 1)


async def test_who_was_answered_may_go_on_before_the_next_slice() -> None:
    """Where there are few processors; and only after others were served."""
    clock = Clock()
    scheduler = SliceScheduler(asyncio.get_running_loop(), clock)
    await scheduler.next_slice()
    assert clock.naps == 0
    scheduler.latest = "somebody"
    await scheduler.next_slice()
    await scheduler.next_slice()
    assert clock.naps == 1


async def test_a_slice_is_longer_while_nobody_else_is_about() -> None:
    clock = Clock()
    scheduler = SliceScheduler(asyncio.get_running_loop(), clock)
    assert scheduler.slice_seconds(1.0) == SINGLE_CLIENT_SLICE_SECONDS
    scheduler.has_other_senders = True
    assert scheduler.slice_seconds(1.0) == SLICE_SECONDS
    assert scheduler.slice_seconds(1.0 + CLIENT_ACTIVE_SECONDS * 0.9) == SLICE_SECONDS
    assert scheduler.slice_seconds(1.0 + CLIENT_ACTIVE_SECONDS * 1.1) == SINGLE_CLIENT_SLICE_SECONDS
    scheduler.schedule(lambda: None)
    assert scheduler.slice_seconds(5.0) == SLICE_SECONDS
    await once_around()
