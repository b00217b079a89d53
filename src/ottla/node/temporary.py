"""Temporary data directories: in shared memory if possible, otherwise where temporary files go.

A node that is killed cannot remove its directory. A marked directory is therefore removed by the next start if its lock
is free. `tempfile` and `shutil` are slow to import, so they are imported only when needed.
"""

import os
import time

from ottla.base.ports import Disk
from ottla.node.storage import EPHEMERAL_FILE, LOCK_FILE

_SHARED_MEMORY = "/dev/shm"
_FREE_BYTES_MIN = 256 << 20


_PREFIX = "ottla-"
STARTING_SECONDS_MAX = 2.0
"""A lock file younger than this may belong to a node that has not locked it yet."""


def ephemeral_directory() -> str:
    """Create a marked directory, which the next start removes if its node is killed."""
    path = temporary_directory()
    with open(f"{path}/{EPHEMERAL_FILE}", "xb"):
        return path


def remove_abandoned_directories(disk: Disk) -> None:
    """Remove the marked directories of this user whose nodes were killed."""
    for parent in dict.fromkeys((_SHARED_MEMORY, os.environ.get("TMPDIR") or "/tmp")):
        try:
            paths = [each.path for each in os.scandir(parent) if each.name.startswith(_PREFIX)]
        except OSError:
            continue
        for path in paths:
            if os.path.exists(f"{path}/{EPHEMERAL_FILE}") and os.lstat(path).st_uid == os.getuid():
                _remove_if_unlocked(disk, path)


def _remove_if_unlocked(disk: Disk, path: str) -> None:
    file = f"{path}/{LOCK_FILE}"
    try:
        if time.time() - os.stat(file).st_mtime < STARTING_SECONDS_MAX:
            return
        lock = disk.lock(file)
    except OSError:
        return  # in use, or removed by another start
    try:
        remove_directory(path)
    finally:
        lock.release()


def temporary_directory() -> str:
    """Create a directory. The caller removes it."""
    if os.path.isdir(_SHARED_MEMORY) and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        free = os.statvfs(_SHARED_MEMORY)
        # Containers often have only 64 MB of shared memory, which a broker would soon fill.
        if free.f_bavail * free.f_frsize >= _FREE_BYTES_MIN:
            path = f"{_SHARED_MEMORY}/{_PREFIX}{os.urandom(8).hex()}"
            os.mkdir(path, 0o700)
            return path
    import tempfile

    return tempfile.mkdtemp(prefix=_PREFIX)


def remove_directory(path: str) -> None:
    """Remove a directory tree. Missing files are ignored."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
