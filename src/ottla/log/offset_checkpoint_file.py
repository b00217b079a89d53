"""Offsets of many partitions in one small file of a data directory, in Kafka's format: a version, a count, a line for each partition.

Four files have it: `recovery-point-offset-checkpoint` (what lies before is on the disk), `log-start-offset-checkpoint` (what lies before
is deleted), `replication-offset-checkpoint` (what lies before is committed) and `cleaner-offset-checkpoint` (what lies before is
compacted). A crash leaves the old file or the new one.
"""

from collections.abc import Mapping

from ottla.base.ports import Disk

RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
START_OFFSETS_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
CLEAN_OFFSETS_FILE = "cleaner-offset-checkpoint"

Offsets = dict[tuple[str, int], int]
"""By the name of the topic and the index of the partition."""


def encode(offsets: Mapping[tuple[str, int], int]) -> bytes:
    lines = [f"{topic} {index} {offset}\n" for (topic, index), offset in sorted(offsets.items())]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode(data: bytes) -> Offsets:
    """ValueError where the text is not a whole checkpoint of version 0."""
    version, count, *lines = data.decode().splitlines() or ["", ""]
    if version.strip() != "0" or int(count) != len(lines):
        raise ValueError(f"version {version!r} with {len(lines)} of {count} lines")
    entries = [line.split() for line in lines]
    if any(len(entry) != 3 for entry in entries):
        raise ValueError("a line that is not of a topic, a partition and an offset")
    return {(topic, int(index)): int(offset) for topic, index, offset in entries}


def read(disk: Disk, path: str) -> Offsets:
    """What a file says, which is nothing where there is none; ValueError where it is not whole."""
    data = disk.read(path) if disk.exists(path) else b""
    return decode(data) if data else {}  # Kafka begins with an empty file


def write(disk: Disk, path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    disk.write_atomically(path, encode(offsets))
