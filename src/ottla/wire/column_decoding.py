"""Decoder of fetched record batches into columns, for the client and Spark, without Python code per record.

The batches of all partitions of a Fetch response are decoded together: offsets, timestamps, and positions and sizes of
keys, values and headers. Their bytes are gathered on first use.
"""

from collections.abc import Sequence
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ports import Buffer
from ottla.wire.batches import (
    ATTRIBUTES_AT,
    HEADER,
    LENGTH_OVERHEAD,
    MAGIC,
    OUTPUT_BYTES_MAX,
    RECORDS_AT,
    decode_records,
)
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage

if TYPE_CHECKING:
    from ottla.wire.batch_table import BatchTable, Column, Mask
    from ottla.wire.columns import RecordColumns

ABORT_MARKER = b"\0\0"
"""Type of a control record, in its key after a version of two bytes."""

_read_frame = Struct(">8xi4xbI").unpack_from
"""Reads length, magic and checksum of a batch."""

Aborted = Sequence[tuple[int, int]]
"""Producer ids and first offsets of aborted transactions."""


class FetchedPartition(NamedTuple):
    """The records of one partition in a Fetch response."""

    records: Buffer
    fetch_offset: int
    """Records before it are dropped: brokers send complete batches."""
    aborted: Aborted = ()
    """Used only if committed records are requested."""


class _BatchList:
    """Positions and headers of the complete batches of some partitions."""

    __slots__ = ("buffers", "counts", "headers", "starts")

    def __init__(self) -> None:
        self.buffers: list[memoryview] = []
        """The buffer of each batch."""
        self.starts: list[int] = []
        self.headers: list[bytes] = []
        self.counts: list[int] = []
        """Number of batches of each partition."""

    def add(self, records: Buffer, *, check_crcs: bool) -> None:
        """Add the batches of one partition, except for an incomplete one at the end."""
        buffer = memoryview(records)
        starts, headers = self.starts, self.headers
        position, end, listed_before = 0, len(buffer), len(starts)
        while end - position >= RECORDS_AT:
            length, magic, crc = _read_frame(buffer, position)
            if length < RECORDS_AT - LENGTH_OVERHEAD or magic != MAGIC:
                raise MalformedMessage(f"no record batch at position {position}: length {length}, magic {magic}")
            after = position + length + LENGTH_OVERHEAD
            if after > end:
                break
            if check_crcs and crc32c(buffer[position + ATTRIBUTES_AT : after]) != crc:
                offset = HEADER.unpack_from(buffer, position)[0]
                raise MalformedMessage(f"wrong checksum of the batch at offset {offset}")
            starts.append(position)
            headers.append(buffer[position : position + RECORDS_AT].tobytes())
            position = after
        count = len(starts) - listed_before
        self.counts.append(count)
        self.buffers += [buffer] * count


