"""The other end of `ChildProcesses`: a process that does the work it is told of, one piece after another, until nobody is there to ask.

    python -m ottla.io.child_process

It reads requests from its standard input and writes reports to its standard output. It is less important than whoever asks: it takes the
processor time that others leave.
"""

import contextlib
import importlib
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from ottla.io.disk import RealDisk

NICENESS = 10
LENGTH_BYTES = 4
REPORT, DONE, FAILED = b"r", b"d", b"f"


def frame(*parts: bytes) -> bytes:
    """Parts behind their common length."""
    body = b"".join(parts)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def read_frames(source: BinaryIO) -> Iterator[bytes]:
    while len(head := source.read(LENGTH_BYTES)) == LENGTH_BYTES:
        yield source.read(int.from_bytes(head, "big"))


def work_named(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed must not come between the answers
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        _serve(requests.get(), answers)


def _listen(requests: "queue.SimpleQueue[bytes]") -> None:
    """In a thread of its own: when whoever asked is gone, however it ended, this process ends at once, whatever it does."""
    for request in read_frames(sys.stdin.buffer):
        requests.put(request)
    os._exit(0)


def _serve(request: bytes, answers: BinaryIO) -> None:
    name, _, body = request.partition(b"\n")
    try:
        began = time.monotonic()
        for step in work_named(name.decode())(RealDisk(), body):
            if isinstance(step, float):
                time.sleep(max(0.0, began + step - time.monotonic()))
                began = time.monotonic()
            else:
                answers.write(frame(REPORT, step))
    except Exception as error:
        import json  # whoever only wants the framing need not load it

        number = error.errno if isinstance(error, OSError) else None
        told = {"errno": number, "message": str(error) if number is not None else f"{type(error).__name__}: {error}"}
        answers.write(frame(FAILED, json.dumps(told).encode()))
    else:
        answers.write(frame(DONE))


if __name__ == "__main__":
    main()
