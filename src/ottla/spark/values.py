"""Formats of keys and values: selects codecs for columns by the options of a query.

A read has the columns of records, with `key` and `value` decoded. Rows that cannot be decoded fail the query, unless
`errorColumn` or `errorTopic` is set.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.spark.options import OptionError, Options, UseCase, parse_options
from ottla.spark.registry import RegisteredSchema, registry_at, subject_of
from ottla.spark.value_columns import ArrowIpcCodec, Codec, StringCodec

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

FIELDS = ("key", "value")
REGISTRY_TYPES = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
"""Formats supported by a registry, with its names for them."""


@dataclass(frozen=True, slots=True)
class FieldFormat:
    """Format of a key or value, from the options."""

    field: str
    format: str
    schema: str | None
    message: str | None
    registry: str | None
    subject: str | None
    strategy: str
    registers: bool = False

    @property
    def option(self) -> str:
        return f"{self.field}Schema"

    @property
    def is_framed(self) -> bool:
        return self.registry is not None and self.format in REGISTRY_TYPES


def formats_of(options: Options) -> dict[str, FieldFormat]:
    """Return the fields that have a format. Raises OptionError if an option is missing."""
    found = {}
    for field in FIELDS:
        name = options[f"{field}Format"]
        if name is None:
            if options.is_given(f"{field}Schema"):
                raise OptionError(f"Option {field}Schema needs {field}Format: json, avro, protobuf or arrow-ipc.")
            continue
        found[field] = FieldFormat(
            field,
            name,
            options[f"{field}Schema"],
            options[f"{field}Message"],
            options["schemaRegistryUrl"],
            options[f"{field}Subject"],
            options["subjectStrategy"],
            bool(options["registerSchemas"]),
        )
    return found


# Reads


def source_schema(schema: "StructType", raw: Mapping[str, str]) -> "StructType":
    """Return the columns of a read. Types that are not in the options come from the registry; on the driver only."""
    from pyspark.sql.types import StructField, StructType

    from ottla.spark.value_errors import error_type

    options = parse_options(raw, UseCase.ANY_READ)
    formats = formats_of(options)
    fields = []
    for column in schema.fields:
        given = formats.get(column.name)
        fields.append(column if given is None else StructField(column.name, _source_type(given, options)))
    if options["errorColumn"] is not None:
        if options["errorTopic"] is not None:
            raise OptionError("Options errorColumn and errorTopic exclude each other; set one of them.")
        fields.append(StructField(options["errorColumn"], error_type()))
    return StructType(fields)


def _source_type(given: FieldFormat, options: Options) -> "DataType":
    if given.schema is None and given.is_framed:
        return type_of_registered(given, _latest(given, options["subscribe"]))
    return declared_type(given)


def _latest(given: FieldFormat, topics: str | None) -> RegisteredSchema:
    assert given.registry is not None
    subject = given.subject
    if subject is None:
        topic = (topics or "").strip()
        if not topic or "," in topic or given.strategy != "topicnamestrategy":
            raise OptionError(
                f"Option {given.field}Subject is missing; set the registry subject with the schema of this read."
            )
        subject = subject_of(given.strategy, topic, None, is_key=given.field == "key")
    found = registry_at(given.registry).latest(subject)
    if found.schema_type != REGISTRY_TYPES[given.format]:
        raise OptionError(
            f"Option {given.field}Format is {given.format}, and the schema of subject {subject!r} is "
            f"{found.schema_type}."
        )
    return found


def declared_type(given: FieldFormat) -> "DataType":
    """Return the type given in the options."""
    from pyspark.sql.types import ArrayType, StringType

    if given.format == "string":
        return StringType()
    text = given.schema
    if text is None:
        raise OptionError(
            f"Option {given.option} is missing; format {given.format} needs a schema or schemaRegistryUrl."
        )
    if given.format == "avro":
        from ottla.spark.values_avro import spark_type as avro_type

        return avro_type(text, given.option)
    if given.format == "protobuf":
        from ottla.spark.values_protobuf import find_message, load_set, spark_type

        return spark_type(find_message(load_set(text, given.option), given.message, given.option), given.option)
    data_type = _struct(text, given.option)
    return ArrayType(data_type) if given.format == "arrow-ipc" else data_type


def _struct(text: str, option: str) -> "StructType":
    """Parse a list of columns, or Spark's JSON schema."""
    if not text.lstrip().startswith("{"):
        from ottla.spark.values_ddl import parse_ddl

        return parse_ddl(text, option=option)
    import json

    from pyspark.sql.types import StructType

    try:
        return StructType.fromJson(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise OptionError(f"Option {option} is not a Spark schema in JSON: {error!r}.") from None


def type_of_registered(given: FieldFormat, found: RegisteredSchema) -> "DataType":
    if found.schema_type == "AVRO":
        from ottla.spark.values_avro import spark_type as avro_type

        return avro_type(found.text, given.option)
    if found.schema_type == "JSON":
        from ottla.spark.json_schema import spark_type as json_type

        return json_type(found.text, given.option)
    from ottla.spark.values_protobuf import find_message, load_set, spark_type

    return spark_type(find_message(load_set(found.text, given.option), given.message, given.option), given.option)


def batch_decoder(schema: "StructType", raw: Mapping[str, str]) -> Callable[[Any], Any]:
    """Return the decoder of a task for batches with the columns of `schema`."""
    from ottla.spark.value_errors import BatchDecoder

    options = parse_options(raw, UseCase.ANY_READ)
    return BatchDecoder(schema, options, formats_of(options))


@cache
def codec_for(format_name: str, data_type: Any, schema: str | None, message: str | None, option: str) -> Codec:
    """Return the codec of a format for an Arrow type. `schema` is the schema of the bytes, if the format has one."""
    match format_name:
        case "string":
            return StringCodec(data_type)
        case "arrow-ipc":
            return ArrowIpcCodec(data_type)
        case "json":
            from ottla.spark.values_json import JsonCodec

            return JsonCodec(data_type)
        case "avro":
            from ottla.spark.values_avro import AvroCodec

            return AvroCodec(data_type, _needed(schema, option))
        case "protobuf":
            from ottla.spark.values_protobuf import ProtobufCodec, find_message, load_set

            return ProtobufCodec(data_type, find_message(load_set(_needed(schema, option), option), message, option))
    raise AssertionError(format_name)


def _needed(schema: str | None, option: str) -> str:
    if schema is None:
        raise OptionError(f"Option {option} is missing; column types do not determine the encoding.")
    return schema


# Writes


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes a column, or several columns packed as a struct; pickled to tasks."""

    given: FieldFormat
    schema: str | None
    """Schema of the bytes, if the driver knows it."""
    columns: tuple[str, ...]
    """The field's column, or the columns that become the fields of a struct."""
    is_packed: bool
    known: tuple[str, int] | None = None
    """Topic of all rows and id of its schema, if the driver has requested it."""

    def encode(self, table: Any, topic: str) -> Any:
        """Encode columns of a `pyarrow.Table`. Raises ValueError if they do not match the schema."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.is_packed:
            arrays = [table.column(name).combine_chunks() for name in self.columns]
            fields = [table.schema.field(name) for name in self.columns]
            column = pa.StructArray.from_arrays(arrays, fields=fields)
        else:
            column = table.column(self.columns[0]).combine_chunks()
        given = self.given
        if not given.is_framed:
            return codec_for(given.format, column.type, self.schema, given.message, given.option).encode(column)
        schema_id, schema = self._registered(topic)
        data = codec_for(given.format, column.type, schema, given.message, given.option).encode(column)
        from ottla.spark.registry import FRAME, MAGIC

        head = FRAME.pack(MAGIC, schema_id) + (b"\0" if given.format == "protobuf" else b"")
        return pc.binary_join_element_wise(
            pa.scalar(head, pa.binary()), data.cast(pa.binary()), pa.scalar(b"", pa.binary())
        )

    def _registered(self, topic: str) -> tuple[int, str | None]:
        if self.known is not None and self.known[0] == topic:
            return self.known[1], self.schema
        return registered_schema(self.given, self.schema, topic)


@cache
def registered_schema(given: FieldFormat, schema: str | None, topic: str) -> tuple[int, str | None]:
    """Return id and text of the schema for writing to a topic."""
    assert given.registry is not None
    registry = registry_at(given.registry)
    is_key = given.field == "key"
    if given.registers:
        assert schema is not None
        subject = given.subject or subject_of(given.strategy, topic, _record_name(given, schema), is_key=is_key)
        return registry.register(subject, REGISTRY_TYPES[given.format], schema), schema
    name = None if schema is None else _record_name(given, schema)
    found = registry.latest(given.subject or subject_of(given.strategy, topic, name, is_key=is_key))
    if found.schema_type != REGISTRY_TYPES[given.format]:
        raise OptionError(
            f"Option {given.field}Format is {given.format}, and the schema of topic {topic!r} is {found.schema_type}."
        )
    return found.id, found.text


def _record_name(given: FieldFormat, schema: str) -> str | None:
    if given.format == "avro":
        from ottla.spark.values_avro import record_name

        return record_name(schema)
    if given.format == "json":
        import json

        title = json.loads(schema).get("title")
        return title if isinstance(title, str) else None
    return given.message


def encoders(schema: "StructType", options: Options) -> tuple[Encoder | None, Encoder | None]:
    """Return the encoders of key and value. Schemas are checked, and ids requested, where possible on the driver."""
    formats = formats_of(options)
    created = [_encoder(schema, formats[field], options["topic"]) if field in formats else None for field in FIELDS]
    return created[0], created[1]


def _encoder(schema: "StructType", given: FieldFormat, topic: str | None) -> Encoder | None:
    from pyspark.sql.types import StructField, StructType

    from ottla.spark.sink_plan import RECORD_COLUMNS

    names = {name.lower(): name for name in schema.names}
    columns: tuple[str, ...]
    if given.field in names:
        data_type: DataType = schema[names[given.field]].dataType
        columns, is_packed = (given.field,), False
    elif given.field == "key":
        return None
    else:
        rest = [
            StructField(column.name, column.dataType)
            for column in schema.fields
            if column.name.lower() not in RECORD_COLUMNS
        ]
        if not rest:
            raise OptionError("Column 'value' is missing, and no other columns could become its fields.")
        data_type, columns, is_packed = StructType(rest), tuple(field.name for field in rest), True
    text = _written_schema(given, data_type)
    known = None
    if given.is_framed and topic is not None:
        schema_id, text = registered_schema(given, text, topic)
        known = (topic, schema_id)
    return Encoder(given, text, columns, is_packed, known)


def _written_schema(given: FieldFormat, data_type: "DataType") -> str | None:
    """Return the schema of a write: the given one, or for Avro and JSON one derived from the column."""
    from pyspark.sql.types import ArrayType, StructType

    shown = data_type.simpleString()
    element = data_type.elementType if isinstance(data_type, ArrayType) else data_type
    is_struct = isinstance(element, StructType) and (data_type is element or given.format in ("arrow-ipc", "json"))
    if given.format != "string" and not is_struct:
        raise OptionError(f"Column {given.field!r} is {shown}; format {given.format} writes structs.")
    if given.format == "avro":
        from ottla.spark.values_avro import parse_avro, schema_from_spark

        if given.schema is not None:
            parse_avro(given.schema, given.option)
        return given.schema or (schema_from_spark(data_type) if given.registers or not given.is_framed else None)
    if given.format == "protobuf" and not given.is_framed:
        declared_type(given)
        return given.schema
    if given.format == "protobuf" and given.registers:
        from ottla.spark.values_protobuf import load_set, registered_file

        return registered_file(load_set(_needed(given.schema, given.option), given.option), given.message, given.option)
    if given.format == "json" and given.registers:
        from ottla.spark.json_schema import schema_from_spark as json_schema

        return (
            given.schema
            if given.schema is not None and given.schema.lstrip().startswith("{")
            else json_schema(data_type)
        )
    return None
