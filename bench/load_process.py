"""A second load in a process of its own, so that it does not wait for the first one's turn at the interpreter."""

import contextlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor


def _start() -> None:
    """What a new process does first, so that its start falls outside of what is measured."""


@contextlib.contextmanager
def start_load_process() -> Iterator[ProcessPoolExecutor]:
    """One process, started and ready; `submit` hands it a function and arguments that can be pickled."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_start).result()
        yield pool
