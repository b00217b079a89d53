"""Where data goes that need not stay: shared memory where there is some, else where temporary files go.

`tempfile` and `shutil` are slow to import, for their random names and archives, so that they are used only where nothing else will do.
"""

import os

_SHARED_MEMORY = "/dev/shm"
_FREE_BYTES_MIN = 256 << 20


def temporary_directory() -> str:
    """A new directory; whoever asked for it removes it."""
    if os.path.isdir(_SHARED_MEMORY) and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        free = os.statvfs(_SHARED_MEMORY)
        # Containers often have a shared memory of 64 MB: a broker would soon meet its end there.
        if free.f_bavail * free.f_frsize >= _FREE_BYTES_MIN:
            path = f"{_SHARED_MEMORY}/ottla-{os.urandom(8).hex()}"
            os.mkdir(path, 0o700)
            return path
    import tempfile

    return tempfile.mkdtemp(prefix="ottla-")


def remove_directory(path: str) -> None:
    """With all that is in it; what is gone already is fine."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
