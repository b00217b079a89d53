"""Log directory ids, and reserved ids for replicas without a directory."""

from collections.abc import Sequence

from ottla.base.ids import Uuid

DIRECTORY_MIGRATING = Uuid(bytes(16))
DIRECTORY_UNASSIGNED = Uuid(bytes(15) + b"\x01")
DIRECTORY_LOST = Uuid(bytes(15) + b"\x02")
RESERVED_DIRECTORIES_MAX = 100
"""Ids below this number are reserved; only the three above are in use."""


def is_reserved_directory(directory: Uuid) -> bool:
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORIES_MAX


def may_be_online(directory: Uuid, log_dirs: Sequence[Uuid]) -> bool:
    """Whether the broker has the replica's directory, or the directory is not known yet.

    A broker without directory ids registered with a version before directory ids.
    """
    if is_reserved_directory(directory):
        return directory != DIRECTORY_LOST
    return not log_dirs or directory in log_dirs
