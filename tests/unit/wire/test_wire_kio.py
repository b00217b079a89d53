"""Cross-check with `kio`, an independent codec: the same values and bytes, for every message and version that it
supports."""

import dataclasses
import datetime
import importlib
import io
import re
import typing
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from ottla.wire.schema import Message, decode, encode

LATEST_MS = 4_102_444_800_000
"""The end of 2099. `kio` converts timestamps to dates, so they must be in the calendar."""

KNOWN_CODES = [int(code) for code in ErrorCode]


def kio_class(cls: type[Message], version: int) -> Any:
    """Return the class of `kio` for a version; None if it has none."""
    match = re.fullmatch(r"(\w+?)(Request|Response)?", cls.__name__)
    assert match is not None
    folder = re.sub(r"(?<!^)(?=[A-Z])", "_", match[1]).lower()
    module = (match[2] or "Data").lower()
    try:
        return getattr(importlib.import_module(f"kio.schema.{folder}.v{version}.{module}"), cls.__name__)
    except ModuleNotFoundError:
        return None


def adapt(ours: Any, theirs: Any, version: int, random: Random) -> None:
    """Replace values that `kio` cannot express: unknown error codes, and timestamps beyond the calendar."""
    names = [field for field in ours.FIELDS if field.in_version(version)]
    for field, other in zip(names, dataclasses.fields(theirs), strict=True):
        value, type_name = getattr(ours, field.name), other.metadata.get("kafka_type")
        if type_name == "error_code" and field.type == "i16":
            setattr(ours, field.name, random.choice(KNOWN_CODES))
        elif type_name in ("datetime_i64", "timedelta_i64"):
            setattr(ours, field.name, random.choice([0, 1, random.randrange(LATEST_MS)]))
        elif field.type == "struct" and value is not None:
            adapt(value, nested_class(other.type), version, random)
        elif field.type == "array" and not isinstance(field.item, str):
            for item in value or ():
                adapt(item, nested_class(other.type), version, random)


def nested_class(annotation: Any) -> Any:
    """Return the class of a nested entity in an annotation such as `tuple[Topic, ...] | None`."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    found = [nested_class(argument) for argument in typing.get_args(annotation)]
    return next((entity for entity in found if entity is not None), None)


def plain(value: Any) -> Any:
    """Convert a value of `kio` to a number, text or bytes."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(milliseconds=1)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    """Compare field by field. `kio` drops the unit of a duration from its name, and decodes a zero id as None."""
    if not isinstance(ours, Message):
        expected = bytes(16) if theirs is None and ours is not None else plain(theirs)
        assert ours == expected
        return
    names = [field.name for field in ours.__class__.FIELDS if field.in_version(version)]
    others = [field.name for field in dataclasses.fields(theirs)]
    for name, other in zip(names, others, strict=True):
        assert other in (name, name.removesuffix("_ms"), f"{name}_"), (name, other)
        mine, their = getattr(ours, name), getattr(theirs, other)
        if isinstance(mine, list):
            assert len(mine) == len(their)
            for one, two in zip(mine, their, strict=True):
                assert_same(one, two, version)
        else:
            assert_same(mine, their, version)


def test_kio_decodes_and_encodes_the_same(any_message: type[Message], sampler: Callable[..., Message]) -> None:
    versions = {v: kio_class(any_message, v) for v in range(any_message.MIN_VERSION, any_message.MAX_VERSION + 1)}
    known = {version: theirs for version, theirs in versions.items() if theirs is not None}
    assert known or is_record_on_disk(any_message)
    for version, theirs in known.items():
        for seed in range(6):
            random = Random(seed)
            original = sampler(any_message, version, random)
            adapt(original, theirs, version, random)
            encoded = encode(original, version)
            entity, size = entity_reader(theirs)(encoded, 0)
            assert size == len(encoded)
            assert_same(original, entity, version)
            with io.BytesIO() as buffer:
                entity_writer(theirs)(buffer, entity)
                written = buffer.getvalue()
            assert written == encoded, (version, seed)
            assert decode(any_message, version, written) == (original, len(written))


def test_kio_supports_all_other_messages(all_messages: list[type[Message]]) -> None:
    """Messages that the test above skips must be listed here."""
    unknown = {
        cls.__name__: missing
        for cls in all_messages
        if (missing := [v for v in range(cls.MIN_VERSION, cls.MAX_VERSION + 1) if kio_class(cls, v) is None])
        and not is_record_on_disk(cls)
    }
    assert unknown == {}


def is_record_on_disk(cls: type[Message]) -> bool:
    """Return whether a record is one that `kio` lacks: it has no records of the metadata log, offsets topic and
    files."""
    return cls.__module__.removeprefix("ottla.wire.records.") in ("metadata", "group", "quorum", "producer_snapshot")
