"""Clock, randomness and worker threads."""

import asyncio
import platform
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from ottla.base.ports import Connection
from ottla.io.clock import RealClock
from ottla.io.process import shorten_gil_switch_interval
from ottla.io.rng import RealRng
from ottla.io.tcp import TcpNetwork
from ottla.io.workers import ThreadWorkers


def test_clock_is_wall_time():
    before = int(time.time() * 1000)
    assert before - 1 <= RealClock().now_ms() <= int(time.time() * 1000) + 1


def test_random_bytes():
    rng = RealRng()
    assert [len(rng.random_bytes(size)) for size in (0, 1, 16)] == [0, 1, 16]
    assert rng.random_bytes(16) != rng.random_bytes(16)


@pytest.mark.parametrize("limit", [1, 2, 3, 255, 256, 257, 1 << 62])
def test_numbers_below_a_limit(limit):
    rng = RealRng()
    assert all(0 <= rng.below(limit) < limit for _ in range(200))


def test_all_numbers_below_a_limit_occur():
    rng = RealRng()
    assert sorted(Counter(rng.below(5) for _ in range(500))) == [0, 1, 2, 3, 4]


def test_below_rejects_a_limit_of_zero():
    with pytest.raises(ValueError, match="must be > 0"):
        RealRng().below(0)


async def test_workers_return_results_and_errors():
    workers = ThreadWorkers(asyncio.get_running_loop(), threads=2)
    here = threading.get_ident()
    assert await workers.run(threading.get_ident) != here

    def fail() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await workers.run(fail)
    workers.close()


async def test_close_waits_for_submitted_work_and_rejects_more():
    workers = ThreadWorkers(asyncio.get_running_loop(), threads=1)
    started, proceed, done = threading.Event(), threading.Event(), []

    def work() -> None:
        started.set()
        proceed.wait()
        done.append("first")

    first = workers.run(work)
    second = workers.run(lambda: done.append("second"))
    started.wait()
    proceed.set()
    workers.close()
    assert done == ["first", "second"]
    with pytest.raises(RuntimeError, match="closed"):
        workers.run(lambda: None)
    await asyncio.gather(first, second)


async def test_unused_workers_close():
    ThreadWorkers(asyncio.get_running_loop(), threads=3).close()


def test_workers_need_at_least_one_thread():
    loop = asyncio.new_event_loop()
    with pytest.raises(ValueError, match="must be >= 1"):
        ThreadWorkers(loop, threads=0)
    loop.close()


class IdleReceiver:
    """Ignores everything that happens on its connection."""

    def connection_made(self, connection: Connection) -> None: ...

    def get_buffer(self, size_hint: int) -> memoryview:
        return memoryview(bytearray(10))

    def buffer_updated(self, size: int) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...


async def test_connections_leave_descriptors_for_files():
    """A connection above the limit is closed before a receiver is created for it."""
    network = TcpNetwork()
    network.connections_max = 2
    made = []

    class ConnectionCounter(IdleReceiver):
        def connection_made(self, connection):
            made.append(connection)

        def connection_lost(self, error):
            made.pop()

    listener = await network.listen("127.0.0.1", 0, ConnectionCounter)
    streams = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(3)]
    assert await asyncio.wait_for(streams[2][0].read(), 10) == b""
    assert (len(made), network.open_count) == (2, 2)
    streams[0][1].close()
    while network.open_count > 1:
        await asyncio.sleep(0)
    fourth = await asyncio.open_connection("127.0.0.1", listener.port)
    while network.open_count < 2:
        await asyncio.sleep(0)
    for _, writer in [*streams[1:], fourth]:
        writer.close()
    listener.close()


async def test_write_with_more_parts_than_one_gathered_write_takes():
    network, parts = TcpNetwork(), [b"%d," % number for number in range(3000)]

    class Writer(IdleReceiver):
        def connection_made(self, connection):
            connection.write(parts)
            connection.close()

    listener = await network.listen("127.0.0.1", 0, Writer)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    assert await asyncio.wait_for(reader.read(), 10) == b"".join(parts)
    writer.close()
    listener.close()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator than glibc's")
def test_freed_memory_is_reused():
    """Allocating and freeing 1 MB blocks causes no page faults. Runs in a child, as the setting is permanent."""
    program = """
import resource
from ottla.io.process import tune_malloc

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def allocate_and_free():
    for _ in range(100):
        bytearray(1 << 20), bytearray(3 << 20)

assert tune_malloc()
allocate_and_free()
before = faults()
allocate_and_free()
print(faults() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100


def test_computing_thread_releases_the_gil_soon() -> None:
    before = sys.getswitchinterval()
    try:
        shorten_gil_switch_interval()
        assert sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)


def test_loop_has_a_short_timeslice_and_workers_the_default() -> None:
    """If the kernel supports it; /proc has the current slice."""
    program = """
import asyncio
from pathlib import Path
from ottla.io.process import request_short_timeslice
from ottla.io.workers import ThreadWorkers

def timeslice():
    lines = Path("/proc/thread-self/sched").read_text().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("se.slice"))

async def main():
    workers = ThreadWorkers(asyncio.get_running_loop(), 1)
    print(timeslice(), await workers.run(timeslice))
    workers.close()

default = timeslice()
if request_short_timeslice():
    print(default)
    asyncio.run(main())
"""
    if not any(line.startswith("se.slice") for line in _lines("/proc/thread-self/sched")):
        pytest.skip("this kernel does not report timeslices")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if not done.stdout:
        pytest.skip("this kernel does not support short timeslices")
    default, loop, worker = map(int, done.stdout.split())
    assert loop < default == worker


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
