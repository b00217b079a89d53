"""Parts of many JSON documents at once: the text of some fields, of all entries of maps, and of elements of arrays.

Quotes, brackets, colons and commas are found in all documents together; their depth is a running sum. The documents
must be valid, so parse them before. Rare forms, such as escapes in field names, raise NotParsed.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]

QUOTE, BACKSLASH, COLON, COMMA = (each for each in b'"\\:,')
OPENING, CLOSING = tuple(b"{["), tuple(b"}]")


class Tokens(NamedTuple):
    """Structural bytes outside of strings, and quotes."""

    lines: Any
    at: "Positions"
    kinds: Any
    depths: Any
    """Depth after each token: 1 within a document."""
    backslashes: "Positions"


class Pieces(NamedTuple):
    """Fields, or elements without names: where name and value are, and in which row."""

    rows: "Positions"
    name_starts: "Positions"
    name_ends: "Positions"
    starts: "Positions"
    ends: "Positions"


def cut_fields(lines: Any, rows: int, names: list[str]) -> list[Any]:
    """Return a text column for each name: the field's value in every document, or null."""
    import numpy as np

    from ottla.spark.json_tables import NotParsed

    tokens = _tokens(lines)
    fields = _fields(tokens, 1, rows)
    sizes = fields.name_ends - fields.name_starts
    columns = []
    for name in names:
        text = np.frombuffer(name.encode(), np.uint8)
        same = np.flatnonzero(sizes == len(text))
        for index, byte in enumerate(text.tolist()):
            same = same[lines[fields.name_starts[same] + index] == byte]
        its_rows = fields.rows[same]
        if (np.diff(its_rows) == 0).any():
            raise NotParsed(f"a document has field {name} twice")
        starts, lengths = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        starts[its_rows] = fields.starts[same]
        lengths[its_rows] = fields.ends[same] - fields.starts[same]
        is_null = np.ones(rows, bool)
        is_null[its_rows] = False
        columns.append(_texts(lines, starts, lengths, is_null))
    return columns


def cut_entries(lines: Any, rows: int) -> tuple[Any, Any, Any]:
    """Return for documents `{"v": {...}}` the number of entries of each, and the text of all names and values."""
    import numpy as np

    from ottla.spark.json_tables import NotParsed

    tokens = _tokens(lines)
    _check_opening(tokens, rows, OPENING[0])
    found = _fields(tokens, 2, rows)
    names = _texts(lines, found.name_starts, found.name_ends - found.name_starts)
    encoded = names.dictionary_encode()
    names_count = max(len(encoded.dictionary), 1)
    which = found.rows * names_count + encoded.indices.to_numpy()
    is_dense = rows * names_count < 8 * len(which)  # counting is faster than sorting
    if len(which) and (np.bincount(which).max() > 1 if is_dense else len(np.unique(which)) != len(which)):
        raise NotParsed("an object has a field twice")
    values = _texts(lines, found.starts, found.ends - found.starts)
    return np.bincount(found.rows, minlength=rows), names, values


def cut_elements(lines: Any, rows: int) -> tuple[Any, Any]:
    """Return for documents `{"v": [...]}` the number of elements of each, and the text of all elements."""
    import numpy as np

    tokens = _tokens(lines)
    _check_opening(tokens, rows, OPENING[1])
    is_inner = tokens.depths == 2
    starts_at = np.flatnonzero(is_inner & ((tokens.kinds == OPENING[1]) | (tokens.kinds == COMMA)))
    ends_at = np.flatnonzero(
        (is_inner & (tokens.kinds == COMMA)) | ((tokens.depths == 1) & (tokens.kinds == CLOSING[1]))
    )
    starts, ends = tokens.at[starts_at] + 1, tokens.at[ends_at]
    row_of = np.cumsum((tokens.depths == 1) & (tokens.kinds == OPENING[0]))[starts_at] - 1
    text = _texts(lines, starts, ends - starts)
    # The only element of an empty array is blank.
    is_blank = _is_blank(lines, starts, ends)
    keep = ~is_blank
    import pyarrow as pa

    return np.bincount(row_of[keep], minlength=rows), text.filter(pa.array(keep)) if is_blank.any() else text


