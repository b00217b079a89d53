"""Avro: conversion between schemas and Spark types, and values encoded and decoded with fastavro."""

import io
import json
from typing import TYPE_CHECKING, Any

from ottla.spark.options import OptionError
from ottla.spark.value_columns import Decoded, decode_each

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

RECORD_NAME = "Record"
"""Name of schemas derived from columns, which have no name."""


def fastavro_module() -> Any:
    try:
        import fastavro
    except ImportError:
        raise OptionError("Format avro needs fastavro: pip install 'ottla[avro]'.") from None
    return fastavro


class AvroCodec:
    """`written` is the schema of the bytes. `wanted` may be another version: defaults and aliases apply as in Avro."""

    def __init__(self, data_type: Any, written: str, wanted: str | None = None) -> None:
        self._fastavro = fastavro_module()
        self._kind = data_type
        self._written = parse_avro(written, "schema")
        self._wanted = parse_avro(wanted, "schema") if wanted is not None and wanted != written else None

    def decode(self, column: Any) -> Decoded:
        read, written, wanted = self._fastavro.schemaless_reader, self._written, self._wanted
        data_type = self._kind

        def one(data: bytes) -> Any:
            source = io.BytesIO(data)
            value = read(source, written, wanted)
            left = len(data) - source.tell()
            if left:
                raise ValueError(f"{left} bytes after the value")
            return _pairs(value, data_type)

        return decode_each(column, data_type, one)

    def encode(self, column: Any) -> Any:
        import pyarrow as pa

        write, schema = self._fastavro.schemaless_writer, self._written
        found: list[bytes | None] = []
        for value in column.to_pylist(maps_as_pydicts="strict"):
            if value is None:
                found.append(None)
                continue
            sink = io.BytesIO()
            write(sink, schema, value)
            found.append(sink.getvalue())
        return pa.array(found, pa.binary())


def _pairs(value: Any, data_type: Any) -> Any:
    """Convert maps to pairs, which Arrow requires within structs and lists."""
    import pyarrow as pa

    if value is None or not pa.types.is_nested(data_type):
        return value
    if pa.types.is_struct(data_type):
        if not isinstance(value, dict):
            return value
        return {field.name: _pairs(value.get(field.name), field.type) for field in data_type}
    if pa.types.is_map(data_type):
        return [(name, _pairs(each, data_type.item_type)) for name, each in value.items()]
    return [_pairs(each, data_type.value_type) for each in value]


def parse_avro(text: str, option: str) -> Any:
    """Parse a schema with fastavro. Raises OptionError if it is invalid."""
    fastavro = fastavro_module()
    try:
        return fastavro.parse_schema(json.loads(text))
    except (ValueError, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise OptionError(f"Option {option} is not an Avro schema: {error}.") from None


def record_name(text: str) -> str | None:
    """Return the full name of a record schema."""
    schema = json.loads(text)
    if not isinstance(schema, dict) or "name" not in schema:
        return None
    name: str = schema["name"]
    return name if "." in name or not schema.get("namespace") else f"{schema['namespace']}.{name}"


# Avro schemas and Spark types


def spark_type(text: str, option: str) -> "DataType":
    """Return the Spark type of an Avro schema, as Spark's own Avro reader does."""
    parse_avro(text, option)
    return _to_spark(json.loads(text), {}, option)


def _to_spark(schema: Any, names: dict[str, Any], option: str) -> "DataType":
    from pyspark.sql import types as t

    if isinstance(schema, list):
        kinds = [each for each in schema if each != "null"]
        if len(kinds) == 1:
            return _to_spark(kinds[0], names, option)
        if sorted(map(str, kinds)) == ["int", "long"]:
            return t.LongType()
        if sorted(map(str, kinds)) == ["double", "float"]:
            return t.DoubleType()
        raise OptionError(
            f"Option {option}: a union of {len(kinds)} types has no column type; only a type and null, or two "
            "numeric types, can be a column."
        )
    if isinstance(schema, str):
        simple: dict[str, type[DataType]] = {
            "boolean": t.BooleanType, "int": t.IntegerType, "long": t.LongType, "float": t.FloatType,
            "double": t.DoubleType,
            "string": t.StringType, "bytes": t.BinaryType, "null": t.NullType,
        }  # fmt: skip
        if schema in simple:
            return simple[schema]()
        found = names.get(schema) or names.get(schema.rpartition(".")[2])
        if found is None:
            raise OptionError(f"Option {option}: the schema is recursive ({schema!r}), which columns cannot represent.")
        return _to_spark(found, {}, option) if not isinstance(found, t.DataType) else found
    return _complex_to_spark(schema, names, option)


def _complex_to_spark(schema: dict[str, Any], names: dict[str, Any], option: str) -> "DataType":
    from pyspark.sql import types as t

    logical = schema.get("logicalType")
    if logical == "decimal":
        return t.DecimalType(schema["precision"], schema.get("scale", 0))
    by_logical: dict[Any, type[DataType]] = {
        "timestamp-millis": t.TimestampType, "timestamp-micros": t.TimestampType,
        "local-timestamp-millis": t.TimestampNTZType,
        "local-timestamp-micros": t.TimestampNTZType, "date": t.DateType, "uuid": t.StringType,
    }  # fmt: skip
    if logical in by_logical:
        return by_logical[logical]()
    match schema["type"]:
        case "record" | "error":
            fields = [
                t.StructField(field["name"], _to_spark(field["type"], names, option)) for field in schema["fields"]
            ]
            created = t.StructType(fields)
            names[schema["name"].rpartition(".")[2]] = created
            return created
        case "array":
            return t.ArrayType(_to_spark(schema["items"], names, option))
        case "map":
            return t.MapType(t.StringType(), _to_spark(schema["values"], names, option))
        case "enum":
            names[schema["name"].rpartition(".")[2]] = t.StringType()
            return t.StringType()
        case "fixed":
            names[schema["name"].rpartition(".")[2]] = t.BinaryType()
            return t.BinaryType()
        case other:
            return _to_spark(other, names, option)


def schema_from_spark(data_type: "DataType") -> str:
    """Return a schema for columns. All fields are nullable."""
    return json.dumps(_from_spark(data_type, RECORD_NAME))


def _from_spark(data_type: "DataType", name: str) -> Any:
    from pyspark.sql import types as t

    match data_type:
        case t.StructType():
            fields = [
                {
                    "name": each.name,
                    "type": ["null", _from_spark(each.dataType, f"{name}_{each.name}")],
                    "default": None,
                }
                for each in data_type.fields
            ]
            return {"type": "record", "name": name, "fields": fields}
        case t.ArrayType():
            return {"type": "array", "items": ["null", _from_spark(data_type.elementType, name + "_item")]}
        case t.MapType():
            return {"type": "map", "values": ["null", _from_spark(data_type.valueType, name + "_value")]}
        case t.DecimalType():
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": data_type.precision,
                "scale": data_type.scale,
            }
    simple: dict[type[DataType], Any] = {
        t.BooleanType: "boolean", t.ByteType: "int", t.ShortType: "int", t.IntegerType: "int", t.LongType: "long",
        t.FloatType: "float",
        t.DoubleType: "double", t.StringType: "string", t.BinaryType: "bytes",
        t.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
        t.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
        t.DateType: {"type": "int", "logicalType": "date"},
    }  # fmt: skip
    if type(data_type) not in simple:
        raise OptionError(f"A column of {data_type.simpleString()} cannot be represented in Avro.")
    return simple[type(data_type)]
