"""Ports: everything outside the process is reached through one of these, so that a simulator can replace it.

`io` implements them for real, `sim` for tests. All calls are made from the event loop's thread unless documented
otherwise.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from asyncio import Future  # importing it takes 40 ms, which tools that only use `wire` need not spend

Buffer = bytes | bytearray | memoryview

T = TypeVar("T")


class Clock(Protocol):
    """Wall time and elapsed time. Deadlines use the event loop's time, whose resolution is one millisecond."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment, with microsecond resolution."""
        ...

    def yield_cpu(self) -> None:
        """Sleep for less than 0.1 ms, so that another process can use the CPU."""


class Rng(Protocol):
    """A source of randomness."""

    def random_bytes(self, size: int) -> bytes: ...

    def below(self, limit: int) -> int: ...


class Workers(Protocol):
    """Threads for work that would block the event loop: fsync, decompression, cold reads, recovery."""

    def run(self, work: Callable[[], T]) -> "Future[T]": ...


class ProcessFailed(Exception):
    """Work in a child process ended without a result; the message says why, if that is known."""


class Processes(Protocol):
    """Child processes for long work in Python, which would hold the GIL even in a thread."""

    def run(self, work: str, request: bytes, on_report: Callable[[bytes], None]) -> "Future[None]":
        """Run the function that `work` names as "package.module:function", with a Disk and the request as arguments.

        It yields reports. To be throttled it yields a number: the minimum duration, in seconds, of the work since the
        last number. Raises OSError for errors of the file system, ProcessFailed for any other failure. Cancelling the
        future ends the work immediately.
        """


class File(Protocol):
    """An open file. Workers may read and fsync it while the event loop appends."""

    @property
    def path(self) -> str: ...

    def append(self, parts: Sequence[Buffer]) -> int:
        """Write all parts at the end of the file with one gathered write; return the new size."""

    def write_at(self, position: int, data: Buffer) -> None: ...

    def read_at(self, position: int, size: int) -> bytes:
        """Return `size` bytes; fewer only at the end of the file."""

    def read_at_if_cached(self, position: int, size: int) -> bytes | None:
        """Like `read_at`, but return None instead of waiting for the disk."""

    def read_view_if_cached(self, position: int, size: int) -> memoryview | None:
        """Like `read_at_if_cached`, but return a view of a shared buffer, valid until the next call for any file."""

    def is_cached(self, position: int, size: int) -> bool:
        """Return whether the last byte of a range is in the page cache.

        Callers have just read the first one, to find the range; the bytes between are nearly always cached with both.
        """

    def prefetch(self, position: int, size: int) -> None:
        """Block until the byte range, plus read-ahead for a sequential reader, is in the page cache. Call from a
        worker."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def fsync(self) -> None:
        """Block until the file's bytes are on disk (fdatasync). Call from a worker."""

    def map(self) -> memoryview:
        """Return the complete file as read-only memory."""

    def send_to(self, descriptor: int, position: int, size: int) -> int:
        """Copy bytes to a socket with sendfile; return how many were sent. Raises BlockingIOError if none could be."""

    def close(self) -> None: ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are absolute strings; errors are Python's OSError."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and writing. Raises FileNotFoundError unless it exists or `create` is true."""

    def open_read_only(self, path: str) -> File: ...

    def open_files_max(self) -> int:
        """Return how many files logs may keep open at a time."""

    def read(self, path: str) -> bytes: ...

    def write_atomically(self, path: str, data: Buffer) -> None:
        """Write a temporary file, fsync, rename it and fsync the directory: a crash leaves the old file or the new
        one."""

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def make_directories(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def fsync_directory(self, path: str) -> None: ...

    def space(self, path: str) -> tuple[int, int]:
        """Return total and available bytes of the file system that contains a path. Call from a worker."""

    def lock(self, path: str) -> DiskLock:
        """Lock a file until it is released or the process ends. Raises BlockingIOError if another process holds it."""


class Connection(Protocol):
    """The sending side of an accepted or dialed stream. Bytes are sent in the order of the calls."""

    @property
    def peer_host(self) -> str: ...

    @property
    def peer_port(self) -> int: ...

    @property
    def sent_bytes(self) -> int:
        """Return how many bytes were passed to the kernel so far."""

    def write(self, parts: Sequence[Buffer], *, more: bool = False) -> None:
        """Send parts, which the caller must not change afterwards.

        A memoryview is only borrowed: what cannot be sent immediately is copied. `more` announces another write in the
        same loop iteration, so that the receiver need not be woken before it.
        """

    def send_file(self, file: File, position: int, size: int) -> None: ...

    def buffered_bytes(self) -> int: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Close the connection after all written bytes have been sent."""

    def abort(self) -> None:
        """Close the connection immediately."""


class Receiver(Protocol):
    """The receiving side of a connection. It has the shape of asyncio's BufferedProtocol, so that the loop calls it
    directly."""

    def connection_made(self, connection: Connection) -> None: ...

    def get_buffer(self, size_hint: int) -> memoryview:
        """Return where to store the next bytes. `buffer_updated` follows immediately, so all connections may share
        it."""

    def buffer_updated(self, size: int) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def close(self) -> None:
        """Stop accepting. Open connections stay open."""


class Network(Protocol):
    async def listen(self, host: str, port: int, receiver: Callable[[], Receiver]) -> Listener:
        """Listen at an address; port 0 selects a free port. Raises OSError if the address is not available."""

    async def connect(self, host: str, port: int, receiver: Receiver) -> Connection:
        """Dial; calls `connection_made` before it returns. Raises OSError if there is no answer."""


class ClientPorts(Protocol):
    """The ports that a client needs."""

    @property
    def clock(self) -> Clock: ...

    @property
    def rng(self) -> Rng: ...

    @property
    def workers(self) -> Workers: ...

    @property
    def network(self) -> Network: ...


class Ports(ClientPorts, Protocol):
    """The ports that a node needs."""

    @property
    def disk(self) -> Disk: ...

    @property
    def processes(self) -> Processes: ...
