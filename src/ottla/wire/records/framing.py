"""Framing of metadata records: frame version, API key and record version as varints, then the body."""

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
"""Every supported record of the metadata log, by API key."""


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """An unsupported record, for example of a newer Kafka, which is passed through. `data` is its body."""

    api_key: int
    version: int
    data: bytes


def encode_metadata_record(record: Message | UnknownRecord, version: int) -> bytes:
    """Encode the value of a metadata record; an unknown record is encoded to its original bytes."""
    if isinstance(record, UnknownRecord):
        key, version, body = record.api_key, record.version, record.data
    else:
        key, body = record.API_KEY, encode(record, version)
    return b"".join((unsigned_varint(FRAME_VERSION), unsigned_varint(key), unsigned_varint(version), body))


def decode_metadata_record(buffer: Buffer) -> Message | UnknownRecord:
    """Decode the value of a metadata record. Raises MalformedMessage if it is not exactly one record."""
    frame_version, position = read_unsigned_varint(buffer, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(
            f"unsupported frame version {frame_version} of a metadata record; only {FRAME_VERSION} is supported"
        )
    api_key, position = read_unsigned_varint(buffer, position)
    version, position = read_unsigned_varint(buffer, position)
    cls = RECORD_CLASSES.get(api_key)
    if cls is None or not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        return UnknownRecord(api_key, version, bytes(buffer[position:]))
    record, end = decode(cls, version, buffer, position)
    if end != len(buffer):
        raise MalformedMessage(f"{len(buffer) - end} bytes after the end of a {cls.__name__}")
    return record
