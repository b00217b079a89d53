"""Randomness determined by a seed."""

import random

from ottla.sim.process import Process
from ottla.sim.trace import Trace


def stream(seed: int, name: str) -> random.Random:
    """Return a generator per purpose, so that an additional draw for one does not change the others."""
    return random.Random(f"{seed}/{name}")


class SimulatedRng:
    __slots__ = ("_process", "_random", "_trace")

    def __init__(self, source: random.Random, process: Process, trace: Trace) -> None:
        self._random = source
        self._process = process
        self._trace = trace

    def random_bytes(self, size: int) -> bytes:
        self._process.check()
        data = self._random.randbytes(size)
        self._trace.add(self._process.name, "random_bytes", data)
        return data

    def below(self, limit: int) -> int:
        self._process.check()
        number = self._random.randrange(limit)
        self._trace.add(self._process.name, "below", limit, number)
        return number
