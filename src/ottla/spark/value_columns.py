"""Common parts of the value codecs: decoded columns and errors by row."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

REASON_LENGTH_MAX = 300


class Decoded(NamedTuple):
    """A column, null in rows with errors."""

    column: Any
    errors: dict[int, str]


class Codec(Protocol):
    """Converts between bytes in one format and schema, and a column."""

    def decode(self, column: Any) -> Decoded: ...

    def encode(self, column: Any) -> Any: ...


def decode_each(column: Any, arrow_type: Any, read: Callable[[bytes], Any]) -> Decoded:
    """Decode row by row. `read` converts bytes to a value of the Arrow type, or raises."""
    import pyarrow as pa

    errors: dict[int, str] = {}
    found: list[Any] = []
    for index, data in enumerate(column.to_pylist()):
        value = None
        if data is not None:
            try:
                value = read(data)
            except Exception as error:  # parsers raise arbitrary exceptions on malformed input
                errors[index] = reason(error)
        found.append(value)
    try:
        return Decoded(pa.array(found, arrow_type), errors)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _find_mismatches(found, arrow_type, errors)


def _find_mismatches(found: list[Any], arrow_type: Any, errors: dict[int, str]) -> Decoded:
    """Find the rows that do not match the type."""
    import pyarrow as pa

    for index, value in enumerate(found):
        try:
            pa.array([value], arrow_type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            errors[index] = reason(error)
            found[index] = None
    return Decoded(pa.array(found, arrow_type), dict(sorted(errors.items())))


def reason(error: Exception) -> str:
    text = f"{error}" or type(error).__name__
    return text if len(text) <= REASON_LENGTH_MAX else text[: REASON_LENGTH_MAX - 3] + "..."


class StringCodec:
    """UTF-8 text."""

    def __init__(self, arrow_type: Any) -> None:
        self._arrow_type = arrow_type

    def decode(self, column: Any) -> Decoded:
        import pyarrow as pa

        try:
            return Decoded(column.cast(self._arrow_type), {})
        except pa.ArrowInvalid:
            return decode_each(column, self._arrow_type, lambda data: data.decode())

    def encode(self, column: Any) -> Any:
        import pyarrow as pa

        return column.cast(pa.string()).cast(pa.binary())


class ArrowIpcCodec:
    """Each value is a stream in Arrow's IPC format, a small table, so the column has lists of structs."""

    def __init__(self, arrow_type: Any) -> None:
        import pyarrow as pa

        self._arrow_type = arrow_type
        self._schema = pa.schema(list(arrow_type.value_type if pa.types.is_list(arrow_type) else arrow_type))

    def decode(self, column: Any) -> Decoded:
        import pyarrow as pa

        def read(data: bytes) -> list[Any]:
            with pa.ipc.open_stream(data) as stream:
                table = stream.read_all()
            lacking = [name for name in self._schema.names if name not in table.column_names]
            if lacking:
                raise ValueError(
                    f"it lacks columns {', '.join(lacking)}; its columns are {', '.join(table.column_names)}"
                )
            rows: list[Any] = table.select(self._schema.names).cast(self._schema).to_pylist()
            return rows

        return decode_each(column, self._arrow_type, read)

    def encode(self, column: Any) -> Any:
        """Encode structs as tables with one row."""
        import pyarrow as pa

        is_list = pa.types.is_list(self._arrow_type)
        found: list[bytes | None] = []
        for index in range(len(column)):
            if not column[index].is_valid:
                found.append(None)
                continue
            rows = column[index].values if is_list else column.slice(index, 1)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self._schema) as stream:
                stream.write_batch(pa.RecordBatch.from_struct_array(rows).cast(self._schema))
            found.append(sink.getvalue().to_pybytes())
        return pa.array(found, pa.binary())
