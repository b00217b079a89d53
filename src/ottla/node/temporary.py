"""Where data goes that need not stay: shared memory where there is some, else where temporary files go."""

import os
import tempfile

_SHARED_MEMORY = "/dev/shm"
_FREE_BYTES_MIN = 256 << 20


def temporary_directory() -> str:
    """A new directory; whoever asked for it removes it."""
    if os.path.isdir(_SHARED_MEMORY) and os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        free = os.statvfs(_SHARED_MEMORY)
        # Containers often have a shared memory of 64 MB: a broker would soon meet its end there.
        if free.f_bavail * free.f_frsize >= _FREE_BYTES_MIN:
            return tempfile.mkdtemp(prefix="ottla-", dir=_SHARED_MEMORY)
    return tempfile.mkdtemp(prefix="ottla-")
