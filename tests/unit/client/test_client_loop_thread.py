"""The event loop thread of the blocking clients."""

import asyncio
import threading

import pytest

from ottla.client import ClientClosedError, ClientTimeoutError
from ottla.client.loop_thread import EventLoopThread


@pytest.fixture
def loop_thread():
    thread = EventLoopThread("test-loop_thread")
    yield thread
    thread.close()


async def double(number):
    await asyncio.sleep(0)
    return 2 * number


def test_run_returns_results_and_raises_errors(loop_thread):
    assert loop_thread.run(lambda: double(21)) == 42

    async def fail():
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        loop_thread.run(fail)


def test_run_raises_errors_of_coroutine_creation(loop_thread):
    def fail():
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        loop_thread.run(fail)


def test_coroutine_is_created_in_the_loop_thread(loop_thread):
    """Otherwise an interrupt before the handover would leave a coroutine that is never awaited."""
    makers = []

    def make():
        makers.append(threading.current_thread().name)
        return double(1)

    assert loop_thread.run(make) == 2
    assert makers == ["test-loop_thread"]


def test_timeout_cancels_the_coroutine(loop_thread):
    cancelled = threading.Event()

    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(ClientTimeoutError, match=r"flush timed out after 0\.01 s"):
        loop_thread.run(forever, 0.01, "flush")
    assert cancelled.wait(10)


def test_blocking_call_in_the_loop_thread_raises(loop_thread):
    async def inside():
        return loop_thread.run(lambda: double(1))

    with pytest.raises(RuntimeError, match="would deadlock"):
        loop_thread.run(inside)


def test_close():
    loop_thread = EventLoopThread("test-loop_thread-end")
    loop_thread.close()
    loop_thread.close()
    with pytest.raises(ClientClosedError):
        loop_thread.run(lambda: double(1))
    assert "test-loop_thread-end" not in [thread.name for thread in threading.enumerate()]
