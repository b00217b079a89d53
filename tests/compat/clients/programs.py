"""Clients in other languages: programs in `node/` and `go/` with pinned libraries, installed into a cache on first use.

`OTTLA_COMPAT_CACHE` selects another cache directory.
"""

import base64
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.compat.record import Sent

SOURCES = Path(__file__).parent
INSTALL_SECONDS_MAX = 240
PROGRAMS = {"kafkajs": ("node", "npm"), "franz-go": ("go",)}
"""Commands that each needs."""


class ProgramUnavailable(Exception):
    """A program cannot run here. The message names the missing tools."""


@functools.cache
def missing(name: str) -> str | None:
    """Return why this program cannot run here, or None if it can."""
    try:
        command(name)
    except ProgramUnavailable as reason:
        return str(reason)
    return None


@functools.cache
def command(name: str) -> tuple[str, ...]:
    """Return its command line. Installs it, one process at a time, if its sources changed."""
    absent = [tool for tool in PROGRAMS[name] if shutil.which(tool) is None]
    if absent:
        raise ProgramUnavailable(f"{name} needs {' and '.join(absent)}, not found on PATH")
    folder = SOURCES / PROGRAMS[name][0]
    sources = sorted(file for file in folder.iterdir() if file.is_file())
    version = hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in sources)).hexdigest()[:16]
    directory = _cache() / f"{name}-{version}"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "complete").exists():
            for file in sources:
                shutil.copy(file, directory)
            _install(name, directory)
            (directory / "complete").touch()
    return ("node", str(directory / "client.js")) if name == "kafkajs" else (str(directory / "client"),)


def produce(name: str, bootstrap: str, topic: str, records: Sequence[Sent], codec: str) -> dict[int, int]:
    """Send all records. Returns the first offset in each partition."""
    lines = [
        {
            "partition": record.partition,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [{"name": header, "value": _text(value)} for header, value in record.headers],
        }
        for record in records
    ]
    done = subprocess.run(
        [*command(name), "produce", bootstrap, topic, codec],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return {int(partition): offset for partition, offset in json.loads(done.stdout)["sent"].items()}


def _cache() -> Path:
    given = os.environ.get("OTTLA_COMPAT_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla-compat"


def _install(name: str, directory: Path) -> None:
    words = (
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        if name == "kafkajs"
        else ["go", "build", "-o", "client", "."]
    )
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS_MAX,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ProgramUnavailable(
            f"{name} could not be installed in {INSTALL_SECONDS_MAX} s: {' '.join(words)}"
        ) from None
    if done.returncode:
        raise ProgramUnavailable(
            f"{name} could not be installed: {' '.join((done.stdout + done.stderr).split())[-500:]}"
        )


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
