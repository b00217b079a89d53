"""Disk port over the system's file calls: one Python call per system call."""

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

_PARTS_MAX = max(16, os.sysconf("SC_IOV_MAX")) if "SC_IOV_MAX" in os.sysconf_names else 16
"""Limit of one gathered write. POSIX guarantees 16; Linux and macOS allow 1024."""
_SCRATCH_BYTES = 1 << 20
"""Cached reads up to this size use one shared buffer, which saves clearing a new one each time."""
_FAULT_IN_BYTES = 256 << 10
"""Read size when a file is read only to fill the page cache."""

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)
_FULL_FLUSH = getattr(fcntl, "F_FULLFSYNC", None)
_HAS_GATHERED_WRITE = hasattr(os, "pwritev")
_HAS_ADVICE = hasattr(os, "posix_fadvise")


def _fsync(descriptor: int) -> None:
    """Wait until the bytes are on the disk. On macOS, fsync leaves them in the drive's cache; F_FULLFSYNC does not."""
    if _FULL_FLUSH is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_FLUSH)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
        os.fsync(descriptor)  # a file system without F_FULLFSYNC, such as a network share
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
    """An open file that tracks its size, so that an append needs no system call to find the end.

    A file has one writer at a time. Close it only when no worker uses it any more, as the descriptor number may be
    reused. A file that others may still use is dereferenced instead, and closes itself with its last reference.
    """

    __slots__ = ("_descriptor", "_is_nowait", "_path", "_read_ahead", "_scratch", "_size")

    def __init__(self, path: str, descriptor: int, size: int | None, scratch: memoryview) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = size  # None for a reader: another file object may write, so the size is read from the file system
        self._scratch = scratch
        self._is_nowait = bool(_NOWAIT)
        self._read_ahead: ReadAhead | None = None  # while a reader needs the disk

    @property
    def path(self) -> str:
        return self._path

    def append(self, parts: Sequence[Buffer]) -> int:
        """Write all parts at the end, or none: the result of a failed write is truncated before the error is raised."""
        end = self._size
        if end is None:
            raise self._error(errno.EBADF)
        if len(parts) == 1:
            part = parts[0]
            total = len(part)
            try:
                written = os.pwrite(self._descriptor, part, end)
            except OSError:
                self._truncate_to(end)
                raise
        else:
            total = sum(map(len, parts))
            try:
                written = self._write_gathered(parts, end)
            except OSError:
                self._truncate_to(end)
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
        """Write the rest. A write may end early, on a signal or a nearly full disk: the retry shows which it was."""
        try:
            _write_all(self._descriptor, memoryview(b"".join(parts))[written:], end + written)
        except OSError:
            self._truncate_to(end)
            raise

    def _truncate_to(self, end: int) -> None:
        """Remove a torn write. If that fails too, the tracked size is unchanged and the next append overwrites it."""
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
        pieces = [data]  # the end of the file, or the kernel's limit of 2 GiB per read
        missing = size - len(data)
        position += len(data)
        while missing and (data := os.pread(self._descriptor, missing, position)):
            pieces.append(data)
            missing -= len(data)
            position += len(data)
        return b"".join(pieces)

    def read_at_if_cached(self, position: int, size: int) -> bytes | None:
        view = self.read_view_if_cached(position, size)
        return None if view is None else bytes(view)

    def read_view_if_cached(self, position: int, size: int) -> memoryview | None:
        if not self._is_nowait:
            return memoryview(self.read_at(position, size))
        read_ahead = self._read_ahead  # a worker may remove it meanwhile
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
            self._is_nowait = False  # a file system in memory, or without support for RWF_NOWAIT
            return memoryview(self.read_at(position, size))
        if count == size:
            return buffer
        return None if position + count < self.size() else buffer[:count]  # the rest is uncached, or the file ends

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
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # disable the kernel's read-ahead
        end = read_ahead.advance(position, size, self.size())
        if end > position:
            if _HAS_ADVICE:
                os.posix_fadvise(self._descriptor, position, end - position, os.POSIX_FADV_WILLNEED)
            self._fault_in(position, end)
        if not read_ahead:
            self._read_ahead = None
            if _HAS_ADVICE:
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_NORMAL)

    def _fault_in(self, position: int, end: int) -> None:
        """Wait until the byte range is in the page cache."""
        if sys.platform == "linux":
            null = os.open(os.devnull, os.O_WRONLY)
            try:
                while position < end and (count := os.sendfile(null, self._descriptor, position, end - position)):
                    position += count  # without copying a byte
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
            finally:
                os.close(null)
        for start in range(position, end, _FAULT_IN_BYTES):
            self.read_at(start, min(_FAULT_IN_BYTES, end - start))

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
            _fsync(self._descriptor)
        except OSError as error:
            raise fsync_error(error, self._path) from error

    def map(self) -> memoryview:
        """Map the file at its current size. It must not be truncated while the memory is in use."""
        from mmap import ACCESS_READ, mmap

        size = self.size()
        if size == 0:
            return memoryview(b"")  # an empty file cannot be mapped
        return memoryview(mmap(self._descriptor, size, access=ACCESS_READ))

    def send_to(self, descriptor: int, position: int, size: int) -> int:
        if size == 0:
            return 0  # to macOS, 0 means the rest of the file
        if hasattr(os, "sendfile"):
            return os.sendfile(descriptor, self._descriptor, position, size)
        return os.write(descriptor, self.read_at(position, min(size, _SCRATCH_BYTES)))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """Close a file that the log has dereferenced once the last fetch that is sending from it ends."""
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
        temporary = path + ".tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write_all(descriptor, data, 0)
            _fsync(descriptor)  # before the rename: the name must not become durable before the bytes
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
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
            if error.errno in (errno.EACCES, errno.EAGAIN):  # POSIX allows either for a held lock
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path) from error
            raise
        return RealLock(descriptor)


def _take_lock(descriptor: int) -> None:
    """Take an open file description lock (Linux). It excludes other nodes, even in this process, and Apache Kafka with
    its POSIX lock.

    A POSIX lock would be lost as soon as anything in this process opened and closed the file. Other systems use
    `flock`, which excludes Ottla nodes only.
    """
    if sys.platform == "linux":
        whole_file = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
