"""The headers of many batches as columns."""

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
    """One row for each batch of some partitions, which stand one after another."""

    def __init__(self, headers: bytes, batches_of_partitions: Sequence[int]) -> None:
        """The bytes of all headers, and how many of them each partition has."""
        found = np.frombuffer(headers, _HEADER)
        attributes = found["attributes"].astype(np.int64)
        self.codec: Column = attributes & CODEC_MASK
        self.is_control: Mask = attributes & CONTROL_BIT != 0
        self.is_of_transactions: Mask = attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) != 0
        """Their records and the markers at their ends."""
        self.base_offset = found["base_offset"].astype(np.int64)
        self.last_offset = self.base_offset + found["last_offset_delta"]
        self.count = found["count"].astype(np.int64)
        self.size = found["length"].astype(np.int64) + LENGTH_OVERHEAD
        self.leader_epoch = found["leader_epoch"].astype(np.int32)
        self.producer_id = found["producer_id"].astype(np.int64)
        self.is_append_time = (attributes & LOG_APPEND_TIME_BIT != 0).astype(np.int8)
        self.timestamp = np.where(self.is_append_time, found["max_timestamp"], found["base_timestamp"]).astype(np.int64)
        """What those of the records are counted from: with append time it is that of all of them."""
        self.partition = np.repeat(np.arange(len(batches_of_partitions), dtype=np.int32), batches_of_partitions)
        self.bounds = [0, *np.cumsum(batches_of_partitions).tolist()]
        """Where the rows of each partition begin, and where the last ones end."""

    def next_offsets(self, fetch_offsets: Sequence[int]) -> list[int]:
        """Where each partition goes on behind its batches."""
        found = np.array(fetch_offsets, np.int64)
        np.maximum.at(found, self.partition, self.last_offset + 1)
        return found.tolist()  # type: ignore[no-any-return]

    def last_epochs(self) -> list[int]:
        """Of the last batch of each partition; -1 where it has none."""
        found = np.full(len(self.bounds) - 1, -1)
        found[self.partition] = self.leader_epoch  # where there are several, the last one stays
        return found.tolist()
