"""The thread that the blocking face runs on."""

import asyncio
import threading

import pytest

from ottla.client import ClientClosedError, ClientTimeoutError
from ottla.client.loop_thread import EventLoopThread


@pytest.fixture
def background():
    made = EventLoopThread("test-background")
    yield made
    made.close()


async def double(number):
    await asyncio.sleep(0)
    return 2 * number


def test_results_and_errors_come_back(background):
    assert background.run(lambda: double(21)) == 42

    async def fail():
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        background.run(fail)


def test_an_error_before_the_first_step_comes_back(background):
    def refuse():
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        background.run(refuse)


def test_work_is_made_where_it_is_run(background):
    """Were it made by the thread that waits, an interrupt before it is handed over would leave a coroutine that nobody awaits."""
    makers = []

    def make():
        makers.append(threading.current_thread().name)
        return double(1)

    assert background.run(make) == 2
    assert makers == ["test-background"]


def test_a_time_that_is_up_cancels_the_work(background):
    cancelled = threading.Event()

    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(ClientTimeoutError, match=r"flush timed out after 0\.01 s"):
        background.run(forever, 0.01, "flush")
    assert cancelled.wait(10)


def test_a_callback_cannot_wait_for_its_own_loop(background):
    async def inside():
        return background.run(lambda: double(1))

    with pytest.raises(RuntimeError, match="would deadlock"):
        background.run(inside)


def test_the_end():
    background = EventLoopThread("test-background-end")
    background.close()
    background.close()
    with pytest.raises(ClientClosedError):
        background.run(lambda: double(1))
    assert "test-background-end" not in [thread.name for thread in threading.enumerate()]
