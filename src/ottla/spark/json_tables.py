"""JSON documents as columns, all at once: Arrow's parser, and column operations for the types that it does not read.

Arrow's parser reads one document per line and returns rows without positions. So each document is put on its own line,
and only documents that start and end like objects are parsed: each yields at least one row, so an equal number of rows
and lines means one row each. Maps are cut out of the documents, see `json_pieces`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.wire.columns import BinaryColumn

NEWLINE, SPACE, OPEN, CLOSE = b"\n"[0], b" "[0], b"{"[0], b"}"[0]
DECIMAL_DIGITS, EXTRA_DIGITS = 38, 12
"""Precision of Arrow's decimal128, and fractional digits beyond the column's that are read and rounded."""
LONG_FRACTION = r"(\.\d{6})\d+"
TIME_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


class NotParsed(Exception):
    """Some document must be parsed alone: it is invalid, or has a rare form."""


def parse_documents(column: Any, struct: Any, *, is_lenient: bool = False) -> tuple[Any, bool]:
    """Parse a column of documents without nulls to structs. Raises NotParsed.

    Also return whether they needed lenient parsing. The next ones likely need it too, so that the caller passes it.
    """
    import pyarrow as pa

    from ottla.wire.columns import BinaryColumn

    documents = BinaryColumn.from_arrow(column)
    if not is_lenient:
        try:
            return _parse_exact(documents, struct, is_lenient=False), False
        except pa.ArrowException:
            is_lenient = True
    try:
        return _parse_exact(documents, struct, is_lenient=True), True
    except pa.ArrowException as error:
        raise NotParsed(f"{error}") from None


def _parse_exact(documents: "BinaryColumn", struct: Any, *, is_lenient: bool) -> Any:
    """Parse documents. Raises NotParsed or ArrowException."""
    import pyarrow as pa

    from ottla.spark.json_pieces import cut_fields

    lines = _lines_of(documents)
    columns = _parse_lines(lines, len(documents), [field for field in struct if not has_map(field.type)], is_lenient)
    deep = [field for field in struct if has_map(field.type)]
    if deep:
        for field, texts in zip(deep, cut_fields(lines, len(documents), [each.name for each in deep]), strict=True):
            columns[field.name] = _parse_values(texts, field.type, is_lenient)
    return pa.StructArray.from_arrays([columns[field.name] for field in struct], fields=list(struct))


def _lines_of(documents: "BinaryColumn") -> Any:
    """Return the documents as lines, each an object."""
    import numpy as np

    from ottla.wire.column_fields import copy_pieces

    starts, sizes = documents.offsets[:-1], np.diff(documents.offsets)
    if int(sizes.min()) < 2:
        raise NotParsed("a document is empty")
    places = np.zeros(len(sizes), np.int64)
    np.cumsum(sizes[:-1] + 1, out=places[1:])
    ends = places + sizes
    lines = np.empty(int(ends[-1]) + 1, np.uint8)
    copy_pieces(documents.data, starts, lines, places, sizes)
    lines[ends] = SPACE
    lines[lines == NEWLINE] = SPACE  # equivalent between tokens, and not allowed within strings
    if not ((lines[places] == OPEN) & (lines[ends - 1] == CLOSE)).all():
        raise NotParsed("a document is not an object")
    lines[ends] = NEWLINE
    return lines


def _parse_lines(lines: Any, rows: int, fields: list[Any], is_lenient: bool) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import json as arrow_json

    schema = pa.schema([field.with_type(_parsed_type(field.type, is_lenient)) for field in fields])
    table = arrow_json.read_json(
        pa.BufferReader(pa.py_buffer(lines)),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != rows:
        raise NotParsed("a document is more than one")
    return {field.name: _converted(table.column(field.name).combine_chunks(), field.type) for field in fields}


def _parse_values(texts: Any, arrow_type: Any, is_lenient: bool) -> Any:
    """Parse a text column of JSON values, with nulls for missing ones."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from ottla.spark.json_pieces import cut_elements, cut_entries
    from ottla.wire.columns import BinaryColumn

    is_valid = pc.fill_null(pc.not_equal(pc.ascii_trim_whitespace(texts), "null"), False)
    if not pc.all(is_valid, min_count=0).as_py():
        there = texts.filter(is_valid)
        found = _parse_values(there, arrow_type, is_lenient) if len(there) else pa.nulls(0, arrow_type)
        mask = ~is_valid.to_numpy(zero_copy_only=False)
        return found.take(pa.array(np.cumsum(~mask) - 1, pa.int64(), mask=mask))
    if not len(texts):
        return pa.nulls(0, arrow_type)
    if not has_map(arrow_type):
        documents = BinaryColumn.from_arrow(pc.binary_join_element_wise('{"v":', texts, "}", ""))
        return _parse_lines(_lines_of(documents), len(texts), [pa.field("v", arrow_type)], is_lenient)["v"]
    if pa.types.is_struct(arrow_type):
        return _parse_exact(BinaryColumn.from_arrow(pc.ascii_trim_whitespace(texts)), arrow_type, is_lenient=is_lenient)
    lines = _lines_of(BinaryColumn.from_arrow(pc.binary_join_element_wise('{"v":', texts, "}", "")))
    if pa.types.is_list(arrow_type):
        counts, elements = cut_elements(lines, len(texts))
        return _list_array(arrow_type, counts, [_parse_values(elements, arrow_type.value_type, is_lenient)])
    counts, names, items = cut_entries(lines, len(texts))
    keys = names.cast(arrow_type.key_type)
    return _list_array(arrow_type, counts, [keys, _parse_values(items, arrow_type.item_type, is_lenient)])


