"""Identifiers as types, and the text form of Kafka's 128-bit ids."""

import base64
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from ottla.base.ports import Rng

Uuid = NewType("Uuid", bytes)
"""Sixteen bytes, as on the wire."""

ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
METADATA_TOPIC = "__cluster_metadata"


def uuid_text(value: Uuid) -> str:
    """Return an id as Kafka writes it: URL-safe base 64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def uuid_from_text(text: str) -> Uuid:
    """Return the id of a text written by `uuid_text`; raise ValueError if it is not 16 bytes."""
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a 128-bit id in base 64")
    return Uuid(value)


def random_uuid(rng: "Rng") -> Uuid:
    """Return a version 4 id whose text does not begin with a dash, which Kafka's tools would take for an option."""
    while True:
        raw = bytearray(rng.random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        value = Uuid(bytes(raw))
        if not uuid_text(value).startswith("-"):
            return value
