"""The simulated disk: like the real one call by call, and then what crashes leave of it."""

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
    """Every call goes to both disks; results and kinds of errors are the same."""

    def __init__(self):
        super().__init__()
        self.home = tempfile.mkdtemp()
        self.real = RealDisk()
        self.simulated = SimulatedDisk(cold_reads=0.0)
        self.simulated.make_directories(self.home)
        self.files = {}  # path -> the one writer of it on each disk

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
        place, size, blob = data.draw(_PLACE), data.draw(_PLACE), data.draw(_DATA)
        calls = {
            "append": lambda file: file.append([blob, b"", blob[:3]]),
            "write_at": lambda file: file.write_at(place, blob),
            "truncate": lambda file: file.truncate(place),
            "read_at": lambda file: file.read_at(place, size),
            "if_cached": lambda file: file.read_at_if_cached(place, size),
            "prefetch": lambda file: file.prefetch(place, size),
            "map": lambda file: bytes(file.map()),
            "fsync": lambda file: file.fsync(),
            "again": lambda file: file.size(),
        }
        result = calls[what](real)
        if result is None and what == "if_cached":
            result = real.read_at(place, size)  # a real page may well have to be waited for
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
            return  # a kernel opens a directory for reading, which nobody here does
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


def test_a_dead_process_leaves_the_page_cache():
    """What was written is there, flushed or not, and what the dead had open is of no use."""
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


def test_a_process_that_dies_in_a_write_tears_it():
    seen = {}
    for seed in range(60):
        disk = _disk(seed)
        file = disk.open("/f", create=True)
        file.append([b"whole "])
        disk.crash_in(2, disk.crash)
        file.append([b"whole too "])
        with pytest.raises(SimulatedCrash):
            file.append([b"torn"])
        seen[_next(disk).read("/f")] = None
    whole = b"whole whole too "
    assert sorted(seen) == [whole, whole + b"t", whole + b"to", whole + b"tor", whole + b"torn"]


def test_a_process_that_dies_in_another_change_has_not_made_it():
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


def test_power_cuts_spare_what_was_flushed():
    """Flushed bytes under a flushed name are always there; of the rest there is anything from nothing to all, holes included."""
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


def test_a_name_is_as_durable_as_its_directory():
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


def test_writing_atomically_survives_a_crash_in_any_step():
    """Whatever happens, the old bytes or the new ones are there, and once it has returned the new ones."""
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


def test_a_rename_moves_a_file_whole():
    """After a power cut a moved file is at one of its places, even between directories."""
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
        places = after.list("/a") + after.list("/b")
        assert places == ["f"]
        if seed % 2:
            assert after.list("/b") == ["f"]


def test_faults_come_at_the_call_that_was_named():
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


def test_a_failed_flush_is_not_made_good_by_the_next():
    """As a kernel does it: the dirty page is forgotten, and the next flush succeeds without it."""
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


def test_a_lock_ends_with_its_process():
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


def test_cold_reads_say_so():
    disk = SimulatedDisk(cold_reads=0.5)
    file = disk.open("/f", create=True)
    file.append([b"data"])
    assert {file.read_at_if_cached(0, 4) for _ in range(50)} == {b"data", None}
    assert {file.read_at(0, 4) for _ in range(50)} == {b"data"}
