"""Partition directories. Each has a `partition.metadata` file with the id of its topic, so that a topic recreated under
an old name does not adopt the records of its predecessor."""

from collections.abc import Sequence

from ottla.base.ids import Uuid, uuid_from_text, uuid_text
from ottla.base.ports import Disk

FILE_NAME = "partition.metadata"


class TopicIdMismatch(ValueError):
    """The directory holds the records of another topic."""


def create_partition_directories(disk: Disk, requested: Sequence[tuple[str, Uuid]]) -> None:
    """Create and fsync directories for new logs, each with the id of its topic. Call from a worker."""
    for directory, topic_id in requested:
        disk.make_directories(directory)
        if read_topic_id(disk, directory) is None:
            write_topic_id(disk, directory, topic_id)  # which also fsyncs the directory
    for parent in sorted({directory.rpartition("/")[0] for directory, _ in requested}):
        disk.fsync_directory(parent)


def ensure_partition_directory(disk: Disk, directory: str, topic_id: Uuid) -> None:
    """Create the directory unless it exists. Raises TopicIdMismatch if it belongs to another topic."""
    found_id = read_topic_id(disk, directory)
    if found_id is None:
        create_partition_directories(disk, [(directory, topic_id)])
    elif found_id != topic_id:
        raise TopicIdMismatch(f"{directory} belongs to topic {uuid_text(found_id)}, not {uuid_text(topic_id)}")


def write_topic_id(disk: Disk, directory: str, topic_id: Uuid) -> None:
    disk.write_atomically(f"{directory}/{FILE_NAME}", f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """Return None if there is no such file. Raises ValueError if it is not of version 0."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return None
    fields = dict(line.split(": ", 1) for line in disk.read(path).decode().splitlines() if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError(f"{path}: not a partition.metadata of version 0")
    return uuid_from_text(fields["topic_id"].strip())
