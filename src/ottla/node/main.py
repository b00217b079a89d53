"""The node process: real ports, event loop, logging and signals."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.base.ports import Clock, Disk, Network, Rng
from ottla.io import process
from ottla.io.clock import RealClock
from ottla.io.disk import RealDisk
from ottla.io.memory import configure_gc, trim_memory_periodically
from ottla.io.processes import ChildProcesses
from ottla.io.rng import RealRng
from ottla.io.tcp import TcpNetwork
from ottla.io.workers import ThreadWorkers
from ottla.node.assemble import Node, assemble
from ottla.node.config import NodeConfig
from ottla.node.errors import StartError, check_addresses
from ottla.node.storage import Storage, prepare_storage
from ottla.node.temporary import remove_abandoned_directories
from ottla.runtime.log_recovery import RecoveryInterrupted, RecoveryProgress

if TYPE_CHECKING:
    from ottla.server.metrics import ProcessFacts

WORKER_THREADS_MAX = 4
log = logging.getLogger("ottla.node")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class RealPorts:
    """The real ports of a node process."""

    clock: Clock
    rng: Rng
    workers: ThreadWorkers
    processes: ChildProcesses
    disk: Disk
    network: Network


def real_ports(loop: asyncio.AbstractEventLoop) -> RealPorts:
    workers = ThreadWorkers(loop, WORKER_THREADS_MAX)
    return RealPorts(RealClock(), RealRng(), workers, ChildProcesses(loop, workers), RealDisk(), TcpNetwork())


def format_storage(config: NodeConfig) -> Storage:
    """Format new directories and release all locks. Raises StorageError if a directory belongs to another node."""
    disk, clock = RealDisk(), RealClock()
    storage = prepare_storage(
        disk,
        RealRng(),
        config.log_dirs,
        config.metadata_log_dir,
        config.node_id,
        config.cluster_id,
        now_ms=clock.now_ms(),
    )
    try:
        if all(directory.is_clean for directory in storage.directories):
            storage.mark_clean(disk, storage.previous_broker_epoch)  # for the next start: formatting removed the marker
    finally:
        storage.release()
    return storage


def remove_abandoned_data() -> None:
    """Remove the temporary directories of nodes that were killed."""
    remove_abandoned_directories(RealDisk())


def run(
    config: NodeConfig,
    *,
    on_serving: Callable[[Node], None],
    on_second_signal: Callable[[], None],
    log_level: str = "warning",
    on_recovery_progress: Callable[[RecoveryProgress], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then stop cleanly. A second signal calls `on_second_signal` and exits at once.

    Log recovery reports its progress to `on_recovery_progress`, or to the log if that is None. Raises StartError if the
    node cannot start or cannot continue.
    """
    import uvloop

    set_up_logging(log_level)
    check_addresses(config.listeners)
    process.raise_descriptor_limit()
    process.tune_malloc()
    process.shorten_gil_switch_interval()
    process.request_short_timeslice()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, on_serving, on_second_signal, on_recovery_progress))


async def _serve(
    config: NodeConfig,
    on_serving: Callable[[Node], None],
    on_second_signal: Callable[[], None],
    on_recovery_progress: Callable[[RecoveryProgress], None] | None,
) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        stopping.set()
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, exit_at_once)

    def exit_at_once(number: int, frame: object) -> None:
        on_second_signal()
        os._exit(128 + number)

    for each in _SIGNALS:
        loop.add_signal_handler(each, on_signal, each)
    ports = real_ports(loop)
    try:
        try:
            node = await assemble(
                ports,
                config,
                process_facts=process_facts,
                on_recovery_progress=on_recovery_progress,
                is_stopping=stopping.is_set,
            )
        except RecoveryInterrupted as reason:
            log.warning("%s; the next start recovers the logs again", reason)
            return
        waiting = loop.create_task(stopping.wait())
        trimming = loop.create_task(trim_memory_periodically(ports.workers))
        try:
            if not stopping.is_set():
                on_serving(node)
                configure_gc()
            await asyncio.wait((waiting, node.failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            trimming.cancel()
            await node.stop()
        if node.failed.done():
            raise StartError(f"the node stopped: {node.failed.exception()}")
    finally:
        ports.processes.close()
        ports.workers.close()


def process_facts() -> "ProcessFacts":
    from ottla.server.metrics import ProcessFacts

    return ProcessFacts(process.resident_bytes(), process.cpu_seconds(), process.open_descriptors())


def set_up_logging(level: str) -> None:
    """Log to stderr, one line per record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(is_traced=level == "debug"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class LineFormatter(logging.Formatter):
    """Formatter of lines like `2026-01-31T12:00:00.123Z warning ottla.server text`, in UTC.

    An exception is added to the line; a traceback only if `is_traced`.
    """

    def __init__(self, *, is_traced: bool) -> None:
        super().__init__()
        self._is_traced = is_traced

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = f"{stamp}.{int(record.msecs):03d}Z {record.levelname.lower()} {record.name} {record.getMessage()}"
        line = line.replace("\r", "\\r").replace("\n", "\\n")
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        if self._is_traced:
            assert record.exc_info is not None
            return f"{line}\n{self.formatException(record.exc_info)}"
        return f"{line} error={type(error).__name__}: {str(error)!r}{_location(error)}"


def _location(error: BaseException) -> str:
    """Return the file and line where the error was raised."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" at={os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
