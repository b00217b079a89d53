"""Declarations match Kafka's schemas: each field, in each version, with type, default, tag and nullability."""

import re
from typing import Any

from ottla.base.ids import ZERO_UUID
from ottla.wire.fields import Field, Versions, parse_versions
from ottla.wire.schema import NEVER, Message

TYPES = {
    "bool": "boolean",
    "int8": "i8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "float64": "f64",
    "string": "string",
    "bytes": "binary",
    "records": "batches",
    "uuid": "uuid",
}
UNSTABLE = {"InitProducerIdRequest", "InitProducerIdResponse"}
"""Messages whose latest version is unstable in Kafka and not offered; it is not declared."""

Schema = dict[str, Any]


def within(versions: Versions, version: int) -> bool:
    return versions[0] <= version <= versions[1]


def expected_default(schema: Schema) -> Any:
    """Return the default of a Java field; an empty tuple stands for an empty list or a struct of defaults."""
    type_name, text = schema["type"], schema.get("default", "")
    if text == "null" or type_name == "records":
        return None
    if type_name.startswith("[]") or type_name not in TYPES:
        return ()
    if type_name == "bool":
        return text in (True, "true")
    if type_name == "string":
        return text
    if type_name == "bytes":
        return b""
    if type_name == "uuid":
        return ZERO_UUID
    return float(text or 0) if type_name == "float64" else int(str(text or 0), 0)


def expected(schema: Schema, version: int) -> dict[str, Any]:
    """Describe a field of a version in Kafka's schema."""
    type_name = schema["type"].removeprefix("[]")
    return {
        "type": TYPES.get(type_name, type_name),
        "array": schema["type"].startswith("[]"),
        "nullable": within(parse_versions(schema.get("nullableVersions", "none")), version),
        "tag": schema["tag"] if within(parse_versions(schema.get("taggedVersions", "none")), version) else None,
        "default": expected_default(schema),
        "ignorable": bool(schema.get("ignorable", False)),
    }


def declared(field: Field, version: int) -> dict[str, Any]:
    """Describe a declared field in the same way."""
    type_name = field.item if field.type in ("array", "struct") else field.type
    return {
        "type": type_name if isinstance(type_name, str) else type_name.__name__,
        "array": field.type == "array",
        "nullable": field.nullable_in(version),
        "tag": field.tag if field.tagged_in(version) else None,
        "default": field.default,
        "ignorable": field.ignorable,
    }


def compare(
    cls: type[Message], fields: list[Schema], common: dict[str, list[Schema]], versions: range, compared: list[str]
) -> None:
    """Compare the fields of a struct, in order, and of the structs inside it."""
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
        if item not in TYPES:
            compare(field.item, schema.get("fields") or common[item], common, versions, compared)


def test_declaration_matches_kafkas_schema(any_message: type[Message], kafka_schemas: dict[str, Schema]) -> None:
    schema = kafka_schemas[any_message.__name__]
    first, last = parse_versions(schema["validVersions"])
    if any_message.__name__ in UNSTABLE:
        last -= 1
    flexible = parse_versions(schema["flexibleVersions"])
    assert (first, last) == (any_message.MIN_VERSION, any_message.MAX_VERSION)
    assert (flexible[0] if flexible[1] >= flexible[0] else NEVER) == any_message.FLEXIBLE_FROM
    assert getattr(any_message, "API_KEY", None) == schema.get("apiKey")
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    compared: list[str] = []
    compare(any_message, schema["fields"], common, range(first, last + 1), compared)
    assert len(compared) >= len(any_message.FIELDS)


def test_all_metadata_records_are_declared(kafka_schemas: dict[str, Schema]) -> None:
    """An undeclared record would only be passed through."""
    from ottla.wire.records.framing import RECORD_CLASSES

    records = {name: schema["apiKey"] for name, schema in kafka_schemas.items() if schema["type"] == "metadata"}
    theirs = {
        key: name for name, key in records.items() if not name.startswith("Remote")
    }  # records of tiered storage's log
    assert {key: cls.__name__ for key, cls in RECORD_CLASSES.items()} == theirs


def test_unstable_versions_are_those_that_kafka_marks(kafka_schemas: dict[str, Schema]) -> None:
    """Once Kafka stabilizes a version it must be declared."""
    marked = {name for name, schema in kafka_schemas.items() if schema.get("latestVersionUnstable")}
    assert marked == {"InitProducerIdRequest"}
