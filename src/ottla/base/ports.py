"""The edges of a node: everything outside the process is reached through one of these, so that a simulator can stand in for it.

`io` implements them for real, `sim` for tests. All calls are made from the event loop's thread unless a line says otherwise.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from asyncio import Future  # its import takes 40 ms, which tools that only know the wire need not spend

Buffer = bytes | bytearray | memoryview

T = TypeVar("T")


class Clock(Protocol):
    """Wall time, and how long something takes. Deadlines use the event loop's own time, which knows whole milliseconds only."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float:
        """Since some moment, to the microsecond."""
        ...

    def yield_cpu(self) -> None:
        """Do nothing for a moment, less than 0.1 ms: others on this machine may have the processor."""


class Rng(Protocol):
    """Randomness."""

    def random_bytes(self, size: int) -> bytes: ...

    def below(self, limit: int) -> int: ...


class Workers(Protocol):
    """Threads for what would block the loop: fsync, decompression, cold reads, recovery."""

    def run(self, work: Callable[[], T]) -> "Future[T]": ...


class ProcessFailed(Exception):
    """Work in another process has ended without a result; the message says what is known of it."""


class Processes(Protocol):
    """Other processes, for long work in Python: even in a thread it would keep the loop waiting for the interpreter."""

    def run(self, work: str, request: bytes, on_report: Callable[[bytes], None]) -> "Future[None]":
        """`work` names a function as "package.module:function". It is called with a Disk and the request, and yields reports; a number
        that it yields is how many seconds its work since the last one should have taken at least.

        OSError where the file system refused something, ProcessFailed where anything else went wrong. Cancelling ends the work at once.
        """


class File(Protocol):
    """An open file. Safe to read and flush from a worker while the loop appends."""

    @property
    def path(self) -> str: ...

    def append(self, parts: Sequence[Buffer]) -> int:
        """Write all parts at the end of the file, in one gathered write; return where it ends now."""

    def write_at(self, position: int, data: Buffer) -> None: ...

    def read_at(self, position: int, size: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""

    def read_at_if_cached(self, position: int, size: int) -> bytes | None:
        """As `read_at`, or None where the disk would have to be waited for."""

    def read_view_if_cached(self, position: int, size: int) -> memoryview | None:
        """As `read_at_if_cached`, in memory that is used again: until the next call for any file, and from the loop's thread only."""

    def is_cached(self, position: int, size: int) -> bool:
        """Whether the end of a slice can be read without the disk: its beginning was looked at just before, to find the slice, and what
        lies between comes and goes with them, nearly always."""

    def prefetch(self, position: int, size: int) -> None:
        """Return once a slice, and what may come after it for one who reads on, need not be waited for. Call it from a worker."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def fsync(self) -> None:
        """Return once the file's bytes are on the disk (fdatasync). Call it from a worker."""

    def map(self) -> memoryview:
        """The whole file as read-only memory."""

    def send_to(self, descriptor: int, position: int, size: int) -> int:
        """Copy bytes to a socket inside the kernel; returns how many went, raises BlockingIOError where none could."""

    def close(self) -> None: ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are absolute strings; errors are OSError as Python raises them."""

    def open(self, path: str, *, create: bool = False) -> File:
        """For reading and writing. FileNotFoundError unless it exists or `create` is true."""

    def open_read_only(self, path: str) -> File: ...

    def open_files_max(self) -> int:
        """How many files logs may hold open at a time."""

    def read(self, path: str) -> bytes: ...

    def write_atomically(self, path: str, data: Buffer) -> None:
        """Write beside it, flush, rename over it, flush the directory: a crash leaves the old file or the new one."""

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_directories(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def fsync_directory(self, path: str) -> None: ...

    def space(self, path: str) -> tuple[int, int]:
        """The bytes that the file system of a path has, and those of them that are free to use. Call it from a worker."""

    def lock(self, path: str) -> DiskLock:
        """Take the lock file, until released or the process ends; BlockingIOError where another process holds it."""


class Connection(Protocol):
    """One accepted or dialled stream, as the one who writes to it sees it. Order of calls is order of bytes."""

    @property
    def peer_host(self) -> str: ...

    @property
    def peer_port(self) -> int: ...

    @property
    def sent_bytes(self) -> int:
        """How many bytes have left so far."""

    def write(self, parts: Sequence[Buffer], *, more: bool = False) -> None:
        """Parts are taken over: the caller must not change them afterwards. But a memoryview is only lent: what has to wait of it is
        copied. With `more` something else is written at once, and the reader need not be woken before it."""

    def send_file(self, file: File, position: int, size: int) -> None: ...

    def buffered_bytes(self) -> int: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """After what was written has left."""

    def abort(self) -> None:
        """At once."""


class Receiver(Protocol):
    """The other side of a Connection: asyncio's BufferedProtocol by shape, so that no call stands between it and the loop."""

    def connection_made(self, connection: Connection) -> None: ...

    def get_buffer(self, size_hint: int) -> memoryview:
        """Where the next bytes go. `buffer_updated` follows at once: the memory may be shared by all connections of a loop."""

    def buffer_updated(self, size: int) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, error: Exception | None) -> None: ...


class Listener(Protocol):
    @property
    def port(self) -> int: ...

    def close(self) -> None:
        """Accept no more. Connections that are open stay open."""


class Network(Protocol):
    async def listen(self, host: str, port: int, receiver: Callable[[], Receiver]) -> Listener:
        """Port 0 takes a free one. OSError where the address cannot be had."""

    async def connect(self, host: str, port: int, receiver: Receiver) -> Connection:
        """Dial; the receiver is told of the connection before this returns. OSError where nobody answers."""


class ClientPorts(Protocol):
    """What a client needs of the world."""

    @property
    def clock(self) -> Clock: ...

    @property
    def rng(self) -> Rng: ...

    @property
    def workers(self) -> Workers: ...

    @property
    def network(self) -> Network: ...


class Ports(ClientPorts, Protocol):
    """All of them, as a node is given them."""

    @property
    def disk(self) -> Disk: ...

    @property
    def processes(self) -> Processes: ...
