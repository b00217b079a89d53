"""A terminal for documentation tests: a shell that runs commands, and their output."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

END_MARK = "::done "


class Terminal:
    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._data = b""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._from = 0

    def start(self, command: str) -> None:
        """Start a command; `output` then holds what it prints."""
        assert self._shell.stdin is not None
        self._from = len(self._data)
        # With the shell's stdin, the command would read the next commands.
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null; echo '{END_MARK}'$?\n".encode())
        self._shell.stdin.flush()

    @property
    def output(self) -> str:
        """Output of the last command so far."""
        return self._data[self._from :].decode().partition(END_MARK)[0]

    def status(self) -> int | None:
        """Exit code of the last command; None while it runs."""
        status = self._data[self._from :].decode().partition(END_MARK)[2]
        return int(status) if status.endswith("\n") else None

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until `condition` holds, checking it whenever there is output; return whether it does."""
        give_up_at = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = give_up_at - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return condition()
        return True

    def close(self) -> None:
        """Interrupt the running command, and end the shell and all its processes."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        try:
            os.killpg(self._shell.pid, signal.SIGINT)
            self._shell.wait(10)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        self._reader.join(5)

    def _read(self) -> None:
        assert self._shell.stdout is not None
        while piece := os.read(self._shell.stdout.fileno(), 65536):
            with self._changed:
                self._data += piece
                self._changed.notify_all()
