"""The simulated disk: each call behaves like the real disk, and crashes leave what a kernel would."""

import errno
import random
import shutil
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.io.disk import RealDisk
from ottla.sim.disk import SimulatedDisk
from ottla.sim.process import Process, SimulatedCrash
from ottla.sim.storage import Storage

_NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "missing/a", "a/under"])
_DATA = st.binary(max_size=12)
_PLACE = st.integers(0, 20)


class TwoDisks(RuleBasedStateMachine):
    """Applies every call to both disks; results and error types are equal."""

    def __init__(self):
        super().__init__()
        self.home = tempfile.mkdtemp()
        self.real = RealDisk()
        self.simulated = SimulatedDisk(cold_reads=0.0)
        self.simulated.make_directories(self.home)
        self.files = {}  # path -> the writer of it on each disk

    def teardown(self):
        for real, _ in self.files.values():
            real.close()
        shutil.rmtree(self.home)

    def both(self, call):
        results = []
        for disk in (self.real, self.simulated):
            try:
                results.append(call(disk))
            except OSError as error:
                results.append((type(error), error.errno))
        assert results[0] == results[1]
        return results[0]

    def path(self, name):
        return f"{self.home}/{name}"

    def forget(self, path):
        for known in [known for known in self.files if known == path or known.startswith(path + "/")]:
            real, simulated = self.files.pop(known)
            real.close()
            simulated.close()

    @rule(name=_NAMES, create=st.booleans())
    def open(self, name, create):
        path = self.path(name)
        if path in self.files:
            return
        opened = []

        def call(disk):
            opened.append(disk.open(path, create=create))

        if self.both(call) is None:
            self.files[path] = tuple(opened)

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def use(self, data):
        real, simulated = self.files[data.draw(st.sampled_from(sorted(self.files)))]
        what = data.draw(
            st.sampled_from(
                ["append", "write_at", "truncate", "read_at", "if_cached", "prefetch", "map", "fsync", "again"]
            )
        )
        position, size, blob = data.draw(_PLACE), data.draw(_PLACE), data.draw(_DATA)
        calls = {
            "append": lambda file: file.append([blob, b"", blob[:3]]),
            "write_at": lambda file: file.write_at(position, blob),
            "truncate": lambda file: file.truncate(position),
            "read_at": lambda file: file.read_at(position, size),
            "if_cached": lambda file: file.read_at_if_cached(position, size),
            "prefetch": lambda file: file.prefetch(position, size),
            "map": lambda file: bytes(file.map()),
            "fsync": lambda file: file.fsync(),
            "again": lambda file: file.size(),
        }
        result = calls[what](real)
        if result is None and what == "if_cached":
            result = real.read_at(position, size)  # the real page may not be cached
        assert result == calls[what](simulated)
        assert real.size() == simulated.size()

    @rule(name=_NAMES)
    def read_only(self, name):
        def call(disk):
            file = disk.open_read_only(self.path(name))
            data = (file.size(), file.read_at(0, 100), file.path)
            file.close()
            return data

        if self.real.exists(self.path(name)) and name in ("d", "d/e"):
            return  # a kernel can open a directory for reading, which the node never does
        self.both(call)

    @rule(name=_NAMES)
    def look(self, name):
        self.both(lambda disk: disk.exists(self.path(name)))
        self.both(lambda disk: disk.read(self.path(name)))
        self.both(lambda disk: disk.list(self.path(name)))

    @rule(name=_NAMES, data=_DATA)
    def write_atomically(self, name, data):
        if self.path(name) not in self.files and name not in ("d", "d/e"):
            self.both(lambda disk: disk.write_atomically(self.path(name), data))

    @rule(name=_NAMES)
    def make_directories(self, name):
        self.both(lambda disk: disk.make_directories(self.path(name)))

    @rule(old=_NAMES, new=_NAMES)
    def rename(self, old, new):
        self.forget(self.path(old))
        self.forget(self.path(new))
        self.both(lambda disk: disk.rename(self.path(old), self.path(new)))

    @rule(name=_NAMES)
    def remove(self, name):
        self.forget(self.path(name))
        self.both(lambda disk: disk.remove(self.path(name)))

    @rule(name=_NAMES)
    def remove_tree(self, name):
        self.forget(self.path(name))
        self.both(lambda disk: disk.remove_tree(self.path(name)))

    @rule(name=_NAMES)
    def fsync_directory(self, name):
        self.both(lambda disk: disk.fsync_directory(self.path(name)))

    @invariant()
    def the_same_tree(self):
        self.both(lambda disk: disk.list(self.home))


TestTwoDisks = TwoDisks.TestCase
TestTwoDisks.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def _disk(seed=0):
    return SimulatedDisk(Storage(random.Random(seed)), Process("node"), source=random.Random(seed))


def _next(disk):
    return SimulatedDisk(disk.storage, Process("node"))


def test_process_crash_keeps_page_cache():
    """Written data remains, flushed or not; files opened by the dead process are unusable."""
    disk = _disk()
    disk.make_directories("/data")
    file = disk.open("/data/f", create=True)
    file.append([b"unflushed"])
    disk.crash(keep="page-cache")
    for call in (
        lambda: file.append([b"x"]),
        file.size,
        lambda: file.read_at(0, 1),
        lambda: disk.list("/data"),
        lambda: disk.lock("/l"),
    ):
        with pytest.raises(SimulatedCrash):
            call()
    assert _next(disk).read("/data/f") == b"unflushed"


