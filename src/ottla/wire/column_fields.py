"""Varints and lengths read as columns: one field of many records at once, wherever the records stand in a buffer.

All of it works on positions. A position beyond the buffer reads the buffer's last byte instead of failing: whoever asks compares where
the last field ended with where the record ends, and so finds out.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Octets = NDArray[np.uint8]
    Column = NDArray[np.int64]

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
DENSE_SHARE = 5
"""From one in so many on, numbers of two bytes are read together with those of one."""


def read_varints(octets: "Octets", at: "Column", bytes_max: int = VARINT_BYTES_MAX) -> "tuple[Column, Column]":
    """The signed number at each position, and the positions after them. A number that goes on for too long is cut there."""
    import numpy as np

    first = octets.take(at, mode="clip")
    after = at + 1
    goes_on = first > 127
    longer = int(np.count_nonzero(goes_on))
    if not longer:
        return _unzigzag_bytes(first), after
    if longer == len(first):
        index, value = 1, (first & 127).astype(np.uint64)
        which: Any = slice(None)
    elif DENSE_SHARE * longer > len(first):
        # Many go on: a second byte is read for all of them, which is faster than to pick those out.
        second = octets.take(after, mode="clip")
        value = (first & 127).astype(np.uint64)
        value += ((second & 127) * goes_on).astype(np.uint64) << np.uint64(7)
        after += goes_on
        which = np.flatnonzero(goes_on & (second > 127))
        index = 2
    else:
        index, value = 1, (first & 127).astype(np.uint64)
        which = np.flatnonzero(goes_on)
    # From here on only the numbers that go on are looked at: often they are few, and the others are done.
    while index < bytes_max and (isinstance(which, slice) or len(which)):
        byte = octets.take(after[which], mode="clip")
        value[which] |= (byte & 127).astype(np.uint64) << np.uint64(7 * index)
        after[which] += 1
        index += 1
        goes_on = byte > 127
        if not goes_on.all():
            which = np.flatnonzero(goes_on) if isinstance(which, slice) else which[goes_on]
    signed: Column = ((value >> np.uint64(1)) ^ -(value & np.uint64(1))).view(np.int64)
    return signed, after


def _unzigzag_bytes(first: "Octets") -> "Column":
    import numpy as np

    return (first >> 1).astype(np.int64) ^ -(first & 1).astype(np.int64)


def skip_bytes(octets: "Octets", at: "Column") -> "tuple[Column, Column, Column]":
    """Of byte strings with their lengths before them: sizes (-1 where null), where their bytes start, and the positions after them."""
    import numpy as np

    sizes, starts = read_varints(octets, at)
    if int(sizes.min(initial=0)) >= 0:
        return sizes, starts, starts + sizes
    return sizes, starts, starts + np.maximum(sizes, 0)


def gather(octets: "Octets", starts: "Column", sizes: "Column") -> "tuple[Column, Octets]":
    """Pieces of a buffer side by side: where each begins (and the last one ends), and all their bytes. Sizes below zero count as none."""
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


def copy_pieces(source: "Octets", starts: "Column", target: "Octets", places: "Column", sizes: "Column") -> None:
    """Copy pieces from one buffer to places in another.

    A piece of 2**k to 2**(k + 1) bytes is copied as two blocks of 2**k, the first and the last, which may overlap: so pieces of all
    sizes take as many steps as there are powers of two. Sizes below one are left out.
    """
    import numpy as np

    if not len(sizes):
        return
    largest = int(sizes.max())
    if largest < 1:
        return
    if int(sizes.min()) == largest:
        _windows(target, largest)[places] = _windows(source, largest)[starts]
        return
    powers = np.frexp(np.maximum(sizes, 0).astype(np.float64))[1] - 1  # -1 where there are none: frexp(0) is 0 * 2**0
    for power in np.flatnonzero(np.bincount(powers + 1)) - 1:
        if power < 0:
            continue
        chosen = np.flatnonzero(powers == power)
        width = 1 << int(power)
        sources, targets = _windows(source, width), _windows(target, width)
        from_here, to_here = starts[chosen], places[chosen]
        targets[to_here] = sources[from_here]
        rest = sizes[chosen] - width
        targets[to_here + rest] = sources[from_here + rest]


def _windows(octets: "Octets", width: int) -> "NDArray[Any]":
    """Each run of so many bytes as one item; they overlap."""
    import numpy as np

    if width == 1:
        return octets
    count = len(octets) - width + 1
    return np.ndarray((max(count, 0),), f"V{width}", octets, strides=(1,))
