"""The headers of many record batches as NumPy columns."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ottla.wire.batches import CODEC_MASK, CONTROL_BIT, LENGTH_OVERHEAD, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)


class BatchTable:
    """One row per batch; the batches of each partition are consecutive."""

    def __init__(self, headers: bytes, batches_of_partitions: Sequence[int]) -> None:
        """Parse the concatenated headers, given how many batches each partition has."""
        found = np.frombuffer(headers, _HEADER)
        attributes = found["attributes"].astype(np.int64)
        self.codec: Column = attributes & CODEC_MASK
        self.is_control: Mask = attributes & CONTROL_BIT != 0
        self.is_transactional: Mask = attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) != 0
        """Batches of transactions, and the markers that end them."""
        self.base_offset = found["base_offset"].astype(np.int64)
        self.last_offset = self.base_offset + found["last_offset_delta"]
        self.count = found["count"].astype(np.int64)
        self.size = found["length"].astype(np.int64) + LENGTH_OVERHEAD
        self.leader_epoch = found["leader_epoch"].astype(np.int32)
        self.producer_id = found["producer_id"].astype(np.int64)
        self.is_append_time = (attributes & LOG_APPEND_TIME_BIT != 0).astype(np.int8)
        self.timestamp = np.where(self.is_append_time, found["max_timestamp"], found["base_timestamp"]).astype(np.int64)
        """Base of the timestamp deltas; with log append time it is the timestamp of all records."""
        self.partition = np.repeat(np.arange(len(batches_of_partitions), dtype=np.int32), batches_of_partitions)
        self.bounds = [0, *np.cumsum(batches_of_partitions).tolist()]
        """Index of the first row of each partition, and the number of rows."""

    def next_offsets(self, fetch_offsets: Sequence[int]) -> list[int]:
        """Return the offset after the last batch of each partition, or its fetch offset if it has none."""
        found = np.array(fetch_offsets, np.int64)
        np.maximum.at(found, self.partition, self.last_offset + 1)
        return found.tolist()  # type: ignore[no-any-return]

    def last_epochs(self) -> list[int]:
        """Return the leader epoch of the last batch of each partition; -1 if it has none."""
        found = np.full(len(self.bounds) - 1, -1)
        found[self.partition] = self.leader_epoch  # the last assignment wins
        return found.tolist()
