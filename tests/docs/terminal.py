"""A terminal as a reader has it: a shell that is typed into, and all that was seen there."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

DONE = "::done "


class Terminal:
    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=directory, env=dict(environment), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._seen = b""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._from = 0

    def type(self, command: str) -> None:
        """Begin a command; what it prints is seen from here on."""
        assert self._shell.stdin is not None
        self._from = len(self._seen)
        # Without an input of its own the command would read what is typed next.
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null; echo '{DONE}'$?\n".encode())
        self._shell.stdin.flush()

    @property
    def seen(self) -> str:
        """What the last command has printed so far."""
        return self._seen[self._from :].decode().partition(DONE)[0]

    def status(self) -> int | None:
        """How the last command ended; None while it runs."""
        ended = self._seen[self._from :].decode().partition(DONE)[2]
        return int(ended) if ended.endswith("\n") else None

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Until it is so, looking whenever something was printed."""
        give_up_at = time.monotonic() + seconds
        with self._changed:
            while not is_so():
                left = give_up_at - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return is_so()
        return True

    def close(self) -> None:
        """Ctrl-C for what runs, and the end of the shell and of all that it started."""
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
                self._seen += piece
                self._changed.notify_all()
