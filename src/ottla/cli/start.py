"""`ottla start`: run a node in the foreground, and print its address and recovery progress."""

import argparse
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from ottla import __version__
from ottla.cli.errors import print_error
from ottla.cli.output import ProgressBar
from ottla.cli.settings import DEFAULT_DATA, DEFAULT_HOST, DEFAULT_PORT, UsageError, node_settings
from ottla.metadata.configs import InvalidConfig
from ottla.node.config import ConfigError, NodeConfig, node_config
from ottla.node.errors import StartError
from ottla.node.listeners import is_loopback, is_wildcard
from ottla.node.temporary import ephemeral_directory, remove_directory

if TYPE_CHECKING:
    from ottla.runtime.log_recovery import RecoveryProgress

RECOVERY_BAR_SECONDS_MIN = 1.0
"""Recovery that takes longer than this shows a progress bar."""

# Printed with the node's address; a test runs it exactly as printed.
TRY_IT = """\
    echo hello | {ottla} produce greetings{option}
    {ottla} consume greetings{option}"""


def start(arguments: argparse.Namespace) -> int:
    try:
        with _data_directory(is_ephemeral=arguments.ephemeral) as (directory, remove):
            settings, sources = node_settings(arguments, temporary=directory, canonical_host=socket.getfqdn)
            config = node_config(settings, sources=sources, cluster_id=arguments.cluster_id)
            _run(config, is_ephemeral=arguments.ephemeral, remove=remove, log_level=arguments.log_level)
    except UsageError as error:
        print_error(str(error))
        return 2
    except (ConfigError, InvalidConfig, StartError, OSError) as error:
        print_error(str(error))
        return 1
    return 0


def _run(config: NodeConfig, *, is_ephemeral: bool, remove: Callable[[], None], log_level: str) -> None:
    from ottla.node.main import run

    unreachable = unreachable_note(config)
    for note in (*config.notes, *([unreachable] if unreachable else [])):
        print(f"Note: {note}.", file=sys.stderr)

    def announce(bootstrap: str) -> None:
        try:
            print(announcement(bootstrap, config, is_ephemeral=is_ephemeral), flush=True)
        except BrokenPipeError:
            # stdout is closed: keep running, and avoid an error when the interpreter flushes it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    with RecoveryBar() as bar:
        run(
            config,
            on_serving=lambda node: announce(node.bootstrap),
            on_second_signal=remove,
            log_level=log_level,
            on_recovery_progress=bar.update if sys.stderr.isatty() else None,
        )


class RecoveryBar:
    """Progress of log recovery on a terminal. Fast starts show no bar."""

    def __init__(self) -> None:
        self._bar: ProgressBar | None = None
        self._started_at = time.monotonic()

    def update(self, progress: "RecoveryProgress") -> None:
        if progress.logs == progress.logs_total:
            self._end()
        elif self._bar is not None:
            status = f"{progress.logs} of {progress.logs_total}, {progress.read_bytes / 1e6:,.0f} MB read"
            self._bar.update(progress.logs, status)
        elif time.monotonic() - self._started_at > RECOVERY_BAR_SECONDS_MIN:
            self._bar = ProgressBar("recovering logs", progress.logs_total)
            self._bar.__enter__()

    def _end(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self._end()


def announcement(bootstrap: str, config: NodeConfig, *, is_ephemeral: bool) -> str:
    """Return the text printed once the node accepts connections. It never contains a command that deletes data."""
    directories = ", ".join(config.log_dirs)
    lines = [
        f"Ottla {__version__} listening on {bootstrap}",
        f"  data    {directories}{' (removed at exit)' if is_ephemeral else ''}",
        "  stop    Ctrl-C",
    ]
    if is_ephemeral:
        lines.append("  reset   start again")
    elif config.log_dirs == (os.path.abspath(DEFAULT_DATA),):
        lines.append(f"  reset   stop it, then delete {DEFAULT_DATA}")
    ottla = "python -m ottla" if os.path.basename(sys.argv[0]) == "__main__.py" else "ottla"
    option = "" if bootstrap == f"{DEFAULT_HOST}:{DEFAULT_PORT}" else f" --bootstrap {bootstrap}"
    lines += ["  try it  in another terminal:", "", TRY_IT.format(ottla=ottla, option=option), ""]
    return "\n".join(lines)


def unreachable_note(config: NodeConfig) -> str | None:
    """Return a warning if other machines can connect, but are then sent to this machine's loopback address."""
    for listener in config.listeners:
        if is_wildcard(listener.host) and is_loopback(listener.advertised_host):
            return (
                f"{listener} accepts clients from other machines but advertises {listener.advertised_host}, which they "
                "cannot reach; set --advertise or advertised.listeners"
            )
    return None


@contextmanager
def _data_directory(*, is_ephemeral: bool) -> Iterator[tuple[str | None, Callable[[], None]]]:
    """Provide a temporary directory if `is_ephemeral`, and a function that removes it. Removes it at the end."""
    if not is_ephemeral:
        yield None, lambda: None
        return
    from ottla.node.main import remove_abandoned_data

    remove_abandoned_data()
    directory = ephemeral_directory()

    def remove() -> None:
        remove_directory(directory)

    try:
        yield directory, remove
    finally:
        remove()
