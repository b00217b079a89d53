"""Batches with decoded columns, and handling of rows that cannot be decoded."""

from typing import TYPE_CHECKING, Any

from ottla.spark.errors import SourceError
from ottla.spark.options import Options
from ottla.spark.registry import FRAME, FRAME_BYTES, MAGIC, UnknownSchema, registry_at
from ottla.spark.value_columns import Decoded
from ottla.spark.values import REGISTRY_TYPES, FieldFormat, codec_for

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

HEADER_PREFIX = "ottla.error."


def error_type() -> "StructType":
    """Return the type of `errorColumn`: the field, the reason and the bytes."""
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    return StructType(
        [StructField("field", StringType()), StructField("reason", StringType()), StructField("bytes", BinaryType())]
    )


class BatchDecoder:
    """Decodes each batch of a task."""

    def __init__(self, schema: "StructType", options: Options, formats: dict[str, FieldFormat]) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._options = options
        self._formats = {name: each for name, each in formats.items() if name in self._schema.names}
        self._error_column: str | None = options["errorColumn"]

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        decoded, errors = {}, {}
        for name, given in self._formats.items():
            found = decode_field(given, batch.column(name), self._schema.field(name).type)
            decoded[name] = found.column
            for row, reason in found.errors.items():
                errors[row] = (name, reason)
        if errors and self._error_column is None and self._options["errorTopic"] is None:
            row, (name, reason) = min(errors.items())
            raise SourceError(
                f"{_record_name(batch, row)}: its {name} is not valid {self._formats[name].format}: {reason}. Set "
                "option errorColumn or errorTopic to keep such records."
            )
        arrays = []
        for field in self._schema:
            if field.name == self._error_column:
                arrays.append(_error_array(batch, errors, field.type))
            else:
                arrays.append(decoded.get(field.name) if field.name in decoded else batch.column(field.name))
        decoded_batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if errors and self._options["errorTopic"] is not None:
            self._send_to_error_topic(batch, errors)
            kept = [row not in errors for row in range(batch.num_rows)]
            decoded_batch = decoded_batch.filter(pa.array(kept))
        return decoded_batch

    def _send_to_error_topic(self, batch: Any, errors: dict[int, tuple[str, str]]) -> None:
        """Write undecodable records to the error topic and wait for acknowledgement, before their rows are dropped."""
        import pyarrow as pa

        from ottla.spark.sink_plan import DEFAULTS
        from ottla.spark.sink_task import producer_pool

        rows = sorted(errors)
        bad = batch.take(pa.array(rows))
        headers = []
        for index, row in enumerate(rows):
            name, reason = errors[row]
            details = {
                "topic": bad.column("topic")[index].as_py(),
                "partition": bad.column("partition")[index].as_py(),
                "offset": bad.column("offset")[index].as_py(),
                "field": name,
                "reason": reason,
            }
            headers.append(
                [{"key": HEADER_PREFIX + key, "value": str(value).encode()} for key, value in details.items()]
            )
        arrow_type = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        configs = tuple(sorted({**DEFAULTS, "bootstrap.servers": self._options.kafka["bootstrap.servers"]}.items()))
        producer = producer_pool().acquire(configs)
        try:
            producer.send_columns(
                self._options["errorTopic"],
                bad.column("value"),
                bad.column("key"),
                timestamps=bad.column("timestamp"),
                headers=pa.array(headers, arrow_type),
            ).result()
        except BaseException:
            producer.close(0)
            raise
        producer_pool().release(configs, producer)


def _record_name(batch: Any, row: int) -> str:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return f"The record at offset {offset} of {topic}-{partition} cannot be decoded"


def _error_array(batch: Any, errors: dict[int, tuple[str, str]], arrow_type: Any) -> Any:
    import pyarrow as pa

    if not errors:
        return pa.nulls(batch.num_rows, arrow_type)
    details: list[Any] = [None] * batch.num_rows
    for row, (name, reason) in errors.items():
        details[row] = {"field": name, "reason": reason, "bytes": batch.column(name)[row].as_py()}
    return pa.array(details, arrow_type)


# Decoding of one field


def decode_field(given: FieldFormat, column: Any, arrow_type: Any) -> Decoded:
    """Decode a column of bytes to an Arrow type."""
    if given.is_framed:
        return _decode_framed(given, column, arrow_type)
    return codec_for(given.format, arrow_type, given.schema, given.message, given.option).decode(column)


def _decode_framed(given: FieldFormat, column: Any, arrow_type: Any) -> Decoded:
    """Decode values with a schema id, grouped by schema."""
    import pyarrow as pa
    import pyarrow.compute as pc

    heads = _slice_values(column, 0, FRAME_BYTES + (1 if given.format == "protobuf" else 0)).dictionary_encode()
    names = heads.dictionary.to_pylist()
    if len(names) == 1 and not column.null_count:
        return _decode_body(given, names[0], column, arrow_type)
    rows_of = heads.indices
    pieces, row_numbers = [], []
    errors: dict[int, str] = {}
    for index, head in enumerate(names):
        rows = pc.indices_nonzero(pc.equal(rows_of, index).fill_null(False))
        found = _decode_body(given, head, column.take(rows), arrow_type)
        pieces.append(found.column)
        numbers = rows.to_pylist()
        row_numbers += numbers
        errors |= {numbers[row]: reason for row, reason in found.errors.items()}
    nulls = pc.indices_nonzero(column.is_null()).to_pylist()
    together = pa.concat_arrays([*pieces, pa.nulls(len(nulls), arrow_type)])
    order = pc.sort_indices(pa.array(row_numbers + nulls, pa.int64()))
    return Decoded(together.take(order), dict(sorted(errors.items())))


def _slice_values(column: Any, first: int, size: int | None) -> Any:
    """Return a slice of each value: from `first` on, at most `size` bytes."""
    import numpy as np

    from ottla.wire.column_fields import gather
    from ottla.wire.columns import BinaryColumn

    whole = BinaryColumn.from_arrow(column)
    sizes = np.diff(whole.offsets) - first
    if size is not None:
        sizes = np.minimum(sizes, size)
    return BinaryColumn(*gather(whole.data, whole.offsets[:-1] + first, sizes), whole.nulls).to_arrow()


def _decode_body(given: FieldFormat, head: bytes, column: Any, arrow_type: Any) -> Decoded:
    """Decode values that start with the same schema prefix."""
    import pyarrow as pa

    def all_failed(reason: str) -> Decoded:
        return Decoded(pa.nulls(len(column), arrow_type), dict.fromkeys(range(len(column)), reason))

    if len(head) < FRAME_BYTES or head[0] != MAGIC:
        return all_failed(f"it does not start with the {FRAME_BYTES}-byte schema prefix")
    _, schema_id = FRAME.unpack_from(head)
    assert given.registry is not None
    try:
        found = registry_at(given.registry).by_id(schema_id)
    except UnknownSchema as error:
        return all_failed(str(error))
    if found.schema_type != REGISTRY_TYPES[given.format]:
        return all_failed(f"its schema {schema_id} is {found.schema_type}")
    skipped = FRAME_BYTES
    if given.format == "protobuf":
        if head[FRAME_BYTES:] != b"\0":
            return all_failed("it is not the first message of its schema")
        skipped += 1
    body = _slice_values(column, skipped, None)
    if given.format == "avro" and given.schema is not None:
        from ottla.spark.values_avro import AvroCodec

        return AvroCodec(arrow_type, found.text, given.schema).decode(body)
    return codec_for(given.format, arrow_type, found.text, given.message, given.option).decode(body)
