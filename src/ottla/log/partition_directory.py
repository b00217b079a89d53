"""The `partition.metadata` file: which topic, by id, a directory belongs to; a topic recreated under its name finds no old records."""

from ottla.base.ids import Uuid, uuid_from_text, uuid_text
from ottla.base.ports import Disk

FILE_NAME = "partition.metadata"


def write_topic_id(disk: Disk, directory: str, topic_id: Uuid) -> None:
    disk.write_atomically(f"{directory}/{FILE_NAME}", f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """None where there is no such file; ValueError where it cannot be understood."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return None
    fields = dict(line.split(": ", 1) for line in disk.read(path).decode().splitlines() if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError(f"{path}: not a partition.metadata of version 0")
    return uuid_from_text(fields["topic_id"].strip())
