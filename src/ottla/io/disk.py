"""The real file system, by the operating system's own calls: one Python call stands between the log and each of them."""

import errno
import fcntl
import os
import struct
import sys
from collections.abc import Sequence

from ottla.base.errors import fsync_error
from ottla.base.ports import Buffer
from ottla.io import process
from ottla.io.read_ahead import ReadAhead

# The most parts that one gathered write takes; POSIX promises 16, Linux and macOS take 1024.
_PARTS_MAX = max(16, os.sysconf("SC_IOV_MAX")) if "SC_IOV_MAX" in os.sysconf_names else 16

# Reads up to this size that must not wait go through one reused buffer, which saves clearing a fresh one each time.
_SCRATCH_BYTES = 1 << 20

# Pieces in which a file is read only to have it in the page cache, where the system does not walk through it by itself.
_WALKED_BYTES = 256 << 10

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
_FULL_FLUSH = getattr(fcntl, "F_FULLFSYNC", None)
_HAS_GATHERED_WRITE = hasattr(os, "pwritev")
_HAS_ADVICE = hasattr(os, "posix_fadvise")


def _flush_descriptor(descriptor: int) -> None:
    """Until the bytes are on the disk. On macOS fsync leaves them in the drive's own memory; only a full flush does not."""
    if _FULL_FLUSH is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_FLUSH)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
        os.fsync(descriptor)  # a file system without a full flush, as network shares are
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def _write_all(descriptor: int, data: Buffer, position: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, position)
        rest = rest[written:]
        position += written


