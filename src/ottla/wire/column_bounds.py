"""Where the records of many batches start: found for all batches at once, as the records of a batch can only be found one after another.

Records of one length stand at equal distances, and whether they do is seen from their lengths alone. So in each step every batch tells the
length of its next record, a run of such records is compared with it, and the batch goes on behind the run. Where runs are short, a batch
is looked at on its own.
"""

from typing import TYPE_CHECKING

from ottla.wire import record_boundaries
from ottla.wire.column_fields import read_varints
from ottla.wire.errors import MalformedMessage
from ottla.wire.record_scan import RECORD_BYTES_MIN
from ottla.wire.varint import read_varint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Octets = NDArray[np.uint8]
    Column = NDArray[np.int64]

CELLS_MAX = 1 << 15
"""So many lengths are compared in one step, over all batches: their positions stay in the processor's cache."""
ROW_MIN = 16
RUN_MIN = 12
"""Runs shorter than this on average do not pay: a step of Python takes as long as the comparison of eight lengths."""
SHORT_RUNS_MAX = 2
"""After so many in a row a batch is taken for one of many lengths."""
CHAIN_MIN = 40
"""Fewer records than this are walked to faster than guessed."""


def find_starts(
    octets: "Octets", data: bytes | bytearray | memoryview, starts: "Column", ends: "Column", counts: "Column"
) -> "Column":
    """The positions of all records of batches that stand at `starts` to `ends`; MalformedMessage where they do not fill them."""
    import numpy as np

    if bool((counts * RECORD_BYTES_MIN > ends - starts).any()):
        raise MalformedMessage("a batch is too short for its records")
    first_row = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), np.int64)
    batch = np.flatnonzero(counts > 0)
    position, row, left = starts[batch].copy(), first_row[batch], counts[batch].copy()
    patience = np.full(len(batch), SHORT_RUNS_MAX)
    while len(batch):
        sizes, after = read_varints(octets, position)
        steps = sizes + (after - position)
        if bool((sizes < RECORD_BYTES_MIN - 1).any()):
            raise MalformedMessage("a record that is shorter than its fields")
        width = min(max(CELLS_MAX // len(batch), ROW_MIN), int(left.max()))
        across = np.arange(width)
        cells = np.add(position[:, None], steps[:, None] * across, dtype=np.int64)
        same = across < left[:, None]
        for index in range(int((after - position).max())):
            same &= (octets.take(cells + index, mode="clip") == octets.take(position + index, mode="clip")[:, None]) | (
                after - position <= index
            )[:, None]
        runs = np.where(same.all(axis=1), width, same.argmin(axis=1))
        taken = across < runs[:, None]
        found[(row[:, None] + across)[taken]] = cells[taken]
        position, row, left = position + runs * steps, row + runs, left - runs
        if bool((position > ends[batch]).any()):
            raise MalformedMessage("a record is cut off by the end of its batch")
        patience = np.where(runs < RUN_MIN, patience - 1, SHORT_RUNS_MAX)
        is_done = left == 0
        if bool((position[is_done] != ends[batch[is_done]]).any()):
            raise MalformedMessage("there are bytes behind the last record of a batch")
        goes_on = (left > 0) & (patience >= 0)
        if not goes_on.all():
            for at in np.flatnonzero((left > 0) & (patience < 0)).tolist():
                _find_rest(data, int(position[at]), int(ends[batch[at]]), found[int(row[at]) : int(row[at] + left[at])])
            batch, position, row, left, patience = (
                batch[goes_on],
                position[goes_on],
                row[goes_on],
                left[goes_on],
                patience[goes_on],
            )
    return found


def _find_rest(data: bytes | bytearray | memoryview, position: int, end: int, found: "Column") -> None:
    """The rest of one batch, whose records have many lengths: their starts are guessed and proved, or else walked to."""
    if len(found) >= CHAIN_MIN:
        import numpy as np

        try:
            bounds = record_boundaries.find_bounds(np, memoryview(data)[position:end], len(found))
        except (record_boundaries.FastPathMiss, IndexError):
            _walk(data, position, end, found)
            return
        np.add(bounds[:-1], position, out=found)
        return
    _walk(data, position, end, found)


def _walk(data: bytes | bytearray | memoryview, position: int, end: int, found: "Column") -> None:
    """The rest of one batch, record by record: 0.1 µs each."""
    places: list[int] = []
    append = places.append
    try:
        for _ in range(len(found)):
            append(position)
            low = data[position]
            if low < 128:
                position += 1 + (low >> 1)
            elif (high := data[position + 1]) < 128:
                position += 2 + ((low & 127 | high << 7) >> 1)
            else:
                size, position = read_varint(data, position)
                if size < 0:
                    raise MalformedMessage("a record of negative length")
                position += size
    except IndexError:
        raise MalformedMessage("a record is cut off by the end of its batch") from None
    if position != end:
        raise MalformedMessage(f"the records of a batch end {abs(end - position)} bytes away from its end")
    found[:] = places
