"""The Disk port of one simulated process, over a `Storage` that outlives it. Chosen calls can fail or crash."""

import errno
import random
from collections.abc import Callable, Iterable, Sequence

from ottla.base.errors import fsync_error
from ottla.base.ports import Buffer
from ottla.sim.process import Process
from ottla.sim.rng import stream
from ottla.sim.storage import Directory, Inode, Keep, Storage, os_error
from ottla.sim.trace import Detail, Trace

SPACE_BYTES = 1 << 40


class SimulatedFile:
    __slots__ = ("_disk", "_inode", "_is_open", "_is_writable", "_path")

    def __init__(self, disk: "SimulatedDisk", path: str, inode: Inode, *, is_writable: bool) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._is_writable = is_writable
        self._is_open = True

    @property
    def path(self) -> str:
        return self._path

    def append(self, parts: Sequence[Buffer]) -> int:
        data = b"".join(parts)
        self._check_writable()
        self._disk.write(self._inode, "append", self._path, len(self._inode.cached), data)
        return len(self._inode.cached)

    def write_at(self, position: int, data: Buffer) -> None:
        self._check_writable()
        self._disk.write(self._inode, "write_at", self._path, position, data)

    def read_at(self, position: int, size: int) -> bytes:
        self._check_open()
        data = bytes(self._inode.cached[position : position + size])
        self._disk.step("read_at", self._path, position, data)
        return data

    def read_at_if_cached(self, position: int, size: int) -> bytes | None:
        """Return the bytes, or sometimes None, as if they were not in the page cache."""
        self._check_open()
        is_cold = self._disk.is_cold()
        data = None if is_cold else bytes(self._inode.cached[position : position + size])
        self._disk.step("read_at_if_cached", self._path, position, data)
        return data

    def read_view_if_cached(self, position: int, size: int) -> memoryview | None:
        data = self.read_at_if_cached(position, size)
        return None if data is None else self._disk.shared_view(data)

    def is_cached(self, position: int, size: int) -> bool:
        return self.read_at_if_cached(position + size - 1, 1) is not None

    def prefetch(self, position: int, size: int) -> None:
        self.read_at(position, size)

    def size(self) -> int:
        self._check_open()
        return len(self._inode.cached)

    def truncate(self, size: int) -> None:
        self._check_writable()
        self._disk.step("truncate", self._path, size)
        self._inode.truncate(size)

    def fsync(self) -> None:
        self._check_open()
        try:
            self._disk.step("fsync", self._path)
        except OSError as error:
            self._inode.fail_fsync()
            raise fsync_error(error, self._path) from error
        self._inode.fsync()

    def map(self) -> memoryview:
        """Return a copy. Unlike a real mapping, it does not show later writes."""
        self._check_open()
        self._disk.step("map", self._path)
        return memoryview(bytes(self._inode.cached))

    def send_to(self, descriptor: int, position: int, size: int) -> int:
        raise os_error(errno.EOPNOTSUPP, self._path)  # there are no descriptors; the simulated network reads the file

    def close(self) -> None:
        self._is_open = False

    def _check_open(self) -> None:
        self._disk.process.check()
        if not self._is_open:
            raise os_error(errno.EBADF, self._path)

    def _check_writable(self) -> None:
        self._check_open()
        if not self._is_writable:
            raise os_error(errno.EBADF, self._path)


class SimulatedLock:
    __slots__ = ("_inode", "_locks", "_process")

    def __init__(self, locks: dict[Inode, Process], inode: Inode, process: Process) -> None:
        self._locks = locks
        self._inode = inode
        self._process = process

    def release(self) -> None:
        if self._locks.get(self._inode) is self._process:
            del self._locks[self._inode]


OPEN_FILES_MAX = 64
"""Small, so that scenarios with a few partitions evict and reopen files."""


