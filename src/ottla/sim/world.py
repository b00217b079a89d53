"""A world: one seed, one loop, one network, and machines whose processes start, crash and restart."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

from ottla.sim.clock import SimulatedClock
from ottla.sim.disk import SimulatedDisk
from ottla.sim.loop import SimulatedLoop
from ottla.sim.network import NetworkFabric, SimulatedNetwork
from ottla.sim.process import Process, SimulatedCrash
from ottla.sim.processes import SimulatedProcesses
from ottla.sim.rng import SimulatedRng, stream
from ottla.sim.storage import Keep, Storage
from ottla.sim.trace import Trace
from ottla.sim.workers import SimulatedWorkers

T = TypeVar("T")


class ProcessCrashed(Exception):
    """A process died while its code was awaited."""


class SimulatedPorts:
    """The ports of one process. They raise once it has died."""

    __slots__ = ("clock", "crashed", "disk", "network", "process", "processes", "rng", "workers")

    def __init__(
        self,
        process: Process,
        crashed: "asyncio.Future[None]",
        clock: SimulatedClock,
        rng: SimulatedRng,
        workers: SimulatedWorkers,
        disk: SimulatedDisk,
        network: SimulatedNetwork,
        processes: SimulatedProcesses,
    ) -> None:
        self.process = process
        self.crashed = crashed
        self.clock = clock
        self.rng = rng
        self.workers = workers
        self.disk = disk
        self.network = network
        self.processes = processes


class World:
    """Use as `with World(seed) as world: world.run(scenario(world))`.

    A machine is a name. Its storage exists as long as the world; its processes start and end. An unhandled exception in
    a callback or task of a process ends the run.
    """

    def __init__(self, seed: int, *, steps_max: int = 5_000_000, cold_reads: float = 0.05) -> None:
        self.seed = seed
        self.loop = SimulatedLoop(steps_max=steps_max)
        self.trace = Trace(self.loop.time)
        self.fabric = NetworkFabric(self.loop, stream(seed, "network"), self.trace)
        self._cold_reads = cold_reads
        self._storages: dict[str, Storage] = {}
        self._running: dict[str, SimulatedPorts] = {}
        self._dead: list[Process] = []
        self._starts = 0

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to completion in virtual time."""
        return self.loop.run_until_complete(scenario)

    def storage(self, name: str) -> Storage:
        if name not in self._storages:
            self._storages[name] = Storage(stream(self.seed, f"storage/{name}"))
        return self._storages[name]

    def start(self, name: str) -> SimulatedPorts:
        """Start a process on a machine, with the storage that earlier processes left."""
        assert name not in self._running, f"{name} is running"
        self._starts += 1
        process = Process(name)
        source = stream(self.seed, f"{name}/{self._starts}")
        disk = SimulatedDisk(self.storage(name), process, self.trace, source, cold_reads=self._cold_reads)
        ports = SimulatedPorts(
            process,
            self.loop.create_future(),
            SimulatedClock(self.loop, process, self.trace),
            SimulatedRng(stream(self.seed, f"{name}/{self._starts}/rng"), process, self.trace),
            SimulatedWorkers(self.loop, source, process, self.trace),
            disk,
            SimulatedNetwork(self.fabric, process),
            SimulatedProcesses(
                self.loop, stream(self.seed, f"{name}/{self._starts}/processes"), process, self.trace, disk
            ),
        )
        self._running[name] = ports
        self.trace.add(name, "start")
        return ports

    async def within(self, ports: SimulatedPorts, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine as code of a process and wait for it. Raises `ProcessCrashed` if the process dies first."""
        task = self.loop.create_task(work, context=ports.process.context())
        await asyncio.wait((task, ports.crashed), return_when=asyncio.FIRST_COMPLETED)
        if not ports.process.is_alive:
            raise ProcessCrashed(ports.process.name)
        result: T = await task
        return result

    def crash(self, name: str, keep: Keep = "page-cache") -> None:
        """Kill the process; with keep="flushed" cut the power, which loses unflushed data."""
        self.trace.add(name, "crash", keep)
        ports = self._end(name, is_power_cut=keep == "flushed")
        if keep == "flushed":
            ports.disk.storage.lose_power()

    def exit(self, name: str) -> None:
        """End the process normally."""
        self.trace.add(name, "exit")
        self._end(name, is_power_cut=False)

    def _end(self, name: str, *, is_power_cut: bool) -> SimulatedPorts:
        ports = self._running.pop(name)
        self._dead.append(ports.process)
        ports.process.die()
        self.fabric.process_died(ports.process, is_power_cut=is_power_cut)
        if not ports.crashed.done():
            ports.crashed.set_result(None)
        return ports

    def crash_in(self, name: str, changes: int, keep: Keep = "page-cache") -> None:
        """Crash during the nth disk change from now on."""
        self._running[name].disk.crash_in(changes, lambda: self.crash(name, keep))

    def cancel_faults(self, name: str) -> None:
        """Cancel planned faults and crashes."""
        self._running[name].disk.cancel_faults()

    def is_running(self, name: str) -> bool:
        return name in self._running

    def close(self) -> None:
        for name in list(self._running):
            self._end(name, is_power_cut=False)
        for process in self._dead:
            process.clean_up()
        self._dead.clear()
        self.loop.close()

    def __enter__(self) -> "World":
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


__all__ = ["ProcessCrashed", "SimulatedCrash", "SimulatedPorts", "World"]
