"""JSON documents as columns: all at once if possible (see `json_tables`), otherwise document by document."""

import json
from decimal import Context
from typing import Any

from ottla.spark.json_tables import NotParsed, is_parsed_at_once, parse_documents
from ottla.spark.value_columns import Decoded, decode_each

EACH_MAX = 32
"""Up to this many documents are parsed one by one."""


DECIMALS = Context(prec=76)
"""Enough digits to round to any decimal column."""


class Number(float):
    """A number with its text, which is exact for decimals."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> "Number":
        created = super().__new__(cls, text)
        created.text = text
        return created

    text: str


class JsonCodec:
    """JSON objects as structs. Unknown fields are ignored, missing ones are null."""

    def __init__(self, arrow_type: Any) -> None:
        self._kind = arrow_type
        self._is_parsed_at_once = is_parsed_at_once(arrow_type)
        self._is_lenient = False

    def decode(self, column: Any) -> Decoded:
        """Decode documents. Invalid ones are found by bisection, so that one of them does not slow down all others."""
        if not self._is_parsed_at_once or not len(column):
            return self.decode_each(column)
        if not column.null_count:
            return self._decode_halves(column)
        import numpy as np
        import pyarrow as pa

        is_valid = column.is_valid().to_numpy(zero_copy_only=False)
        found = self.decode(column.drop_null())
        rows = np.flatnonzero(is_valid).tolist()
        whole = found.column.take(pa.array(np.cumsum(is_valid) - 1, mask=~is_valid))
        return Decoded(whole, {rows[index]: why for index, why in found.errors.items()})

    def decode_each(self, column: Any) -> Decoded:
        return decode_each(column, self._kind, lambda data: from_json(json.loads(data, parse_float=Number), self._kind))

    def _decode_halves(self, column: Any) -> Decoded:
        try:
            found, self._is_lenient = parse_documents(column, self._kind, is_lenient=self._is_lenient)
        except NotParsed:
            return self._decode_smaller(column)
        return Decoded(found, {})

    def _decode_smaller(self, column: Any) -> Decoded:
        """Decode a column that contains an invalid document: its halves, or one document after another."""
        import pyarrow as pa

        if len(column) <= EACH_MAX:
            return self.decode_each(column)
        middle = len(column) // 2
        left, right = self._decode_halves(column[:middle]), self._decode_halves(column[middle:])
        errors = left.errors | {middle + index: why for index, why in right.errors.items()}
        return Decoded(pa.concat_arrays([left.column, right.column]), errors)

    def encode(self, column: Any) -> Any:
        """Encode documents, without null fields."""
        import pyarrow as pa

        return as_text(column).cast(pa.binary())


def from_json(value: Any, arrow_type: Any) -> Any:
    """Convert a parsed document for Arrow: timestamps, dates, decimals and bytes are strings in JSON.

    Raises ValueError.
    """
    import pyarrow as pa

    is_type = pa.types
    if value is None:
        return None
    if is_type.is_struct(arrow_type):
        if not isinstance(value, dict):
            raise ValueError(f"{_short(value)} is not an object")
        return {field.name: from_json(value.get(field.name), field.type) for field in arrow_type}
    if is_type.is_list(arrow_type):
        if not isinstance(value, list):
            raise ValueError(f"{_short(value)} is not an array")
        return [from_json(each, arrow_type.value_type) for each in value]
    if is_type.is_map(arrow_type):
        if not isinstance(value, dict):
            raise ValueError(f"{_short(value)} is not an object")
        return [(name, from_json(each, arrow_type.item_type)) for name, each in value.items()]
    return _scalar(value, arrow_type)


def _scalar(value: Any, arrow_type: Any) -> Any:
    import base64
    import datetime
    import decimal

    import pyarrow as pa

    is_type = pa.types
    if is_type.is_string(arrow_type):
        return value if isinstance(value, str) else json.dumps(value)
    if is_type.is_boolean(arrow_type) != isinstance(value, bool):
        raise ValueError(f"{_short(value)} is not {arrow_type}")
    if is_type.is_timestamp(arrow_type) and isinstance(value, str):
        found = datetime.datetime.fromisoformat(value)
        return found if found.tzinfo is not None or arrow_type.tz is None else found.replace(tzinfo=datetime.UTC)
    if is_type.is_date(arrow_type) and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if is_type.is_decimal(arrow_type):
        exact = decimal.Decimal(value.text if isinstance(value, Number) else str(value))
        return exact.quantize(decimal.Decimal(1).scaleb(-arrow_type.scale), context=DECIMALS)
    if is_type.is_binary(arrow_type) and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if is_type.is_integer(arrow_type) and not isinstance(value, int):
        raise ValueError(f"{_short(value)} is not an integer")
    if is_type.is_floating(arrow_type):
        return float(value)
    return value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else text[:37] + "..."


# Encoding to text


def as_text(column: Any) -> Any:
    """Return a column with the JSON text of each value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type, is_type = column.type, pa.types
    if is_type.is_struct(arrow_type):
        return _struct_text(column)
    if is_type.is_list(arrow_type) or is_type.is_large_list(arrow_type):
        return _list_text(column, as_text(column.flatten()).fill_null("null"), "[", "]")
    if is_type.is_map(arrow_type):
        return _map_text(column)
    if is_type.is_boolean(arrow_type) or is_type.is_integer(arrow_type):
        return column.cast(pa.string())
    if is_type.is_floating(arrow_type):
        text = column.cast(pa.string())
        return pc.if_else(pc.is_finite(column), text, quoted(text))
    if is_type.is_decimal(arrow_type):
        return column.cast(pa.string())
    if is_type.is_timestamp(arrow_type):
        text = pc.strftime(column.cast(pa.timestamp("ms", arrow_type.tz), safe=False), format="%Y-%m-%dT%H:%M:%S")
        return quoted(text if arrow_type.tz is None else pc.binary_join_element_wise(text, "Z", ""))
    if is_type.is_date(arrow_type) or is_type.is_string(arrow_type) or is_type.is_large_string(arrow_type):
        return quoted(column.cast(pa.string()))
    if is_type.is_binary(arrow_type) or is_type.is_large_binary(arrow_type):
        import base64

        return pa.array(
            [None if each is None else '"' + base64.b64encode(each).decode() + '"' for each in column.to_pylist()],
            pa.string(),
        )
    raise ValueError(f"JSON cannot represent {arrow_type}")


