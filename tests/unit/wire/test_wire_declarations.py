"""Every declaration says what Kafka's schema says: each field, in each version, with its type, default, tag and nullability."""

import re
from typing import Any

from ottla.base.ids import ZERO_UUID
from ottla.wire.fields import Field, Versions, parse_versions
from ottla.wire.schema import NEVER, Message

KINDS = {
    "bool": "boolean", "int8": "i8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
    "float64": "f64", "string": "string", "bytes": "binary", "records": "batches", "uuid": "uuid",
}  # fmt: skip
UNFINISHED = {"InitProducerIdRequest", "InitProducerIdResponse"}
"""Messages whose newest version Kafka marks as unstable and does not offer; its fields are not declared."""

Schema = dict[str, Any]


def within(versions: Versions, version: int) -> bool:
    return versions[0] <= version <= versions[1]


def expected_default(schema: Schema) -> Any:
    """What a Java field holds when nobody set it; an empty tuple stands for an empty list and a struct of defaults."""
    kind, text = schema["type"], schema.get("default", "")
    if text == "null" or kind == "records":
        return None
    if kind.startswith("[]") or kind not in KINDS:
        return ()
    if kind == "bool":
        return text in (True, "true")
    if kind == "string":
        return text
    if kind == "bytes":
        return b""
    if kind == "uuid":
        return ZERO_UUID
    return float(text or 0) if kind == "float64" else int(str(text or 0), 0)


def expected(schema: Schema, version: int) -> dict[str, Any]:
    """A field of a version as Kafka has it."""
    kind = schema["type"].removeprefix("[]")
    return {
        "kind": KINDS.get(kind, kind),
        "array": schema["type"].startswith("[]"),
        "nullable": within(parse_versions(schema.get("nullableVersions", "none")), version),
        "tag": schema["tag"] if within(parse_versions(schema.get("taggedVersions", "none")), version) else None,
        "default": expected_default(schema),
        "ignorable": bool(schema.get("ignorable", False)),
    }


def declared(field: Field, version: int) -> dict[str, Any]:
    """The same of a declared field."""
    kind = field.item if field.type in ("array", "struct") else field.type
    return {
        "kind": kind if isinstance(kind, str) else kind.__name__,
        "array": field.type == "array",
        "nullable": field.nullable_in(version),
        "tag": field.tag if field.tagged_in(version) else None,
        "default": field.default,
        "ignorable": field.ignorable,
    }


def compare(
    cls: type[Message], fields: list[Schema], common: dict[str, list[Schema]], versions: range, compared: list[str]
) -> None:
    """Compare the fields of a struct, in their order, and of the structs inside it."""
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", schema["name"]).lower(): schema for schema in fields}
    alive = {
        name: schema
        for name, schema in names.items()
        if any(within(parse_versions(schema["versions"]), v) for v in versions)
    }
    assert [field.name for field in cls.FIELDS] == list(alive), cls
    for field in cls.FIELDS:
        schema = alive[field.name]
        for version in versions:
            assert field.in_version(version) == within(parse_versions(schema["versions"]), version), (
                cls,
                field,
                version,
            )
            assert declared(field, version) == expected(schema, version), (cls, field, version)
        compared.append(f"{cls.__name__}.{field.name}")
        item = schema["type"].removeprefix("[]")
        if item not in KINDS:
            compare(field.item, schema.get("fields") or common[item], common, versions, compared)


def test_every_declaration_says_what_kafka_says(any_message: type[Message], kafka_schemas: dict[str, Schema]) -> None:
    """The whole of a message: its key, versions and fields."""
    schema = kafka_schemas[any_message.__name__]
    first, last = parse_versions(schema["validVersions"])
    if any_message.__name__ in UNFINISHED:
        last -= 1
    flexible = parse_versions(schema["flexibleVersions"])
    assert (first, last) == (any_message.MIN_VERSION, any_message.MAX_VERSION)
    assert (flexible[0] if flexible[1] >= flexible[0] else NEVER) == any_message.FLEXIBLE_FROM
    assert getattr(any_message, "API_KEY", None) == schema.get("apiKey")
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    compared: list[str] = []
    compare(any_message, schema["fields"], common, range(first, last + 1), compared)
    assert len(compared) >= len(any_message.FIELDS)


def test_every_record_of_the_metadata_log_is_declared(kafka_schemas: dict[str, Schema]) -> None:
    """A record that Kafka writes and this node cannot name would be kept unread."""
    from ottla.wire.records.framing import RECORD_CLASSES

    records = {name: schema["apiKey"] for name, schema in kafka_schemas.items() if schema["type"] == "metadata"}
    theirs = {
        key: name for name, key in records.items() if not name.startswith("Remote")
    }  # those are of the log of tiered storage
    assert {key: cls.__name__ for key, cls in RECORD_CLASSES.items()} == theirs


def test_unfinished_versions_are_the_ones_kafka_marks(kafka_schemas: dict[str, Schema]) -> None:
    """When Kafka finishes a version, the declaration must follow."""
    marked = {name for name, schema in kafka_schemas.items() if schema.get("latestVersionUnstable")}
    assert marked == {"InitProducerIdRequest"}
