"""What an error of the file system means: a disk that is full can be waited for, any other failure is a directory's end."""

import errno

FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException) -> bool:
    """Whether a write was refused for want of room only. Of a flush it says nothing: what that lost is gone, whatever the reason."""
    return isinstance(error, OSError) and error.errno in FULL


def flush_error(error: OSError, path: str) -> OSError:
    """The same, as one that nobody takes for a full disk: bytes that were written already have been lost."""
    if not is_full(error):
        return error
    return OSError(errno.EIO, f"what was written could not be put on the disk, which is full ({error.strerror})", path)
