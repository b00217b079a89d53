"""Fields of many records read as columns: the same field of all records at once, wherever the records are in a buffer.

The functions take and return positions. A position after the end of the buffer reads the buffer's last byte instead of
failing: callers compare where the last field ends with where the record ends.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.wire.errors import MalformedMessage
from ottla.wire.varint import VARINT_BYTES_MAX, VARLONG_BYTES_MAX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Octets = NDArray[np.uint8]
    Column = NDArray[np.int64]

DENSE_SHARE = 5
"""If one number in so many has more than one byte, the second byte is read for all of them."""


class HeadFields(NamedTuple):
    """The first fields of records: length, attributes, timestamp delta and offset delta."""

    ends: "Column"
    attributes_at: "Column"
    timestamp_deltas: "Column"
    after_timestamp: "Column"
    offset_deltas: "Column"
    after_offset: "Column"


class BodyFields(NamedTuple):
    """The other fields of records: key, value and header count. Sizes are negative for nulls."""

    key_sizes: "Column"
    key_starts: "Column"
    value_sizes: "Column"
    value_starts: "Column"
    header_counts: "Column"
    headers_at: "Column"
    """Position after the header count, which is the end of a record without headers."""


class HeaderFields(NamedTuple):
    """The n-th header of all records that have so many."""

    rows: "Column"
    """Which records these are."""
    key_sizes: "Column"
    key_starts: "Column"
    value_sizes: "Column"
    value_starts: "Column"
    ends: "Column"


def read_head_fields(octets: "Octets", starts: "Column") -> HeadFields:
    """Read the fields up to the offset delta of the records at these positions."""
    sizes, attributes_at = read_varints(octets, starts)
    timestamp_deltas, after_timestamp = read_varints(octets, attributes_at + 1, VARLONG_BYTES_MAX)
    offset_deltas, after_offset = read_varints(octets, after_timestamp)
    return HeadFields(
        attributes_at + sizes, attributes_at, timestamp_deltas, after_timestamp, offset_deltas, after_offset
    )


def read_body_fields(octets: "Octets", at: "Column") -> BodyFields:
    """Read the fields from the key to the header count; `at` is where the keys' lengths are."""
    key_sizes, key_starts, at = skip_bytes(octets, at)
    value_sizes, value_starts, at = skip_bytes(octets, at)
    return BodyFields(key_sizes, key_starts, value_sizes, value_starts, *read_varints(octets, at))


def each_header(octets: "Octets", counts: "Column", at: "Column") -> Iterator[HeaderFields]:
    """Yield the first header of all records that have one, then the second, and so on."""
    import numpy as np

    rows, index = np.flatnonzero(counts), 0
    at = at[rows]
    while len(rows):
        key_sizes, key_starts, at = skip_bytes(octets, at)
        value_sizes, value_starts, at = skip_bytes(octets, at)
        yield HeaderFields(rows, key_sizes, key_starts, value_sizes, value_starts, at)
        index += 1
        has_more = counts[rows] > index
        rows, at = rows[has_more], at[has_more]


