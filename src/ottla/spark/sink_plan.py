"""Planning of a write on the driver: columns, topic, configs and encoders. Errors are raised before tasks start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.spark.options import OptionError, Options, UseCase, parse_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.values import Encoder

BATCH_BYTES = 256 << 10
"""Tasks have all their rows available, so batches fill without linger; large batches cost the broker less."""
DEFAULTS = {"client.id": "ottla-spark", "batch.size": str(BATCH_BYTES)}
OWN_CONFIGS = ("key.serializer", "value.serializer", "interceptor.classes")
"""Configs that would change what the sink writes."""
RECORD_COLUMNS = ("key", "value", "topic", "partition", "headers", "timestamp")


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """Pickled to every task."""

    topic: str | None
    """Topic of all records; None to use the `topic` column."""
    kafka: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    """The used columns of RECORD_COLUMNS."""
    key: "Encoder | None" = None
    value: "Encoder | None" = None
    """Encoders of columns that are not bytes."""


def plan_sink(schema: "StructType", given: Mapping[str, str], use_case: UseCase) -> SinkPlan:
    """Plan a write. Raises OptionError if options or columns are invalid."""
    options = parse_options(given, use_case)
    columns = _by_name(schema)
    topic = options["topic"]
    if topic is not None and not topic.strip():
        raise OptionError("Option topic is empty; set a topic name.")
    if topic is None and "topic" not in columns:
        raise OptionError("No topic to write to; set option 'topic' or add a column 'topic'.")
    key, value = _encoders(schema, options)
    if value is None and "value" not in columns:
        raise OptionError(f"Column 'value' is missing; the columns are {', '.join(schema.names) or 'none'}.")
    _check_types(columns, {"key": key, "value": value})
    used = [name for name in RECORD_COLUMNS if name in columns and not (name == "topic" and topic is not None)]
    return SinkPlan(topic, _configs(options), tuple(used), key, value)


def _by_name(schema: "StructType") -> dict[str, Any]:
    """Return column types by name, ignoring case like Spark's default."""
    found: dict[str, Any] = {}
    for column in schema.fields:
        name = next((known for known in RECORD_COLUMNS if known == column.name.lower()), column.name)
        if name in found:
            raise OptionError(f"Duplicate column {name!r}.")
        found[name] = column.dataType
    return found


def _check_types(columns: dict[str, Any], encoders: "Mapping[str, Encoder | None]") -> None:
    from pyspark.sql.types import BinaryType, IntegerType, StringType, TimestampType

    expected: dict[str, tuple[tuple[type, ...], str]] = {
        "key": ((StringType, BinaryType), "string or binary"),
        "value": ((StringType, BinaryType), "string or binary"),
        "topic": ((StringType,), "string"),
        "partition": ((IntegerType,), "int"),
        "timestamp": ((TimestampType,), "timestamp"),
    }
    for name, (types, description) in expected.items():
        if name in columns and encoders.get(name) is None and not isinstance(columns[name], types):
            hint = f"; option {name}Format encodes it" if name in encoders else ""
            raise OptionError(f"Column {name!r} is {columns[name].simpleString()}, but must be {description}{hint}.")
    if "headers" in columns and not _are_headers(columns["headers"]):
        data_type = "array<struct<key:string,value:binary>>"
        raise OptionError(f"Column 'headers' is {columns['headers'].simpleString()}, but must be {data_type}.")


def _are_headers(data_type: Any) -> bool:
    from pyspark.sql.types import ArrayType, BinaryType, StringType, StructType

    if (
        not isinstance(data_type, ArrayType)
        or not isinstance(data_type.elementType, StructType)
        or len(data_type.elementType) != 2
    ):
        return False
    key, value = data_type.elementType.fields
    return (
        (key.name, value.name) == ("key", "value")
        and isinstance(key.dataType, StringType)
        and isinstance(value.dataType, BinaryType)
    )


def _encoders(schema: "StructType", options: Options) -> "tuple[Encoder | None, Encoder | None]":
    if not any(options.is_given(name) for name in ("keyFormat", "valueFormat", "keySchema", "valueSchema")):
        return None, None
    from ottla.spark.values import encoders

    return encoders(schema, options)


def _configs(options: Options) -> tuple[tuple[str, str], ...]:
    """Return the producer's configs, validated on the driver."""
    from ottla.client.errors import ConfigError
    from ottla.client.producer_config import producer_settings

    for name in OWN_CONFIGS:
        if name in options.kafka:
            raise OptionError(
                f"Option kafka.{name} cannot be set, since columns are written unchanged; see keyFormat and "
                "valueFormat."
            )
    configs = {**DEFAULTS, **options.kafka}
    try:
        producer_settings(configs, {})
    except ConfigError as error:
        raise OptionError(f"Invalid client config in the options with prefix 'kafka.': {error}") from None
    return tuple(sorted(configs.items()))
