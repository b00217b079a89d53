"""How a record of the metadata log is framed: a frame version, the record's key and version as varints, then its body."""

from dataclasses import dataclass

from ottla.base.ports import Buffer
from ottla.wire.errors import MalformedMessage
from ottla.wire.records import metadata
from ottla.wire.schema import Message, decode, encode
from ottla.wire.varint import read_unsigned_varint, unsigned_varint

FRAME_VERSION = 1

RECORD_CLASSES: dict[int, type[Message]] = {
    cls.API_KEY: cls
    for cls in vars(metadata).values()
    if isinstance(cls, type) and issubclass(cls, Message) and hasattr(cls, "API_KEY")
}
"""Every record of the metadata log that is understood, by its key."""


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of a newer or fuller Kafka: it is kept as it is, and not understood. `data` is its body."""

    api_key: int
    version: int
    data: bytes


def encode_metadata_record(record: Message | UnknownRecord, version: int) -> bytes:
    """The value of a record of the metadata log; an unknown record goes back to the bytes that it came from."""
    if isinstance(record, UnknownRecord):
        key, version, body = record.api_key, record.version, record.data
    else:
        key, body = record.API_KEY, encode(record, version)
    return b"".join((unsigned_varint(FRAME_VERSION), unsigned_varint(key), unsigned_varint(version), body))


def decode_metadata_record(buffer: Buffer) -> Message | UnknownRecord:
    """The record that a value of the metadata log holds; MalformedMessage if it is not one whole record."""
    frame_version, position = read_unsigned_varint(buffer, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"a metadata record in frame version {frame_version}, where {FRAME_VERSION} is known")
    api_key, position = read_unsigned_varint(buffer, position)
    version, position = read_unsigned_varint(buffer, position)
    cls = RECORD_CLASSES.get(api_key)
    if cls is None or not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        return UnknownRecord(api_key, version, bytes(buffer[position:]))
    record, end = decode(cls, version, buffer, position)
    if end != len(buffer):
        raise MalformedMessage(f"{len(buffer) - end} bytes after the end of a {cls.__name__}")
    return record