def test_crash_during_write_tears_it():
    seen = {}
    for seed in range(60):
        disk = _disk(seed)
        file = disk.open("/f", create=True)
        file.append([b"complete "])
        disk.crash_in(2, disk.crash)
        file.append([b"complete too "])
        with pytest.raises(SimulatedCrash):
            file.append([b"torn"])
        seen[_next(disk).read("/f")] = None
    complete = b"complete complete too "
    assert sorted(seen) == [complete + b"torn"[:size] for size in range(5)]


def test_crash_during_other_change_prevents_it():
    for change in (
        lambda disk: disk.rename("/f", "/g"),
        lambda disk: disk.remove("/f"),
        lambda disk: disk.open("/f").truncate(0),
        lambda disk: disk.open("/h", create=True),
        lambda disk: disk.make_directories("/d"),
    ):
        disk = _disk()
        disk.open("/f", create=True).append([b"data"])
        disk.crash_in(1, disk.crash)
        with pytest.raises(SimulatedCrash):
            change(disk)
        assert list(disk.storage.files()) == [("/f", b"data")]
        assert _next(disk).list("/") == ["f"]


def test_power_loss_keeps_flushed_data():
    """Flushed bytes under a flushed name remain; of the rest, anything from none to all remains, with holes."""
    seen = {}
    for seed in range(200):
        disk = _disk(seed)
        file = disk.open("/f", create=True)
        file.append([b"flushed"])
        file.fsync()
        disk.fsync_directory("/")
        file.append([b"AA"])
        file.append([b"BB"])
        disk.crash(keep="flushed")
        data = _next(disk).read("/f")
        assert data.startswith(b"flushed")
        seen[data.removeprefix(b"flushed")] = None
    assert {b"", b"AA", b"AABB", b"A", b"AAB", b"\0\0BB"} <= set(seen)


def test_name_is_durable_after_directory_fsync():
    outcomes = {}
    for seed in range(100):
        disk = _disk(seed)
        disk.make_directories("/d")
        disk.fsync_directory("/")
        file = disk.open("/d/f", create=True)
        file.append([b"flushed"])
        file.fsync()
        disk.crash(keep="flushed")
        outcomes[str(_next(disk).list("/d"))] = None
    assert sorted(outcomes) == ["['f']", "[]"]
    disk = _disk()
    disk.open("/f", create=True)
    disk.fsync_directory("/")
    disk.crash(keep="flushed")
    assert _next(disk).list("/") == ["f"]


def test_write_atomically_survives_crash_at_any_step():
    """The old or the new contents are there; once the call has returned, the new ones."""
    for keep in ("page-cache", "flushed"):
        for seed in range(40):
            for step in range(1, 12):
                disk = _disk(seed)
                disk.write_atomically("/f", b"old")
                disk.crash_in(step, lambda disk=disk, keep=keep: disk.crash(keep))
                try:
                    disk.write_atomically("/f", b"the new")
                except SimulatedCrash:
                    assert _next(disk).read("/f") in (b"old", b"the new")
                else:
                    disk.crash(keep)
                    assert _next(disk).read("/f") == b"the new"


def test_rename_is_atomic():
    """After power loss a moved file is at one of the two paths, also between directories."""
    for seed in range(100):
        disk = _disk(seed)
        for directory in ("/a", "/b"):
            disk.make_directories(directory)
        disk.fsync_directory("/")
        disk.open("/a/f", create=True).fsync()
        disk.fsync_directory("/a")
        disk.rename("/a/f", "/b/f")
        if seed % 2:
            disk.fsync_directory("/b")
        disk.crash(keep="flushed")
        after = _next(disk)
        paths = after.list("/a") + after.list("/b")
        assert paths == ["f"]
        if seed % 2:
            assert after.list("/b") == ["f"]


def test_fault_hits_the_planned_call():
    disk = _disk()
    file = disk.open("/f", create=True)
    disk.fail("append", 2, errno.ENOSPC)
    disk.fail("append", 3, errno.EIO)
    file.append([b"1"])
    for number in (errno.ENOSPC, errno.EIO):
        with pytest.raises(OSError) as caught:
            file.append([b"lost"])
        assert caught.value.errno == number
    file.append([b"2"])
    assert disk.read("/f") == b"12"


def test_failed_fsync_loses_data_despite_next_fsync():
    """As in a kernel: the page is marked clean, and the next fsync succeeds without it."""
    lost = 0
    for seed in range(50):
        disk = _disk(seed)
        file = disk.open("/f", create=True)
        disk.fsync_directory("/")
        file.append([b"written"])
        disk.fail("fsync", 1, errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            file.fsync()
        file.fsync()
        disk.crash(keep="flushed")
        lost += _next(disk).read("/f") != b"written"
    assert lost > 0


def test_lock_ends_with_its_process():
    disk = _disk()
    lock = disk.lock("/lock")
    other = SimulatedDisk(disk.storage, Process("other"))
    for one in (disk, other):
        with pytest.raises(BlockingIOError):
            one.lock("/lock")
    lock.release()
    again = other.lock("/lock")
    assert again is not lock
    other.crash()
    disk.lock("/lock")


def test_cold_reads_return_none():
    disk = SimulatedDisk(cold_reads=0.5)
    file = disk.open("/f", create=True)
    file.append([b"data"])
    assert {file.read_at_if_cached(0, 4) for _ in range(50)} == {b"data", None}
    assert {file.read_at(0, 4) for _ in range(50)} == {b"data"}