class FetchedBatches:
    """The batches of one Fetch response that contain requested records. Raises MalformedMessage if one is corrupt.

    Incomplete batches, control batches, batches before the fetch offset and, with `read_committed`, batches of aborted
    transactions are excluded. `len()` is the number of batches that remain.
    """

    def __init__(
        self, partitions: Sequence[FetchedPartition], *, read_committed: bool = False, check_crcs: bool = True
    ) -> None:
        import numpy as np  # imported on first use

        from ottla.wire.batch_table import BatchTable

        self._listed = listed = _BatchList()
        for partition in partitions:
            listed.add(partition.records, check_crcs=check_crcs)
        self._table = table = BatchTable(b"".join(listed.headers), listed.counts)
        self._fetch_offsets = [partition.fetch_offset for partition in partitions]
        chosen = (
            ~table.is_control
            & (table.count > 0)
            & (table.last_offset >= np.array(self._fetch_offsets, np.int64)[table.partition])
        )
        if read_committed:
            _exclude_aborted(chosen, table, listed, [partition.aborted for partition in partitions])
        self._rows = np.flatnonzero(chosen)
        self._sizes = table.size[self._rows]
        self._codecs = table.codec[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def compressed_bytes(self, first: int, end: int) -> int:
        """Return the total size of the compressed batches in a range."""
        return int(self._sizes[first:end][self._codecs[first:end] != 0].sum())

    def piece_end(self, first: int, bytes_max: int, growth: float) -> int:
        """Return the end of a range of batches to decode together, given how much compressed ones grow; one batch at
        least."""
        import numpy as np

        sizes = np.where(self._codecs[first:] != 0, self._sizes[first:] * growth, self._sizes[first:])
        return first + max(int(np.searchsorted(np.cumsum(sizes), bytes_max, side="right")), 1)

    def decode(self, first: int = 0, end: int | None = None, *, output_max: int = OUTPUT_BYTES_MAX) -> "RecordColumns":
        """Decode the records of all batches or of a range, without those before the fetch offset.

        `next_offsets` of the result are the offsets after all fetched batches.
        """
        from ottla.wire.columns import decode_rows

        rows = self._rows[first:end]
        data, starts, ends = _payloads(self._listed, self._table, rows, output_max)
        return decode_rows(data, starts, ends, self._table, rows, self._fetch_offsets)


def decode_fetched(
    partitions: Sequence[FetchedPartition],
    *,
    read_committed: bool = False,
    check_crcs: bool = True,
    output_max: int = OUTPUT_BYTES_MAX,
) -> "RecordColumns":
    """Decode the records of all partitions of one Fetch response, in their order."""
    return FetchedBatches(partitions, read_committed=read_committed, check_crcs=check_crcs).decode(
        output_max=output_max
    )


def _exclude_aborted(
    chosen: "Mask", table: "BatchTable", listed: _BatchList, aborted_of_partitions: list[Aborted]
) -> None:
    """Exclude aborted transactions: from the first offset of each to its producer's next marker."""
    for aborted, (first, end) in zip(aborted_of_partitions, pairwise(table.bounds), strict=True):
        pending = sorted((offset, producer) for producer, offset in aborted)
        open_now: set[int] = set()
        for row in (table.is_transactional[first:end].nonzero()[0] + first).tolist() if pending else ():
            while pending and pending[0][0] <= table.last_offset[row]:
                open_now.add(pending.pop(0)[1])
            producer = int(table.producer_id[row])
            if producer not in open_now:
                continue
            if not table.is_control[row]:
                chosen[row] = False
            elif _is_abort(listed.buffers[row][listed.starts[row] : listed.starts[row] + int(table.size[row])]):
                open_now.discard(producer)


def _is_abort(batch: Buffer) -> bool:
    """Return whether a control batch is an abort marker."""
    key = decode_records(batch)[0].key
    return key is not None and key[2:4] == ABORT_MARKER


def _payloads(
    listed: _BatchList, table: "BatchTable", rows: "Column", output_max: int
) -> "tuple[Buffer, Column, Column]":
    """Return one buffer with the records of these batches, and start and end of each batch in it.

    If the batches are of one partition and uncompressed it is their own buffer; else they are concatenated, which takes
    0.1 ns per byte.
    """
    import numpy as np

    starts = np.array(listed.starts, np.int64)[rows] + RECORDS_AT
    ends = starts - RECORDS_AT + table.size[rows]
    codecs = table.codec[rows]
    if not len(rows):
        return b"", starts, ends
    first, last = int(table.partition[rows[0]]), int(table.partition[rows[-1]])
    if first == last and not codecs.any():
        return listed.buffers[int(rows[0])], starts, ends
    pieces: list[Buffer] = []
    for row, start, end, codec in zip(rows.tolist(), starts.tolist(), ends.tolist(), codecs.tolist(), strict=True):
        piece: Buffer = listed.buffers[row][start:end]
        if codec:
            from ottla.wire.compression import decompress

            piece = decompress(codec, piece, output_max)
        pieces.append(piece)
    sizes = np.array([len(piece) for piece in pieces], np.int64)
    ends = np.cumsum(sizes)
    return b"".join(pieces), ends - sizes, ends