def read_varints(octets: "Octets", at: "Column", bytes_max: int = VARINT_BYTES_MAX) -> "tuple[Column, Column]":
    """Return the signed number at each position, and the positions after them.

    Raises MalformedMessage for a number of more bytes, and drops the bits that overflow, as `read_varint` does.
    """
    import numpy as np

    first = octets.take(at, mode="clip")
    after = at + 1
    goes_on = first > 127
    longer = int(np.count_nonzero(goes_on))
    if not longer:
        return _unzigzag_bytes(first), after
    value = (first & 127).astype(np.uint64)
    index = 1
    which: Any
    if longer == len(first):
        which = slice(None)
    elif DENSE_SHARE * longer > len(first):
        # Many go on: reading a second byte for all is faster than selecting those that have one.
        second = octets.take(after, mode="clip")
        value += ((second & 127) * goes_on).astype(np.uint64) << np.uint64(7)
        after += goes_on
        which = np.flatnonzero(goes_on & (second > 127))
        index = 2
    else:
        which = np.flatnonzero(goes_on)
    # From here on only the numbers that go on are read; often they are few.
    while isinstance(which, slice) or len(which):
        if index == bytes_max:
            raise MalformedMessage(f"varint is longer than {bytes_max} bytes")
        byte = octets.take(after[which], mode="clip")
        value[which] |= (byte & 127).astype(np.uint64) << np.uint64(7 * index)
        after[which] += 1
        index += 1
        goes_on = byte > 127
        if not goes_on.all():
            which = np.flatnonzero(goes_on) if isinstance(which, slice) else which[goes_on]
    if index == VARINT_BYTES_MAX == bytes_max:
        value &= np.uint64(0xFFFF_FFFF)
    signed: Column = ((value >> np.uint64(1)) ^ -(value & np.uint64(1))).view(np.int64)
    return signed, after


def _unzigzag_bytes(first: "Octets") -> "Column":
    import numpy as np

    return (first >> 1).astype(np.int64) ^ -(first & 1).astype(np.int64)


def skip_bytes(octets: "Octets", at: "Column") -> "tuple[Column, Column, Column]":
    """Return of byte strings with a length before them: sizes (-1 where null), where their bytes start, and the
    positions after them."""
    import numpy as np

    sizes, starts = read_varints(octets, at)
    if int(sizes.min(initial=0)) >= 0:
        return sizes, starts, starts + sizes
    return sizes, starts, starts + np.maximum(sizes, 0)


def gather(octets: "Octets", starts: "Column", sizes: "Column") -> "tuple[Column, Octets]":
    """Concatenate pieces of a buffer; return where each begins (and the last one ends), and the bytes.

    Negative sizes count as 0.
    """
    import numpy as np

    sizes = np.maximum(sizes, 0)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    total = int(offsets[-1])
    if not total:
        return offsets, np.empty(0, np.uint8)
    smallest, largest = int(sizes.min()), int(sizes.max())
    if smallest == largest:
        return offsets, _windows(octets, largest)[starts].view(np.uint8)
    target = np.empty(total, np.uint8)
    copy_pieces(octets, starts, target, offsets[:-1], sizes)
    return offsets, target


def copy_pieces(source: "Octets", starts: "Column", target: "Octets", targets_at: "Column", sizes: "Column") -> None:
    """Copy pieces of one buffer to positions in another. Sizes below one are skipped.

    A piece of 2**k to 2**(k + 1) bytes is copied as two blocks of 2**k bytes, the first and the last, which may
    overlap. So there is one step per power of two, not one per size.
    """
    import numpy as np

    if not len(sizes):
        return
    largest = int(sizes.max())
    if largest < 1:
        return
    if int(sizes.min()) == largest:
        _windows(target, largest)[targets_at] = _windows(source, largest)[starts]
        return
    powers = np.frexp(np.maximum(sizes, 0).astype(np.float64))[1] - 1  # -1 for size 0: frexp(0) is 0 * 2**0
    for power in np.flatnonzero(np.bincount(powers + 1)) - 1:
        if power < 0:
            continue
        chosen = np.flatnonzero(powers == power)
        width = 1 << int(power)
        sources, targets = _windows(source, width), _windows(target, width)
        from_here, to_here = starts[chosen], targets_at[chosen]
        targets[to_here] = sources[from_here]
        rest = sizes[chosen] - width
        targets[to_here + rest] = sources[from_here + rest]


def _windows(octets: "Octets", width: int) -> "NDArray[Any]":
    """Return a view whose item i is the `width` bytes from i on; the items overlap."""
    import numpy as np

    if width == 1:
        return octets
    count = len(octets) - width + 1
    return np.ndarray((max(count, 0),), f"V{width}", octets, strides=(1,))
