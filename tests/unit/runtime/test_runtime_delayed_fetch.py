"""Delayed fetches leave no reference cycles."""

import asyncio
import gc
import weakref

import pytest

from ottla.runtime.delayed_fetch import DelayedFetch


class Partition:
    def __init__(self) -> None:
        self.delayed_fetches: dict[DelayedFetch, None] = {}


class Fetch:
    """Refers to its delayed fetch until that is ready, as real fetches do."""

    def __init__(self, loop: asyncio.AbstractEventLoop, partition: Partition) -> None:
        self.is_ready = loop.create_future()
        self.delayed: DelayedFetch | None = DelayedFetch(
            loop, [partition], missing_bytes=10, wait_ms=60_000, on_ready=self.on_ready
        )

    def on_ready(self) -> None:
        self.delayed = None
        self.is_ready.set_result(None)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_delayed_fetch_is_freed_at_once(is_lost: bool) -> None:
    partition, loop = Partition(), asyncio.get_running_loop()
    fetch = Fetch(loop, partition)
    reference = weakref.ref(fetch)
    (delayed,) = partition.delayed_fetches
    gc.disable()
    try:
        if is_lost:
            delayed.cancel()
            fetch.delayed = None
        else:
            delayed.on_appended(4)
            delayed.on_appended(6)
            await fetch.is_ready
        assert not partition.delayed_fetches
        del fetch, delayed
        await asyncio.sleep(0)
        assert reference() is None
    finally:
        gc.enable()