def _is_blank(lines: Any, starts: "Positions", ends: "Positions") -> Any:
    import numpy as np

    spaces = np.zeros(len(lines) + 1, np.int64)
    np.cumsum((lines == b" "[0]) | (lines == b"\t"[0]) | (lines == b"\r"[0]), out=spaces[1:])
    return spaces[ends] - spaces[starts] == ends - starts


def _check_opening(tokens: Tokens, rows: int, kind: int) -> None:
    """Raise NotParsed unless the value of every document is an object, or an array."""
    import numpy as np

    from ottla.spark.json_tables import NotParsed

    opened = tokens.kinds[(tokens.depths == 2) & np.isin(tokens.kinds, OPENING)]
    if len(opened) != rows or (opened != kind).any():
        raise NotParsed("a value is not of its type")


def _tokens(lines: Any) -> Tokens:
    import numpy as np

    from ottla.spark.json_tables import NotParsed

    is_token = np.zeros(256, bool)
    is_token[[QUOTE, BACKSLASH, COLON, COMMA, *OPENING, *CLOSING]] = True
    at = np.flatnonzero(is_token[lines])
    kinds = lines[at]
    is_backslash = kinds == BACKSLASH
    backslashes = at[is_backslash]
    if len(backslashes):
        keep = ~is_backslash
        keep &= ~((kinds == QUOTE) & np.isin(at, _escaped(backslashes), assume_unique=True))
        at, kinds = at[keep], kinds[keep]
    is_quote = kinds == QUOTE
    is_outside = np.cumsum(is_quote.view(np.int8), dtype=np.int8) & 1 == 0  # the parity survives overflows
    keep = is_quote | is_outside
    at, kinds = at[keep], kinds[keep]
    steps = np.zeros(256, np.int8)
    steps[list(OPENING)], steps[list(CLOSING)] = 1, -1
    depths = np.cumsum(steps[kinds], dtype=np.int32)
    if len(depths) and depths[-1] != 0:
        raise NotParsed("a document is not valid")
    return Tokens(lines, at, kinds, depths, backslashes)


def _escaped(backslashes: "Positions") -> "Positions":
    """Return the positions after runs of an odd number of backslashes."""
    import numpy as np

    is_start = np.diff(backslashes, prepend=-2) != 1
    starts = backslashes[is_start]
    ends = backslashes[np.append(np.flatnonzero(is_start)[1:] - 1, len(backslashes) - 1)]
    return ends[(ends - starts) % 2 == 0] + 1


def _fields(tokens: Tokens, depth: int, rows: int) -> Pieces:
    """Return all fields of the objects at a depth, in order."""
    import numpy as np

    from ottla.spark.json_tables import NotParsed

    at, kinds, depths = tokens.at, tokens.kinds, tokens.depths
    is_here = depths == depth
    colons = np.flatnonzero(is_here & (kinds == COLON))
    closing = np.flatnonzero((depths == depth - 1) & (kinds == CLOSING[0]))
    closing = closing[kinds[closing - 1] != OPENING[0]]  # empty objects have no field
    ends = np.sort(np.concatenate([np.flatnonzero(is_here & (kinds == COMMA)), closing]))
    documents = np.cumsum((depths == 1) & (kinds == OPENING[0]), dtype=np.int32)
    if len(colons) != len(ends) or int(documents[-1]) != rows:
        raise NotParsed("a document is not valid")
    name_starts, name_ends = at[colons - 2] + 1, at[colons - 1]
    if len(tokens.backslashes) and len(name_starts):
        before = np.maximum(np.searchsorted(name_starts, tokens.backslashes, side="right") - 1, 0)
        if ((tokens.backslashes >= name_starts[before]) & (tokens.backslashes < name_ends[before])).any():
            raise NotParsed("a field's name has an escape")
    return Pieces(documents[colons].astype(np.int64) - 1, name_starts, name_ends, at[colons] + 1, at[ends])


def _texts(lines: Any, starts: "Positions", sizes: "Positions", is_null: Any = None) -> Any:
    from ottla.wire.column_fields import gather
    from ottla.wire.columns import BinaryColumn

    offsets, data = gather(lines, starts, sizes)
    return BinaryColumn(offsets, data, is_null if is_null is not None and is_null.any() else None).to_arrow("string")
