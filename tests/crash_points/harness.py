"""Every call that changes a disk is a moment at which a process can be killed or a machine can lose power: here all of them are tried.

A scenario says what happens and what it promises; the harness runs it again and again, each time up to one call further. A killed process
leaves the page cache, with the write in which it died torn at some byte. A power cut leaves what was flushed, and of the rest what the seed
says: nothing, all, a part, or later writes without earlier ones. Recovery is stopped in its midst too, at times, and begins again.

To add a scenario write a class with `prepare`, `run` and `check`, and call `explore` in a test that takes a `sim_seed`:

    class Deletion:
        name = "deletion"

        def prepare(self, disk, source): ...       # make what is there before, and return the state: what was promised, and the open log
        def run(self, disk, state): ...            # what is crashed; a promise is noted in the state as soon as it is given
        def check(self, disk, state, keep): ...    # open what is left and see that it keeps the promises of a kill, or of a power cut

    def test_deletion(sim_seed):
        assert explore(Deletion(), sim_seed) > 100

A failure names the seed, the call and the cut: `pytest tests/crash_points --seed N` replays it.
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
"""For each call: what is lost differs from one to the next."""
RECOVERY_CALLS_MAX = 25
"""Within so many calls of a recovery it is stopped, half of the time."""

S = TypeVar("S")


class Scenario(Protocol[S]):
    """The same seed must make the same calls: all that is random comes from `source`."""

    name: str

    def prepare(self, disk: SimulatedDisk, source: random.Random) -> S: ...

    def run(self, disk: SimulatedDisk, state: S) -> None: ...

    def check(self, disk: SimulatedDisk, state: S, keep: Keep) -> None: ...


class WatchedDisk(SimulatedDisk):
    """Knows the last call, so that a failure can say where it came from. The page cache forgets nothing here."""

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
    """One run that ends at one call, and what is found afterwards."""

    def __init__(self, scenario: Scenario[S], seed: int, call: int, attempt: int) -> None:
        self._scenario = scenario
        self._seed = seed
        self._call = call
        self._attempt = attempt
        self._source = stream(seed, f"{scenario.name}/{call}/{attempt}")
        self._storage = Storage(self._source)
        self._keep: Keep = "flushed" if attempt else "page-cache"
        self._story: list[str] = []

    def play(self) -> None:
        try:
            state = self._run()
            if self._source.random() < 0.5:
                self._crash_in_recovery(state)
            self._scenario.check(WatchedDisk(self._storage, self._source), state, self._keep)
        except Exception as error:
            told = "; ".join(self._story)
            where = f"seed {self._seed}, {self._scenario.name}, call {self._call}, attempt {self._attempt}: {told}"
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
            pass  # which is what was to be seen
        self._story.append(f"{'power cut' if self._keep == 'flushed' else 'killed'} in {disk.last_call}")
        return state

    def _crash_in_recovery(self, state: S) -> None:
        keep: Keep = self._source.choice(("page-cache", "flushed"))
        disk = WatchedDisk(self._storage, self._source)
        disk.crash_in(self._source.randint(1, RECOVERY_CALLS_MAX), partial(disk.crash, keep))
        try:
            self._scenario.check(disk, state, self._keep)
        except SimulatedCrash:
            self._story.append(f"{'power cut' if keep == 'flushed' else 'killed'} in {disk.last_call} of the recovery")
        else:
            disk.crash(keep)
        if keep == "flushed":
            self._keep = "flushed"


def calls_of(scenario: Scenario[S], seed: int) -> int:
    """How many calls change something."""
    source = stream(seed, "calls")
    disk = WatchedDisk(Storage(source), source)
    state = scenario.prepare(disk, stream(seed, scenario.name))
    before = disk.changes
    scenario.run(disk, state)
    return disk.changes - before


def explore(scenario: Scenario[S], seed: int, *, power_cuts: int = POWER_CUTS) -> int:
    """Crash a scenario in each of its calls, and after the last, in each way; returns at how many points."""
    calls = calls_of(scenario, seed)
    for call in range(1, calls + 2):
        for attempt in range(power_cuts + 1):
            CrashPoint(scenario, seed, call, attempt).play()
    return (calls + 1) * (power_cuts + 1)
