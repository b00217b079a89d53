"""Fetched record batches as columns: the one decoder of the client and of Spark's source, without work in Python for each record.

A fetch answer holds the batches of many partitions. All of them are decoded together: offsets, timestamps, and where keys, values and
headers stand. The bytes themselves are gathered when they are asked for.
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
    RECORDS_AT,
    decode_records,
)
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage

if TYPE_CHECKING:
    from ottla.wire.batch_table import BatchTable, Column, Mask
    from ottla.wire.columns import RecordColumns

OUTPUT_BYTES_MAX = 1 << 30
"""What one batch may become when it is decompressed."""
ABORT_MARKER = b"\0\0"
"""In the key of a control record, behind two bytes of a version."""

_read_frame = Struct(">8xi4xbI").unpack_from
"""A batch's length, magic and checksum."""

Aborted = Sequence[tuple[int, int]]
"""Producer id and first offset of transactions."""


class FetchedPartition(NamedTuple):
    """The records that a fetch answer holds of one partition."""

    records: Buffer
    fetch_offset: int
    """Records before it are dropped: a broker sends whole batches."""
    aborted: Aborted = ()
    """Looked at where only committed records are wanted."""


class _Listed:
    """The whole batches of some partitions, one after another."""

    __slots__ = ("buffers", "counts", "headers", "starts")

    def __init__(self) -> None:
        self.buffers: list[memoryview] = []
        """Where each batch is."""
        self.starts: list[int] = []
        self.headers: list[bytes] = []
        self.counts: list[int] = []
        """How many batches each partition has."""

    def add(self, records: Buffer, *, check_crcs: bool) -> None:
        """Those of one partition; one that is cut off by the end is left out."""
        buffer = memoryview(records)
        starts, headers = self.starts, self.headers
        position, end, listed_before = 0, len(buffer), len(starts)
        while end - position >= RECORDS_AT:
            length, magic, crc = _read_frame(buffer, position)
            if length < RECORDS_AT - LENGTH_OVERHEAD or magic != MAGIC:
                raise MalformedMessage(f"no batch of format {MAGIC} at {position}: length {length}, magic {magic}")
            after = position + length + LENGTH_OVERHEAD
            if after > end:
                break
            if check_crcs and crc32c(buffer[position + ATTRIBUTES_AT : after]) != crc:
                offset = HEADER.unpack_from(buffer, position)[0]
                raise MalformedMessage(f"the batch at offset {offset} is not what its checksum says")
            starts.append(position)
            headers.append(buffer[position : position + RECORDS_AT].tobytes())
            position = after
        count = len(starts) - listed_before
        self.counts.append(count)
        self.buffers += [buffer] * count


class FetchedBatches:
    """The batches of one fetch answer whose records are wanted; MalformedMessage where one is damaged.

    Batches that are cut off by the end, control batches, those before the offset that was asked for and, where only committed ones are
    wanted, those of aborted transactions are left out. `len()` says how many remain.
    """

    def __init__(
        self, partitions: Sequence[FetchedPartition], *, read_committed: bool = False, check_crcs: bool = True
    ) -> None:
        import numpy as np  # loaded where there is something to decode with it

        from ottla.wire.batch_table import BatchTable

        self._listed = listed = _Listed()
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
            _leave_out_aborted(chosen, table, listed, [partition.aborted for partition in partitions])
        self._rows = np.flatnonzero(chosen)
        self._sizes = table.size[self._rows]
        self._codecs = table.codec[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def compressed_bytes(self, first: int, end: int) -> int:
        """Of some of the batches, those that are not compressed left out."""
        return int(self._sizes[first:end][self._codecs[first:end] != 0].sum())

    def piece_end(self, first: int, bytes_max: int, growth: float) -> int:
        """How far batches may be decoded together, where compressed ones become so many times larger; always one at least."""
        import numpy as np

        sizes = np.where(self._codecs[first:] != 0, self._sizes[first:] * growth, self._sizes[first:])
        return first + max(int(np.searchsorted(np.cumsum(sizes), bytes_max, side="right")), 1)

    def decode(self, first: int = 0, end: int | None = None, *, output_max: int = OUTPUT_BYTES_MAX) -> "RecordColumns":
        """The records of all batches or of some, without those before the offset that was asked for. `next_offsets` of the result stand
        behind all that was fetched."""
        from ottla.wire.columns import assemble

        rows = self._rows[first:end]
        data, starts, ends = _payloads(self._listed, self._table, rows, output_max)
        return assemble(data, starts, ends, self._table, rows, self._fetch_offsets)


def decode_fetched(
    partitions: Sequence[FetchedPartition],
    *,
    read_committed: bool = False,
    check_crcs: bool = True,
    output_max: int = OUTPUT_BYTES_MAX,
) -> "RecordColumns":
    """The records of all partitions of one fetch answer, in their order."""
    return FetchedBatches(partitions, read_committed=read_committed, check_crcs=check_crcs).decode(
        output_max=output_max
    )


def _leave_out_aborted(
    chosen: "Mask", table: "BatchTable", listed: _Listed, aborted_of_partitions: list[Aborted]
) -> None:
    """A transaction that was aborted lasts from its first offset to its producer's next marker."""
    for aborted, (first, end) in zip(aborted_of_partitions, pairwise(table.bounds), strict=True):
        pending = sorted((offset, producer) for producer, offset in aborted)
        open_now: set[int] = set()
        for row in (table.is_of_transactions[first:end].nonzero()[0] + first).tolist() if pending else ():
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
    """Whether a control batch ends a transaction by aborting it."""
    key = decode_records(batch)[0].key
    return key is not None and key[2:4] == ABORT_MARKER


def _payloads(listed: _Listed, table: "BatchTable", rows: "Column", output_max: int) -> "tuple[Buffer, Column, Column]":
    """One buffer that holds the records of the batches of these rows, and where those of each batch are in it.

    Batches of one partition that are not compressed stay where they are. All others are put side by side, which takes 0.1 ns a byte.
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
