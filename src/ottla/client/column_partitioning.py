"""Which partitions the rows of columns go to: Kafka's hash of all keys at once; rows without a key go in runs, one after another."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ottla.client.partitioner import SEED
from ottla.wire.columns import BinaryColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ottla.client.accumulator import RecordAccumulator, TopicRoute
    from ottla.wire.column_encoding import OutgoingColumns

    Column = NDArray[np.int64]
    Hashes = NDArray[np.uint32]

_M = np.uint32(0x5BD1E995)
POSITIVE = np.uint32(0x7FFF_FFFF)


def murmur2_column(keys: BinaryColumn) -> "Hashes":
    """As `partitioner.murmur2` of each; that of a null is any number.

    All keys take their steps of four bytes together, as long as they have some: keys of all lengths take as many steps as the longest.
    """
    starts, sizes = keys.offsets[:-1].astype(np.int64), np.diff(keys.offsets).astype(np.int64)
    hashes = np.uint32(SEED) ^ sizes.astype(np.uint32)
    steps = sizes >> 2
    octets = keys.data
    words: NDArray[np.uint32] = np.ndarray((max(len(octets) - 3, 0),), "<u4", octets, strides=(1,))
    chosen: Any = slice(None)
    for step in range(int(steps.max(initial=0))):
        if step >= int(steps.min()):
            chosen = np.flatnonzero(steps > step)
        word = words[starts[chosen] + 4 * step] * _M
        word ^= word >> np.uint32(24)
        hashes[chosen] = hashes[chosen] * _M ^ word * _M
    _add_rest(hashes, octets, starts + (steps << 2), sizes & 3)
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _add_rest(hashes: "Hashes", octets: "NDArray[np.uint8]", at: "Column", rest: "Column") -> None:
    """The last one to three bytes of the keys whose length is no multiple of four."""
    for index in (2, 1, 0):
        chosen = np.flatnonzero(rest > index)
        hashes[chosen] ^= octets[at[chosen] + index].astype(np.uint32) << np.uint32(8 * index)
    chosen = np.flatnonzero(rest > 0)
    hashes[chosen] *= _M


def key_partitions(keys: BinaryColumn, count: int) -> "NDArray[np.int32]":
    """Where keys go among so many partitions."""
    return ((murmur2_column(keys) & POSITIVE) % np.uint32(count)).astype(np.int32)


def choose_partitions(
    accumulator: "RecordAccumulator",
    route: "TopicRoute",
    rows: "OutgoingColumns",
    sizes: "Column",
    given: "NDArray[np.int32] | None",
) -> "NDArray[np.int32]":
    """A partition for each row: the one that is given (-1: none is), else by the key, else the one that unkeyed rows go to now."""
    settings = accumulator.settings
    chosen = np.full(len(rows), -1, np.int32) if given is None else given.astype(np.int32)
    is_open = chosen < 0
    if not is_open.any():
        return chosen
    if settings.partitioner is not None:
        return _call_partitioner(accumulator, route, rows, chosen)
    if rows.keys is not None and not settings.ignores_keys:
        has_key = is_open if rows.keys.nulls is None else is_open & ~rows.keys.nulls
        hashed = key_partitions(rows.keys, route.count)
        if has_key.all():
            return hashed
        chosen = np.where(has_key, hashed, chosen)
        is_open &= ~has_key
    at = np.flatnonzero(is_open)
    if len(at):
        chosen[at] = accumulator.assign_unkeyed(route, np.cumsum(sizes[at]))
    return chosen


def _call_partitioner(
    accumulator: "RecordAccumulator", route: "TopicRoute", rows: "OutgoingColumns", chosen: "NDArray[np.int32]"
) -> "NDArray[np.int32]":
    """A partitioner of the user's is asked row by row."""
    partitioner = accumulator.settings.partitioner
    assert partitioner is not None
    nothing: list[bytes | None] = [None] * len(rows)
    keys = nothing if rows.keys is None else rows.keys.tolist()
    values = nothing if rows.values is None else rows.values.tolist()
    for index in np.flatnonzero(chosen < 0).tolist():
        partition = partitioner(route.name, keys[index], values[index], route.count)
        if not 0 <= partition < route.count:
            raise ValueError(f"the partitioner chose {partition} of {route.count} partitions")
        chosen[index] = partition
    return chosen
