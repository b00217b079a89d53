"""Temporary data directories: in shared memory if possible, otherwise where temporary files go.

`tempfile` and `shutil` are slow to import, so they are imported only when needed.
"""

import os

_SHARED_MEMORY = "/dev/shm"
_FREE_BYTES_MIN = 256 << 20


def temporary_directory() -> str:
    """Create a directory. The caller removes it."""
    if os.path.isdir(_SHARED_MEMORY) and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        free = os.statvfs(_SHARED_MEMORY)
        # Containers often have only 64 MB of shared memory, which a broker would soon fill.
        if free.f_bavail * free.f_frsize >= _FREE_BYTES_MIN:
            path = f"{_SHARED_MEMORY}/ottla-{os.urandom(8).hex()}"
            os.mkdir(path, 0o700)
            return path
    import tempfile

    return tempfile.mkdtemp(prefix="ottla-")


def remove_directory(path: str) -> None:
    """Remove a directory tree. Missing files are ignored."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
