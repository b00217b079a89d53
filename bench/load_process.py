"""A child process for a second load, so that the loads do not share a GIL."""

import contextlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor


def _start() -> None:
    """First call, so that process startup is not measured."""


@contextlib.contextmanager
def start_load_process() -> Iterator[ProcessPoolExecutor]:
    """Yield one started process. `submit` takes a function and arguments that can be pickled."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_start).result()
        yield pool
