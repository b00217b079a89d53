"""Ids of log directories, and those that stand for none."""

from collections.abc import Sequence

from ottla.base.ids import Uuid

DIRECTORY_MIGRATING = Uuid(bytes(16))
DIRECTORY_UNASSIGNED = Uuid(bytes(15) + b"\x01")
DIRECTORY_LOST = Uuid(bytes(15) + b"\x02")
RESERVED_DIRECTORIES_MAX = 100
"""Directory ids below this number are not directories; the three above are the ones in use."""


def is_reserved_directory(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORIES_MAX


def may_be_online(directory: Uuid, log_dirs: Sequence[Uuid]) -> bool:
    """Whether a replica's directory is one that its broker has, or is not known yet; a broker without any is of before there were ids."""
    if is_reserved_directory(directory):
        return directory != DIRECTORY_LOST
    return not log_dirs or directory in log_dirs
