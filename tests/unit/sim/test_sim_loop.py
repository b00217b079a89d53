"""The virtual-time loop and its processes."""

import asyncio
import time

import pytest

from ottla.sim.loop import CallbackFailed, SimulatedDeadlock, SimulatedLoop, TooManySteps
from ottla.sim.process import Process, SimulatedCrash
from ottla.sim.world import ProcessCrashed, World


@pytest.fixture
def loop():
    loop = SimulatedLoop(steps_max=1000)
    yield loop
    loop.close()


def test_time_is_virtual(loop):
    """An hour passes immediately, and timers run in the order of their times."""
    seen = []

    async def scenario():
        start = loop.time()
        loop.call_later(7200, seen.append, "never")
        loop.call_later(30, seen.append, "30")
        loop.call_later(20, seen.append, "20")
        loop.call_soon(seen.append, "now")
        loop.call_later(20, seen.append, "20 again")
        loop.call_later(25, seen.append, "cancelled").cancel()
        await asyncio.sleep(3600)
        return loop.time() - start

    before = time.monotonic()
    assert loop.run_until_complete(scenario()) == 3600
    assert time.monotonic() - before < 5
    assert seen == ["now", "20", "20 again", "30"]


def test_asyncio_primitives_work(loop):
    async def scenario():
        assert asyncio.get_running_loop() is loop
        queue, event, lock = asyncio.Queue(maxsize=1), asyncio.Event(), asyncio.Lock()

        async def feed():
            for number in range(3):
                async with lock:
                    await queue.put(number)
            event.set()

        task = asyncio.create_task(feed())
        got = [await queue.get() for _ in range(3)]
        await event.wait()
        await task
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_future(), 5)
        async with asyncio.timeout(10):
            await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))
        return got

    assert loop.run_until_complete(scenario()) == [0, 1, 2]


def test_deadlock_raises(loop):
    async def scenario():
        await loop.create_future()

    with pytest.raises(SimulatedDeadlock, match=r"nothing left to do at 1000\.0.*scenario"):
        loop.run_until_complete(scenario())


def test_endless_loop_raises(loop):
    async def scenario():
        def spin():
            loop.call_soon(spin)

        spin()
        await loop.create_future()

    with pytest.raises(TooManySteps, match="more than 1000 steps"):
        loop.run_until_complete(scenario())


def test_exception_in_callback_ends_run(loop):
    async def scenario():
        loop.call_soon(int, "x")
        await asyncio.sleep(1)

    with pytest.raises(CallbackFailed) as caught:
        loop.run_until_complete(scenario())
    assert isinstance(caught.value.__cause__, ValueError)


def test_exception_in_unawaited_task_ends_run(loop):
    async def fail():
        raise KeyError("lost")

    async def scenario():
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task
        await asyncio.sleep(1)

    with pytest.raises(CallbackFailed) as caught:
        loop.run_until_complete(scenario())
    assert isinstance(caught.value.__cause__, KeyError)


def test_executor_is_not_available(loop):
    with pytest.raises(RuntimeError, match="Workers port"):
        loop.run_in_executor(None, print)


def test_code_of_crashed_process_never_runs():
    """Not its tasks, their `finally` blocks, timers, callbacks or worker jobs."""
    seen = []

    async def life(world, ports):
        loop = world.loop
        loop.call_later(1, seen.append, "timer before")
        loop.call_later(3, seen.append, "timer after")
        done = loop.create_future()
        done.add_done_callback(lambda future: seen.append("callback"))
        loop.call_later(1.999, lambda: ports.workers.run(lambda: seen.append("work")))
        child = asyncio.create_task(child_life(ports))
        world.done = done
        await child

    async def child_life(ports):
        try:
            await asyncio.sleep(1)
            seen.append("task before")
            await asyncio.sleep(5)
            seen.append("task after")
        finally:
            seen.append("finally")
            ports.disk.write_atomically("/finally", b"")

    async def scenario(world):
        ports = world.start("node")
        waiting = asyncio.ensure_future(world.within(ports, life(world, ports)))
        await asyncio.sleep(2)
        world.crash("node")
        world.done.set_result(None)
        with pytest.raises(ProcessCrashed, match="node"):
            await waiting
        await asyncio.sleep(10)
        assert seen == ["timer before", "task before"]
        with pytest.raises(SimulatedCrash):
            ports.clock.now_ms()
        with pytest.raises(SimulatedCrash):
            ports.rng.random_bytes(1)
        with pytest.raises(SimulatedCrash):
            ports.disk.exists("/")
        again = world.start("node")
        assert await world.within(again, asyncio.sleep(1, "lives")) == "lives"
        return ports

    with World(1) as world:
        world.run(scenario(world))
    assert list(world.storage("node").files()) == []


def test_error_in_process_reaches_awaiting_code():
    async def fail():
        raise ValueError("mine")

    async def scenario(world):
        with pytest.raises(ValueError, match="mine"):
            await world.within(world.start("node"), fail())

    with World(1) as world:
        world.run(scenario(world))


def test_processes_are_identified_by_context():
    one, other = Process("one"), Process("other")
    with World(3) as world:
        seen = []
        world.loop.call_soon(seen.append, "one", context=one.context())
        world.loop.call_soon(seen.append, "other", context=other.context())
        one.die()
        world.run(asyncio.sleep(1))
    assert seen == ["other"]


def test_worker_results_are_delayed():
    """Other callbacks run before the result; errors are raised in the caller."""

    async def scenario(world):
        ports = world.start("node")
        start = world.loop.time()
        first = ports.workers.run(lambda: "done")
        assert not first.done()
        assert await first == "done"
        assert 0 < world.loop.time() - start <= 0.5

        def fail():
            raise OSError("no")

        with pytest.raises(OSError, match="no"):
            await ports.workers.run(fail)
        results = []
        cancelled = ports.workers.run(lambda: results.append("cancelled"))
        cancelled.cancel()
        await asyncio.gather(*(ports.workers.run(lambda n=n: results.append(n)) for n in range(30)))
        return results

    with World(4) as world:
        results = world.run(scenario(world))
    assert sorted(results) == list(range(30))
    assert results != sorted(results)  # jobs overtake each other