def _list_array(arrow_type: Any, counts: Any, children: list[Any]) -> Any:
    """Return lists, or maps, of so many children each."""
    import numpy as np
    import pyarrow as pa

    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    if len(children) == 1:
        return pa.ListArray.from_arrays(pa.array(offsets), children[0], type=arrow_type)
    return pa.MapArray.from_arrays(pa.array(offsets), *children, type=arrow_type)


# Types


def is_parsed_at_once(arrow_type: Any) -> bool:
    """Whether documents of the type can be parsed all at once."""
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_struct(arrow_type):
        return arrow_type.num_fields > 0 and all(is_parsed_at_once(field.type) for field in arrow_type)
    if is_type.is_list(arrow_type):
        return is_parsed_at_once(arrow_type.value_type)
    if is_type.is_map(arrow_type):
        return bool(is_type.is_string(arrow_type.key_type)) and is_parsed_at_once(arrow_type.item_type)
    return bool(
        is_type.is_boolean(arrow_type)
        or is_type.is_integer(arrow_type)
        or is_type.is_float32(arrow_type)
        or is_type.is_float64(arrow_type)
        or is_type.is_string(arrow_type)
        or is_type.is_binary(arrow_type)
        or is_type.is_date(arrow_type)
        or is_type.is_timestamp(arrow_type)
        or is_type.is_decimal128(arrow_type)
    )


def has_map(arrow_type: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(arrow_type):
        return any(has_map(field.type) for field in arrow_type)
    if pa.types.is_list(arrow_type):
        return has_map(arrow_type.value_type)
    return bool(pa.types.is_map(arrow_type))


def _parsed_type(arrow_type: Any, is_lenient: bool) -> Any:
    """Return the type that Arrow's parser reads for a type. Lenient reading of timestamps takes longer."""
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_struct(arrow_type):
        return pa.struct([field.with_type(_parsed_type(field.type, is_lenient)) for field in arrow_type])
    if is_type.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_parsed_type(arrow_type.value_type, is_lenient)))
    if is_type.is_decimal(arrow_type):
        scale = arrow_type.scale + EXTRA_DIGITS
        if arrow_type.precision + EXTRA_DIGITS <= DECIMAL_DIGITS:
            return pa.decimal128(DECIMAL_DIGITS, scale)
        return pa.decimal256(2 * DECIMAL_DIGITS, scale)
    if is_type.is_date(arrow_type) or is_type.is_binary(arrow_type):
        return pa.string()
    if is_type.is_timestamp(arrow_type) and is_lenient:
        return pa.string()
    return arrow_type


def _converted(array: Any, arrow_type: Any) -> Any:
    """Convert a parsed column to its type. Raises ArrowInvalid if a value does not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_type = pa.types
    if array.type == arrow_type and not is_type.is_nested(arrow_type):
        return array
    if is_type.is_struct(arrow_type):
        children = [_converted(array.field(index), field.type) for index, field in enumerate(arrow_type)]
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=array.is_null())
    if is_type.is_list(arrow_type):
        values = _converted(array.values, arrow_type.value_type)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, type=arrow_type, mask=mask)
    if is_type.is_decimal(arrow_type):
        return pc.round(array, arrow_type.scale, "half_to_even").cast(arrow_type)
    if is_type.is_binary(arrow_type):
        return _from_base64(array)
    if is_type.is_timestamp(arrow_type):
        return _timestamps(array, arrow_type)
    return array.cast(arrow_type)


def _timestamps(texts: Any, arrow_type: Any) -> Any:
    """Read timestamps with more digits than microseconds, as Java writes them, and with or without a zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(texts, LONG_FRACTION, r"\1")
    has_time = pc.match_substring_regex(texts, "[T ]")
    texts = pc.if_else(has_time, texts, pc.binary_join_element_wise(texts, "T00:00:00", ""))
    has_zone = pc.match_substring_regex(texts, TIME_ZONE)
    texts = pc.if_else(has_zone, texts, pc.binary_join_element_wise(texts, "Z", ""))
    return texts.cast(pa.timestamp("us", "UTC")).cast(arrow_type)


def _from_base64(texts: Any) -> Any:
    """Decode base64, all values as one: each is a whole number of groups. Raises NotParsed."""
    import binascii

    import numpy as np
    import pyarrow as pa

    from ottla.wire.columns import BinaryColumn

    given = BinaryColumn.from_arrow(texts)
    first, last = int(given.offsets[0]), int(given.offsets[-1])
    sizes = np.diff(given.offsets)
    data = np.array(given.data[first:last])
    ends = given.offsets[1:] - first
    pads = np.zeros(len(sizes), np.int64)
    has_data = sizes > 0
    if (sizes % 4).any():
        raise NotParsed("a value is not base64")
    for back in (1, 2):  # a second pad counts only before the first
        place = np.maximum(ends - back, 0)
        pads += has_data & (pads == back - 1) & (np.take(data, place, mode="clip") == b"="[0]) if len(data) else 0
    is_pad = data == b"="[0]
    if int(is_pad.sum()) != int(pads.sum()):
        raise NotParsed("a value is not base64")
    data[is_pad] = b"A"[0]
    try:
        decoded = np.frombuffer(binascii.a2b_base64(data.tobytes(), strict_mode=True), np.uint8)
    except binascii.Error:
        raise NotParsed("a value is not base64") from None
    decoded_sizes = sizes // 4 * 3
    groups_end = np.cumsum(decoded_sizes)
    is_kept = np.ones(len(decoded), bool)
    for back in (1, 2):
        is_kept[groups_end[pads >= back] - back] = False
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(decoded_sizes - pads, out=offsets[1:])
    return BinaryColumn(offsets, decoded[is_kept], given.nulls).to_arrow().cast(pa.binary())
