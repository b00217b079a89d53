"""RealDisk, including partial writes, errors and unsupported system calls."""

import errno
import os
import socket
import subprocess
import sys

import pytest

from ottla.io import disk as real
from ottla.io.disk import RealDisk


@pytest.fixture
def disk():
    return RealDisk()


def test_append_gathers_any_number_of_parts(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    many = [bytes([n % 256]) for n in range(3000)]  # more than one gathered write takes
    appends = ([b"one"], [b"a", bytearray(b"bc"), memoryview(b"d")], [], many)
    assert [file.append(parts) for parts in appends] == [3, 7, 7, 3007]
    expected = b"oneabcd" + b"".join(many)
    assert (file.size(), file.read_at(0, 10_000), disk.read(file.path)) == (len(expected), expected, expected)
    file.close()


def test_short_write_is_completed(disk, tmp_path, monkeypatch):
    """The kernel may write fewer bytes than requested. The caller sees a complete write or an error."""
    file = disk.open(f"{tmp_path}/f", create=True)
    pwrite, pwritev = os.pwrite, os.pwritev
    monkeypatch.setattr(
        real.os, "pwrite", lambda descriptor, data, position: pwrite(descriptor, bytes(data)[:2], position)
    )
    monkeypatch.setattr(
        real.os, "pwritev", lambda descriptor, parts, position: pwritev(descriptor, [b"".join(parts)[:3]], position)
    )
    assert (file.append([b"abcdefg"]), file.append([b"hi", b"jkl", b"mnop"])) == (7, 16)
    monkeypatch.undo()
    assert (file.size(), disk.read(file.path)) == (16, b"abcdefghijklmnop")
    file.close()


@pytest.mark.parametrize("parts", [[b"lost!"], [b"lo", b"st!"]])
def test_failed_write_leaves_nothing(disk, tmp_path, monkeypatch, parts):
    """A torn write is truncated, so that the next append follows complete data."""
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"kept"])
    pwrite = os.pwrite
    calls = iter(["short", "full"])

    def fill_up(descriptor, data, position):
        if next(calls) == "short":
            return pwrite(descriptor, bytes(data)[:2], position)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(real.os, "pwrite", fill_up)
    monkeypatch.setattr(
        real.os, "pwritev", lambda descriptor, parts, position: fill_up(descriptor, b"".join(parts), position)
    )
    with pytest.raises(OSError, match="full"):
        file.append(parts)
    monkeypatch.undo()
    assert (file.size(), disk.read(file.path)) == (4, b"kept")
    file.append([b" and more"])
    assert disk.read(file.path) == b"kept and more"
    file.close()


def test_torn_write_that_cannot_be_truncated_is_overwritten(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"kept"])

    def fail(*arguments):
        raise OSError(errno.EIO, "broken")

    os.pwrite(os.open(file.path, os.O_WRONLY), b"to", 4)
    monkeypatch.setattr(real.os, "pwrite", fail)
    monkeypatch.setattr(real.os, "ftruncate", fail)
    with pytest.raises(OSError, match="broken"):
        file.append([b"torn"])
    monkeypatch.undo()
    assert file.size() == 4
    file.append([b" on"])
    assert disk.read(file.path) == b"kept on"
    file.close()


def test_reads_at_the_end_are_short(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"0123456789"])
    reader = disk.open_read_only(file.path)
    for one in (file, reader):
        assert [one.read_at(8, 5), one.read_at(10, 5), one.read_at(0, 0)] == [b"89", b"", b""]
        assert [one.read_at_if_cached(2, 3), one.read_at_if_cached(8, 5), one.read_at_if_cached(10, 5)] == [
            b"234",
            b"89",
            b"",
        ]
    big = os.urandom(real._SCRATCH_BYTES + 5)
    file.append([big])
    assert reader.read_at_if_cached(10, len(big)) == big
    assert reader.size() == 10 + len(big)
    for one in (file, reader):
        one.close()


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="the system has no RWF_NOWAIT")
def test_uncached_read_returns_none(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"0123456789"])
    results = {
        "cold": BlockingIOError(errno.EAGAIN, "would wait"),
        "partly": 4,
        "unsupported": OSError(errno.EOPNOTSUPP, "unsupported"),
    }

    def preadv(descriptor, buffers, position, flags):
        assert flags == os.RWF_NOWAIT
        if isinstance(result, OSError):
            raise result
        return result

    monkeypatch.setattr(real.os, "preadv", preadv)
    result = results["cold"]
    assert file.read_at_if_cached(0, 10) is None
    result = results["partly"]
    assert file.read_at_if_cached(0, 10) is None
    result = results["unsupported"]
    assert file.read_at_if_cached(0, 10) == b"0123456789"
    result = AssertionError("called again")
    assert file.read_at_if_cached(0, 10) == b"0123456789"
    file.close()


