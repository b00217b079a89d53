"""Settings of all tests.

Tests with a `sim_seed` run once for each of the first N seeds, or for the seed to replay. Hypothesis has no deadline,
since the time an example takes depends on the machine. SIGINT is restored where a background start ignored it, since
tests send it to their processes. A task that is destroyed while it is pending fails the test in which that is noticed.
"""

import gc
import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

SEEDS = 5
settings.register_profile("ottla", deadline=None)
settings.load_profile("ottla")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption(
        "--seeds",
        type=int,
        default=int(os.environ.get("OTTLA_SIM_SEEDS", SEEDS)),
        help="how many seeds each seeded test runs",
    )
    group.addoption("--seed", type=int, default=None, help="replay this seed only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sim_seed" in metafunc.fixturenames:
        one = metafunc.config.getoption("seed")
        seeds = range(1, metafunc.config.getoption("seeds") + 1) if one is None else [one]
        metafunc.parametrize("sim_seed", seeds, ids=[f"seed={seed}" for seed in seeds])


class DestroyedTasks(logging.Handler):
    """Collects asyncio's messages about pending tasks that were destroyed: their loop was closed too early."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "Task was destroyed but it is pending" in record.getMessage():
            self.messages.append(record.getMessage())

    def check(self) -> None:
        messages, self.messages = self.messages, []
        if messages:
            pytest.fail("in this test or an earlier one: " + "\n".join(messages), pytrace=False)


_destroyed_tasks = DestroyedTasks()
logging.getLogger("asyncio").addHandler(_destroyed_tasks)


@pytest.fixture(autouse=True)
def no_destroyed_tasks() -> Iterator[None]:
    yield
    _destroyed_tasks.check()


@pytest.fixture(autouse=True, scope="session")
def no_destroyed_tasks_at_the_end() -> Iterator[None]:
    yield
    gc.collect()
    _destroyed_tasks.check()