class SimulatedDisk:
    """Every call is traced and counted as a step, may be made to fail, and may crash the process."""

    def __init__(
        self,
        storage: Storage | None = None,
        process: Process | None = None,
        trace: Trace | None = None,
        source: random.Random | None = None,
        *,
        cold_reads: float = 0.05,
    ) -> None:
        self._random = source or stream(0, "disk")
        self.storage = storage or Storage(self._random)
        self.process = process or Process("disk")
        self._trace = trace
        self._cold_reads = cold_reads
        self._faults: dict[str, dict[int, int]] = {}
        self._broken: dict[str, tuple[int, frozenset[str] | None]] = {}
        self._shared_buffer = bytearray()
        self._crash_in = 0
        self._on_crash: Callable[[], None] | None = None
        self.changes = 0
        """Number of steps that changed something, at which a crash may be planned."""

    def shared_view(self, data: bytes) -> memoryview:
        """Return a view into the shared buffer. The previous view's bytes become zeros."""
        self._shared_buffer[:] = bytes(len(self._shared_buffer))
        self._shared_buffer = bytearray(data)
        return memoryview(self._shared_buffer)

    def fail(self, call: str, nth: int, number: int) -> None:
        """Make the nth `call` from now on fail once with this errno, without an effect."""
        self._faults.setdefault(call, {})[nth] = number

    def fail_below(self, path: str, number: int, calls: Iterable[str] | None = None) -> None:
        """Make all calls, or these, fail with this errno for a path and everything below it, like a failed disk."""
        self._broken[path] = number, None if calls is None else frozenset(calls)

    def crash_in(self, changes: int, on_crash: Callable[[], None]) -> None:
        """Crash during the nth change from now on: a write is torn, any other change does not happen."""
        assert changes > 0, changes
        self._crash_in = changes
        self._on_crash = on_crash

    def cancel_faults(self) -> None:
        """Cancel what `fail`, `fail_below` and `crash_in` planned."""
        self._faults.clear()
        self._broken.clear()
        self._crash_in = 0
        self._on_crash = None

    def crash(self, keep: Keep = "page-cache") -> None:
        """Kill the process, or with keep="flushed" cut the power. Open files become unusable; the storage remains."""
        self.process.die()
        if keep == "flushed":
            self.storage.lose_power()

    def is_cold(self) -> bool:
        return self._random.random() < self._cold_reads

    def step(self, call: str, path: str, *details: Detail) -> None:
        self.process.check()
        self._trace_and_fail(call, path, *details)
        if call in _CHANGES and self._is_last_change():
            self._die()

    def write(self, inode: Inode, call: str, path: str, position: int, data: Buffer) -> None:
        self.process.check()
        self._trace_and_fail(call, path, position, data)
        if self._is_last_change():
            inode.write(position, memoryview(data)[: self._random.randint(0, len(data))])
            self._die()
        inode.write(position, data)

    def _trace_and_fail(self, call: str, path: str, *details: Detail) -> None:
        if self._trace is not None:
            self._trace.add(self.process.name, call, path, *details)
        for below, (broken, calls) in self._broken.items():
            if (calls is None or call in calls) and f"{path}/".startswith(f"{below}/"):
                raise os_error(broken, path)
        faults = self._faults.pop(call, None)
        if faults is not None:
            number = faults.pop(1, None)
            if faults:
                self._faults[call] = {nth - 1: later for nth, later in faults.items()}
            if number is not None:
                raise os_error(number, path)

    def _is_last_change(self) -> bool:
        self.changes += 1
        if self._crash_in == 0:
            return False
        self._crash_in -= 1
        return self._crash_in == 0

    def _die(self) -> None:
        assert self._on_crash is not None
        self._on_crash()
        self.process.check()  # raises if the process has crashed

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        if not create or self.storage.find(path) is not None:
            self.process.check()
            return SimulatedFile(self, path, self.storage.get_file(path), is_writable=True)
        self.step("create", path)
        return SimulatedFile(self, path, self.storage.create(path), is_writable=True)

    def open_files_max(self) -> int:
        return OPEN_FILES_MAX

    def open_read_only(self, path: str) -> SimulatedFile:
        self.process.check()
        return SimulatedFile(self, path, self.storage.get_file(path), is_writable=False)

    def read(self, path: str) -> bytes:
        self.process.check()
        data = bytes(self.storage.get_file(path).cached)
        self.step("read", path, data)
        return data

    def write_atomically(self, path: str, data: Buffer) -> None:
        """Write, fsync and rename as the real disk does, so that a crash can happen between any two steps."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.write_at(0, data)
        file.fsync()
        self.rename(temporary, path)
        self.fsync_directory(path.rpartition("/")[0] or "/")

    def exists(self, path: str) -> bool:
        found = self.storage.find(path) is not None
        self.step("exists", path, found)
        return found

    def make_directories(self, path: str) -> None:
        self.step("make_directories", path)
        self.storage.make_directories(path)

    def rename(self, source: str, target: str) -> None:
        self.step("rename", source, target)
        self.storage.rename(source, target)

    def remove(self, path: str) -> None:
        self.step("remove", path)
        self.storage.remove(path)

    def remove_tree(self, path: str) -> None:
        """Remove names one by one: a crash leaves a partial tree."""
        for name, node in sorted(self.storage.get_directory(path).names.items()):
            if isinstance(node, Directory):
                self.remove_tree(f"{path}/{name}")
            else:
                self.remove(f"{path}/{name}")
        self.step("remove_directory", path)
        self.storage.remove_directory(path)

    def fsync_directory(self, path: str) -> None:
        self.step("fsync_directory", path)
        self.storage.fsync_directory(path)

    def space(self, path: str) -> tuple[int, int]:
        """Return a constant. A full disk is simulated by a fault."""
        self.step("space", path)
        return SPACE_BYTES, SPACE_BYTES // 2

    def lock(self, path: str) -> SimulatedLock:
        self.step("lock", path)
        inode = self.storage.create(path)
        locks = self.storage.locks
        holder = locks.get(inode)
        if holder is not None and holder.is_alive:
            raise os_error(errno.EAGAIN, path)
        locks[inode] = self.process
        return SimulatedLock(locks, inode, self.process)

    def list(self, path: str) -> list[str]:
        names = sorted(self.storage.get_directory(path).names)
        self.step("list", path, ",".join(names))
        return names


_CHANGES = frozenset(
    {
        "create",
        "truncate",
        "fsync",
        "make_directories",
        "rename",
        "remove",
        "remove_directory",
        "fsync_directory",
        "lock",
    }
)
"""Calls, besides writes, in which a planned crash can happen."""
