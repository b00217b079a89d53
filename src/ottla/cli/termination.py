"""SIGTERM, which `timeout` and `docker stop` send, ends a command as Ctrl-C does: it commits and leaves its group."""

import signal
import threading
from types import FrameType, TracebackType

TERMINATED = 143
"""Exit code after SIGTERM, as shells report it."""


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


class TerminationHandler:
    """Raises `Terminated` in the main thread on SIGTERM, unless the parent process ignores the signal."""

    def __enter__(self) -> None:
        self._previous: object = signal.SIG_IGN
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.getsignal(signal.SIGTERM)
        if self._previous == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _raise_terminated)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise_terminated(number: int, frame: FrameType | None) -> None:
    raise Terminated