def drop_from_cache(file):
    file.fsync()
    descriptor = os.open(file.path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.mark.skipif(
    not hasattr(os, "posix_fadvise") or not hasattr(os, "RWF_NOWAIT"),
    reason="the system cannot drop a file from the page cache",
)
def test_prefetched_range_is_cached(disk, tmp_path):
    """For a sequential reader, bytes after the window count as uncached, without a check."""
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([os.urandom(10 << 20)])
    drop_from_cache(file)
    file.prefetch(0, 1 << 20)
    uncached = []
    for position in range(0, 10 << 20, 1 << 20):
        if not file.is_cached(position, 1 << 20):
            uncached.append(position >> 20)
            assert file.read_at_if_cached(position, 2 << 20) is None
            file.prefetch(position, 1 << 20)
        assert file.is_cached(position, 1 << 20)
        assert file.read_at_if_cached(position, 1 << 20) == file.read_at(position, 1 << 20)
    assert uncached == [1, 3, 7]
    assert file._read_ahead is None
    file.close()


def test_prefetch_reads_if_sendfile_is_unsupported(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([bytes(1 << 20)])
    read = []
    monkeypatch.setattr(real, "_HAS_ADVICE", False)
    monkeypatch.setattr(real.RealFile, "read_at", lambda file, position, size: read.append((position, size)))
    for number, expected in ((errno.EINVAL, [(100, 256 << 10), (100 + (256 << 10), 44 << 10)]), (errno.EIO, None)):

        def fail(*_, number=number):
            raise OSError(number, "cannot be sent")

        monkeypatch.setattr(real.os, "sendfile", fail)
        if expected is None:
            with pytest.raises(OSError, match="cannot be sent"):
                file.prefetch(100, 300 << 10)
        else:
            file.prefetch(100, 300 << 10)
            assert read == expected
    file.close()


def test_read_only_file_rejects_writes(disk, tmp_path):
    disk.write_atomically(f"{tmp_path}/f", b"data")
    reader = disk.open_read_only(f"{tmp_path}/f")
    for change in (lambda: reader.append([b"x"]), lambda: reader.write_at(0, b"x"), lambda: reader.truncate(0)):
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EBADF
    reader.close()
    assert disk.read(reader.path) == b"data"


def test_closed_file_rejects_calls(disk, tmp_path):
    """Its descriptor number may have been reused, so it must not be used."""
    file = disk.open(f"{tmp_path}/f", create=True)
    file.close()
    file.close()
    other = disk.open(f"{tmp_path}/g", create=True)
    for call in (lambda: file.append([b"x"]), lambda: file.read_at(0, 1), file.fsync):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EBADF
    assert other.size() == 0
    other.close()


def test_unreferenced_file_closes_itself(disk, tmp_path):
    """A response that is being sent may have the last reference to an evicted file."""
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"data"])
    descriptor = file._descriptor
    second_reference = file
    del file
    assert second_reference.read_at(0, 4) == b"data"
    del second_reference
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_map(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    assert bytes(file.map()) == b""
    file.append([b"mapped"])
    view = file.map()
    file.close()
    assert (bytes(view), view.readonly) == (b"mapped", True)


def test_send_to(disk, tmp_path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.append([b"0123456789"])
    sender, receiver = socket.socketpair()
    with sender, receiver:
        sender.setblocking(False)
        assert [
            file.send_to(sender.fileno(), position, size) for position, size in ((3, 4), (8, 100), (10, 5), (0, 0))
        ] == [4, 2, 0, 0]
        assert receiver.recv(100) == b"345689"
        file.append([bytes(8 << 20)])
        file.send_to(sender.fileno(), 0, 8 << 20)
        with pytest.raises(BlockingIOError):
            file.send_to(sender.fileno(), 0, 8 << 20)
    file.close()


def test_write_atomically_replaces_and_leaves_no_temporary_file(disk, tmp_path):
    path = f"{tmp_path}/f"
    disk.write_atomically(path, b"a longer first version")
    disk.write_atomically(path, memoryview(b"second"))
    assert (disk.read(path), disk.list(str(tmp_path))) == (b"second", ["f"])


def test_write_atomically_fsyncs_before_the_rename(disk, tmp_path, monkeypatch):
    calls = []
    for name in ("fdatasync", "replace", "fsync"):
        original = getattr(os, name)
        monkeypatch.setattr(
            real.os,
            name,
            lambda *arguments, name=name, original=original: (calls.append(name), original(*arguments))[1],
        )
    disk.write_atomically(f"{tmp_path}/f", b"x")
    assert calls == ["fdatasync", "replace", "fsync"]


def test_lock_excludes_this_process_and_others(disk, tmp_path):
    path = f"{tmp_path}/.lock"
    lock = disk.lock(path)
    with pytest.raises(BlockingIOError):
        disk.lock(path)
    ours = f"from ottla.io.disk import RealDisk; RealDisk().lock({path!r})"
    kafkas = f"import fcntl; fcntl.lockf(open({path!r}, 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"  # a POSIX lock
    for other in (ours, kafkas) if sys.platform == "linux" else (ours,):
        assert "BlockingIOError" in subprocess.run([sys.executable, "-c", other], capture_output=True, text=True).stderr
    lock.release()
    lock.release()
    disk.lock(path).release()