class RealFile:
    """An open file that knows its own size, so that an append needs no call to learn where the end is.

    There is one writer of a file at a time. Close it only when no worker uses it any more: the descriptor's number may go to another file.
    One that others may still use is let go instead, and closes itself when the last of them has let go of it.
    """

    __slots__ = ("_descriptor", "_is_nowait", "_path", "_read_ahead", "_scratch", "_size")

    def __init__(self, path: str, descriptor: int, size: int | None, scratch: memoryview) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = size  # None for a reader: another may write to it, so that each question goes to the file system
        self._scratch = scratch
        self._is_nowait = bool(_NOWAIT)
        self._read_ahead: ReadAhead | None = None  # while somebody reads it from the disk

    @property
    def path(self) -> str:
        return self._path

    def append(self, parts: Sequence[Buffer]) -> int:
        """Write all parts at the end, or none: what a failed write left behind is cut off before the error is raised."""
        end = self._size
        if end is None:
            raise self._error(errno.EBADF)
        if len(parts) == 1:
            part = parts[0]
            total = len(part)
            try:
                written = os.pwrite(self._descriptor, part, end)
            except OSError:
                self._cut_back(end)
                raise
        else:
            total = sum(map(len, parts))
            try:
                written = self._write_gathered(parts, end)
            except OSError:
                self._cut_back(end)
                raise
        if written != total:
            self._finish_short_write(parts, end, written)
        self._size = end = end + total
        return end

    def _write_gathered(self, parts: Sequence[Buffer], end: int) -> int:
        if len(parts) <= _PARTS_MAX and _HAS_GATHERED_WRITE:
            return os.pwritev(self._descriptor, parts, end)
        return os.pwrite(self._descriptor, b"".join(parts), end)

    def _finish_short_write(self, parts: Sequence[Buffer], end: int, written: int) -> None:
        """A write may end early, on a signal or a nearly full disk: the rest is tried, which gives the reason if it cannot be."""
        try:
            _write_all(self._descriptor, memoryview(b"".join(parts))[written:], end + written)
        except OSError:
            self._cut_back(end)
            raise

    def _cut_back(self, end: int) -> None:
        """Remove a torn part. Where even that fails, the size stays as it was, and the next append overwrites the part."""
        try:
            os.ftruncate(self._descriptor, end)
        except OSError:
            self._size = end

    def write_at(self, position: int, data: Buffer) -> None:
        end = self._size
        if end is None:
            raise self._error(errno.EBADF)
        try:
            _write_all(self._descriptor, data, position)
        except OSError:
            self._size = os.fstat(self._descriptor).st_size
            raise
        if len(data):
            self._size = max(end, position + len(data))

    def read_at(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        pieces = [data]  # the end of the file, or a kernel that gives at most 2 GiB at once
        missing = size - len(data)
        position += len(data)
        while missing and (data := os.pread(self._descriptor, missing, position)):
            pieces.append(data)
            missing -= len(data)
            position += len(data)
        return b"".join(pieces)

    def read_at_if_cached(self, position: int, size: int) -> bytes | None:
        lent = self.read_view_if_cached(position, size)
        return None if lent is None else bytes(lent)

    def read_view_if_cached(self, position: int, size: int) -> memoryview | None:
        if not self._is_nowait:
            return memoryview(self.read_at(position, size))
        read_ahead = self._read_ahead  # a worker may forget it meanwhile
        if read_ahead is not None and read_ahead.crosses_window_end(position, size):
            return None
        buffer = self._scratch[:size] if size <= _SCRATCH_BYTES else memoryview(bytearray(size))
        try:
            count = os.preadv(self._descriptor, (buffer,), position, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self._is_nowait = False  # a file system in memory, or one that cannot say
            return memoryview(self.read_at(position, size))
        if count == size:
            return buffer
        return None if position + count < self.size() else buffer[:count]  # the rest is on the disk, or there is none

    def is_cached(self, position: int, size: int) -> bool:
        read_ahead = self._read_ahead
        if read_ahead is not None and read_ahead.crosses_window_end(position, size):
            return False
        return self.read_at_if_cached(position + size - 1, 1) is not None

    def prefetch(self, position: int, size: int) -> None:
        read_ahead = self._read_ahead
        if read_ahead is None:
            read_ahead = self._read_ahead = ReadAhead()
            if _HAS_ADVICE:
                os.posix_fadvise(
                    self._descriptor, 0, 0, os.POSIX_FADV_RANDOM
                )  # the kernel reads what it is told to, and no more
        end = read_ahead.advance(position, size, self.size())
        if end > position:
            if _HAS_ADVICE:
                os.posix_fadvise(self._descriptor, position, end - position, os.POSIX_FADV_WILLNEED)
            self._walk(position, end)
        if not read_ahead:
            self._read_ahead = None
            if _HAS_ADVICE:
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_NORMAL)

    def _walk(self, position: int, end: int) -> None:
        """Wait until all of it is in the page cache."""
        if sys.platform == "linux":
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                while position < end and (walked := os.sendfile(nowhere, self._descriptor, position, end - position)):
                    position += walked  # no byte is copied
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
            finally:
                os.close(nowhere)
        for start in range(position, end, _WALKED_BYTES):
            self.read_at(start, min(_WALKED_BYTES, end - start))

    def size(self) -> int:
        size = self._size
        return os.fstat(self._descriptor).st_size if size is None else size

    def truncate(self, size: int) -> None:
        if self._size is None:
            raise self._error(errno.EBADF)
        os.ftruncate(self._descriptor, size)
        self._size = size

    def fsync(self) -> None:
        if self._descriptor < 0:
            raise self._error(errno.EBADF)
        try:
            _flush_descriptor(self._descriptor)
        except OSError as error:
            raise fsync_error(error, self._path) from error

    def map(self) -> memoryview:
        """The file as it is now. It must not be truncated while the memory is in use."""
        from mmap import ACCESS_READ, mmap

        size = self.size()
        if size == 0:
            return memoryview(b"")  # nothing cannot be mapped
        return memoryview(mmap(self._descriptor, size, access=ACCESS_READ))

    def send_to(self, descriptor: int, position: int, size: int) -> int:
        if size == 0:
            return 0  # macOS takes 0 for "all of the file"
        if hasattr(os, "sendfile"):
            return os.sendfile(descriptor, self._descriptor, position, size)
        return os.write(descriptor, self.read_at(position, min(size, _SCRATCH_BYTES)))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """The log lets files go that a fetch may still be sending from; the last to let go closes them."""
        self.close()

    def _error(self, number: int) -> OSError:
        return OSError(number, os.strerror(number), self._path)


class RealLock:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class RealDisk:
    __slots__ = ("_scratch",)

    def __init__(self) -> None:
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))

    def open(self, path: str, *, create: bool = False) -> RealFile:
        descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644)
        return RealFile(path, descriptor, os.fstat(descriptor).st_size, self._scratch)

    def open_files_max(self) -> int:
        return process.split_descriptors()[0]

    def open_read_only(self, path: str) -> RealFile:
        return RealFile(path, os.open(path, os.O_RDONLY), None, self._scratch)

    def read(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read()

    def write_atomically(self, path: str, data: Buffer) -> None:
        beside = path + ".tmp"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write_all(descriptor, data, 0)
            _flush_descriptor(descriptor)  # before the rename: a name must never be durable before its bytes
        finally:
            os.close(descriptor)
        os.replace(beside, path)
        self.fsync_directory(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directories(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        import shutil

        shutil.rmtree(path)

    def fsync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def lock(self, path: str) -> RealLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _take_lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):  # POSIX lets a held lock be reported as either
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path) from error
            raise
        return RealLock(descriptor)


def _take_lock(descriptor: int) -> None:
    """A lock of the open file, where there is one: it keeps out other nodes, also of this process, and Apache Kafka with its POSIX lock.

    A POSIX lock of our own would be lost as soon as anything in this process opened and closed the file. Elsewhere `flock` keeps out our
    own kind.
    """
    if sys.platform == "linux":
        whole_file = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
