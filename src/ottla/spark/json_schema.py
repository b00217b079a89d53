"""Conversion between JSON Schema and Spark types, as far as columns can represent it."""

import json
from typing import TYPE_CHECKING, Any

from ottla.spark.options import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


def spark_type(text: str, option: str) -> "DataType":
    """Return the Spark type of documents with a JSON schema."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise OptionError(f"Option {option} is not valid JSON: {error}.") from None
    return _to_spark(schema, option)


def _to_spark(schema: Any, option: str) -> "DataType":
    from pyspark.sql import types as t

    json_type = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(json_type, list):
        json_type = next((each for each in json_type if each != "null"), None)
    match json_type:
        case "object" if "properties" in schema:
            return t.StructType(
                [t.StructField(name, _to_spark(each, option)) for name, each in schema["properties"].items()]
            )
        case "object":
            more = schema.get("additionalProperties")
            return t.MapType(t.StringType(), _to_spark(more, option) if isinstance(more, dict) else t.StringType())
        case "array":
            return t.ArrayType(_to_spark(schema.get("items", {}), option))
        case "integer":
            return t.LongType()
        case "number":
            return t.DoubleType()
        case "boolean":
            return t.BooleanType()
        case "string":
            formats: dict[Any, type[DataType]] = {"date-time": t.TimestampType, "date": t.DateType}
            return formats.get(schema.get("format"), t.StringType)()
    raise OptionError(
        f"Option {option}: this part of the JSON schema has no single type for a column: {json.dumps(schema)[:80]}."
    )


def schema_from_spark(data_type: "DataType") -> str:
    """Return a JSON schema for documents of a column."""
    return json.dumps(_from_spark(data_type))


def _from_spark(data_type: "DataType") -> dict[str, Any]:
    from pyspark.sql import types as t

    match data_type:
        case t.StructType():
            return {
                "type": "object",
                "properties": {each.name: _from_spark(each.dataType) for each in data_type.fields},
            }
        case t.ArrayType():
            return {"type": "array", "items": _from_spark(data_type.elementType)}
        case t.MapType():
            return {"type": "object", "additionalProperties": _from_spark(data_type.valueType)}
        case t.BooleanType():
            return {"type": "boolean"}
        case t.ByteType() | t.ShortType() | t.IntegerType() | t.LongType():
            return {"type": "integer"}
        case t.FloatType() | t.DoubleType() | t.DecimalType():
            return {"type": "number"}
        case t.TimestampType() | t.TimestampNTZType():
            return {"type": "string", "format": "date-time"}
        case t.DateType():
            return {"type": "string", "format": "date"}
    return {"type": "string"}
