"""Checkpoint files with one offset per partition of a data directory, in Kafka's format: version, count, one line per
partition.

Records before the offset are: on the disk (`recovery-point-offset-checkpoint`), deleted
(`log-start-offset-checkpoint`), committed (`replication-offset-checkpoint`) or compacted (`cleaner-offset-checkpoint`).
A crash leaves either the old file or the new one.
"""

from collections.abc import Mapping

from ottla.base.ports import Disk

RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
START_OFFSETS_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
CLEAN_OFFSETS_FILE = "cleaner-offset-checkpoint"

Offsets = dict[tuple[str, int], int]
"""Offset by topic name and partition index."""


def encode(offsets: Mapping[tuple[str, int], int]) -> bytes:
    lines = [f"{topic} {index} {offset}\n" for (topic, index), offset in sorted(offsets.items())]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode(data: bytes) -> Offsets:
    """Raises ValueError if the text is not a complete checkpoint of version 0."""
    version, count, *lines = data.decode().splitlines() or ["", ""]
    if version.strip() != "0" or int(count) != len(lines):
        raise ValueError(f"version {version!r} with {len(lines)} lines instead of {count}")
    entries = [line.split() for line in lines]
    if any(len(entry) != 3 for entry in entries):
        raise ValueError("a line does not consist of topic, partition and offset")
    return {(topic, int(index)): int(offset) for topic, index, offset in entries}


def read(disk: Disk, path: str) -> Offsets:
    """Return the offsets in a file, or none if it is missing. Raises ValueError if it is corrupt."""
    data = disk.read(path) if disk.exists(path) else b""
    return decode(data) if data else {}  # Kafka creates an empty file


def write(disk: Disk, path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    disk.write_atomically(path, encode(offsets))