def quoted(column: Any) -> Any:
    """Quote and escape text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(column, r'[\x00-\x1f"\\]'), min_count=0).as_py():
        if pc.any(pc.match_substring_regex(column, r"[\x00-\x09\x0b\x0c\x0e-\x1f]"), min_count=0).as_py():
            return pa.array(
                [None if each is None else json.dumps(each, ensure_ascii=False) for each in column.to_pylist()],
                pa.string(),
            )
        for raw, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            column = pc.replace_substring(column, raw, escaped)
    return pc.binary_join_element_wise('"', column, '"', "")


def _struct_text(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = []
    for index, field in enumerate(column.type):
        name = json.dumps(field.name, ensure_ascii=False) + ":"
        parts.append(pc.binary_join_element_wise(name, as_text(column.field(index)), ",", "").fill_null(""))
    # Remove the last comma. No value ends with one.
    inner = (
        pc.ascii_rtrim(pc.binary_join_element_wise(*parts, ""), characters=",") if parts else pa.repeat("", len(column))
    )
    text = pc.binary_join_element_wise("{", inner, "}", "")
    return pc.if_else(column.is_valid(), text, pa.scalar(None, pa.string())) if column.null_count else text


def _list_text(column: Any, elements: Any, opening: str, closing: str) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False), out=offsets[1:])
    lists = pa.ListArray.from_arrays(pa.array(offsets), elements)
    text = pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")
    return pc.if_else(column.is_valid(), text, pa.scalar(None, pa.string())) if column.null_count else text


def _map_text(column: Any) -> Any:
    """Encode maps as objects. Keys that are not strings are converted to text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        is_valid = column.is_valid().to_numpy(zero_copy_only=False)
        return _map_text(column.drop_null()).take(pa.array(np.cumsum(is_valid) - 1, mask=~is_valid))
    first, last = (column.offsets[0].as_py(), column.offsets[-1].as_py()) if len(column) else (0, 0)
    keys, items = column.keys.slice(first, last - first), column.items.slice(first, last - first)
    pairs = pc.binary_join_element_wise(quoted(keys.cast(pa.string())), as_text(items).fill_null("null"), ":")
    lists = pa.ListArray.from_arrays(pc.subtract(column.offsets, first).cast(pa.int32()), pairs)
    return pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")
