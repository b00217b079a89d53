"""The child side of `ChildProcesses`: runs one request after another until its parent ends.

    python -m ottla.io.child_process

Requests come on standard input, reports go to standard output. It runs with a lower CPU priority than its parent.
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
    """Return the parts, prefixed with their total length."""
    body = b"".join(parts)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def read_frames(source: BinaryIO) -> Iterator[bytes]:
    while len(head := source.read(LENGTH_BYTES)) == LENGTH_BYTES:
        yield source.read(int.from_bytes(head, "big"))


def load_work(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def main() -> None:
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # printed text must not mix with the responses
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    while True:
        _serve(requests.get(), responses)


def _read_requests(requests: "queue.SimpleQueue[bytes]") -> None:
    """Queue requests. Runs in its own thread, so that this process exits at once when its parent ends."""
    for request in read_frames(sys.stdin.buffer):
        requests.put(request)
    os._exit(0)


def _serve(request: bytes, responses: BinaryIO) -> None:
    name, _, body = request.partition(b"\n")
    try:
        started = time.monotonic()
        for step in load_work(name.decode())(RealDisk(), body):
            if isinstance(step, float):
                time.sleep(max(0.0, started + step - time.monotonic()))
                started = time.monotonic()
            else:
                responses.write(frame(REPORT, step))
    except Exception as error:
        import json  # not needed by the parent, which imports this module for its framing

        number = error.errno if isinstance(error, OSError) else None
        failure = {"errno": number, "message": str(error) if number is not None else f"{type(error).__name__}: {error}"}
        responses.write(frame(FAILED, json.dumps(failure).encode()))
    else:
        responses.write(frame(DONE))


if __name__ == "__main__":
    main()
