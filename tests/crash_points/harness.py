"""Crash tests at every disk operation: each call that changes the disk is a point where a process can be killed or
power can fail.

The harness runs a scenario repeatedly, each time up to one call further. A killed process leaves the page cache, with
the last write torn at some byte. A power failure leaves what was flushed, and of the rest, by the seed: nothing, all, a
part, or later writes without earlier ones. Some recoveries crash too, and are repeated.

To add a scenario, write a class with `prepare`, `run` and `check`, and call `explore` in a test that takes a
`sim_seed`:

    class Deletion:
        name = "deletion"

        def prepare(self, disk, source): ...       # create files; return the state: the open log and its guarantees
        def run(self, disk, state): ...            # the calls that crash; update the guarantees as soon as they hold
        def check(self, disk, state, keep): ...    # open the files; check the guarantees for a kill or a power failure

    def test_deletion(sim_seed):
        assert explore(Deletion(), sim_seed) > 100

A failure names the seed, the call and the crash: `pytest tests/crash_points --seed N` replays it.
"""

import random
from functools import partial
from typing import Generic, Protocol, TypeVar

from ottla.base.ports import Buffer
from ottla.sim.disk import SimulatedDisk
from ottla.sim.process import Process, SimulatedCrash
from ottla.sim.rng import stream
from ottla.sim.storage import Inode, Keep, Storage
from ottla.sim.trace import Detail

POWER_CUTS = 5
"""Per call. Each loses other unflushed writes."""
RECOVERY_CALLS_MAX = 25
"""Half of the recoveries crash too, within so many calls."""

S = TypeVar("S")


class Scenario(Protocol[S]):
    """The same seed must cause the same calls: take all randomness from `source`."""

    name: str  # part of the seed: renaming a scenario changes its random choices

    def prepare(self, disk: SimulatedDisk, source: random.Random) -> S: ...

    def run(self, disk: SimulatedDisk, state: S) -> None: ...

    def check(self, disk: SimulatedDisk, state: S, keep: Keep) -> None: ...


class WatchedDisk(SimulatedDisk):
    """Remembers the last call, for error messages. Its page cache never evicts."""

    def __init__(self, storage: Storage, source: random.Random) -> None:
        super().__init__(storage, Process("crash point"), source=source, cold_reads=0.0)
        self.last_call = "nothing"

    def step(self, call: str, path: str, *details: Detail) -> None:
        self.last_call = f"{call} {path}"
        super().step(call, path, *details)

    def write(self, inode: Inode, call: str, path: str, position: int, data: Buffer) -> None:
        self.last_call = f"{call} {path} at {position}, {len(data)} bytes"
        super().write(inode, call, path, position, data)


class CrashPoint(Generic[S]):
    """One run that crashes in one call, and the check afterwards."""

    def __init__(self, scenario: Scenario[S], seed: int, call: int, attempt: int) -> None:
        self._scenario = scenario
        self._seed = seed
        self._call = call
        self._attempt = attempt
        self._source = stream(seed, f"{scenario.name}/{call}/{attempt}")
        self._storage = Storage(self._source)
        self._keep: Keep = "flushed" if attempt else "page-cache"
        self._crashes: list[str] = []

    def play(self) -> None:
        try:
            state = self._run()
            if self._source.random() < 0.5:
                self._crash_in_recovery(state)
            self._scenario.check(WatchedDisk(self._storage, self._source), state, self._keep)
        except Exception as error:
            crashes = "; ".join(self._crashes)
            where = f"seed {self._seed}, {self._scenario.name}, call {self._call}, attempt {self._attempt}: {crashes}"
            raise AssertionError(where) from error

    def _run(self) -> S:
        disk = WatchedDisk(self._storage, self._source)
        state = self._scenario.prepare(disk, stream(self._seed, self._scenario.name))
        disk.crash_in(self._call, partial(disk.crash, self._keep))
        try:
            self._scenario.run(disk, state)
            disk.last_call = "the end"
            disk.crash(self._keep)
        except SimulatedCrash:
            pass  # as intended
        self._crashes.append(f"{'power failure' if self._keep == 'flushed' else 'killed'} in {disk.last_call}")
        return state

    def _crash_in_recovery(self, state: S) -> None:
        keep: Keep = self._source.choice(("page-cache", "flushed"))
        disk = WatchedDisk(self._storage, self._source)
        disk.crash_in(self._source.randint(1, RECOVERY_CALLS_MAX), partial(disk.crash, keep))
        try:
            self._scenario.check(disk, state, self._keep)
        except SimulatedCrash:
            self._crashes.append(
                f"{'power failure' if keep == 'flushed' else 'killed'} in {disk.last_call} of the recovery"
            )
        else:
            disk.crash(keep)
        if keep == "flushed":
            self._keep = "flushed"


def calls_of(scenario: Scenario[S], seed: int) -> int:
    """Return the number of calls that change the disk."""
    source = stream(seed, "calls")
    disk = WatchedDisk(Storage(source), source)
    state = scenario.prepare(disk, stream(seed, scenario.name))
    before = disk.changes
    scenario.run(disk, state)
    return disk.changes - before


def explore(scenario: Scenario[S], seed: int, *, power_cuts: int = POWER_CUTS) -> int:
    """Crash a scenario in and after each call, by a kill and by power failures. Return the number of runs."""
    calls = calls_of(scenario, seed)
    for call in range(1, calls + 2):
        for attempt in range(power_cuts + 1):
            CrashPoint(scenario, seed, call, attempt).play()
    return (calls + 1) * (power_cuts + 1)
