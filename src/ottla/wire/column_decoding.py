"""Fetched record batches as columns: the one decoder of the client and of Spark's source, without work in Python for each record.

A fetch answer holds the batches of many partitions. All of them are decoded together: offsets, timestamps, and where keys, values and
headers stand. The bytes themselves are gathered when they are asked for.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ports import Buffer
from ottla.wire.batches import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    RECORDS_AT,
    TRANSACTIONAL_BIT,
    decode_records,
)
from ottla.wire.crc import crc32c
from ottla.wire.errors import MalformedMessage

if TYPE_CHECKING:
    from ottla.wire.columns import RecordColumns

OUTPUT_BYTES_MAX = 1 << 30
"""What one batch may become when it is decompressed."""
ABORT_MARKER = b"\0\0"
"""In the key of a control record, behind two bytes of a version."""


class FetchedPartition(NamedTuple):
    """The records that a fetch answer holds of one partition."""

    records: Buffer
    fetch_offset: int
    """Records before it are dropped: a broker sends whole batches."""
    aborted: Sequence[tuple[int, int]] = ()
    """Producer id and first offset of transactions that were aborted; looked at where only committed records are wanted."""


class _Batches:
    """What the headers say of the batches that are to be decoded, as lists that become columns."""

    __slots__ = ("append_time", "base_offset", "base_time", "buffers", "codec", "count", "end", "epoch", "partition", "start")

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        """Where the batch is: `start` and `end` of its records count in this one."""
        self.start: list[int] = []
        self.end: list[int] = []
        self.codec: list[int] = []
        self.count: list[int] = []
        self.base_offset: list[int] = []
        self.base_time: list[int] = []
        self.append_time: list[bool] = []
        self.epoch: list[int] = []
        self.partition: list[int] = []


def decode_fetched(partitions: Sequence[FetchedPartition], *, read_committed: bool = False, check_crcs: bool = True,
                   output_max: int = OUTPUT_BYTES_MAX) -> "RecordColumns":
    """The records of all partitions of one fetch answer, in their order; MalformedMessage where a batch is damaged.

    Batches that are cut off by the end, control batches, records before the offset that was asked for and, where only committed ones are
    wanted, those of aborted transactions are left out; `next_offsets` of the result stand behind all that was seen.
    """
    batches = _Batches()
    next_offsets, last_epochs = [], []
    for index, partition in enumerate(partitions):
        next_offset, epoch = _list_batches(batches, index, partition, read_committed=read_committed, check_crcs=check_crcs)
        next_offsets.append(next_offset)
        last_epochs.append(epoch)
    from ottla.wire.columns import assemble  # NumPy is loaded where there is something to decode with it

    data, starts, ends = _payloads(batches, output_max)
    return assemble(data, starts, ends, batches.count, batches.base_offset, batches.base_time, batches.append_time, batches.epoch,
                    batches.partition, [p.fetch_offset for p in partitions], next_offsets, last_epochs)


def _list_batches(batches: _Batches, index: int, fetched: FetchedPartition, *, read_committed: bool, check_crcs: bool) -> tuple[int, int]:
    """Note the batches of one partition that are to be decoded; the offset behind all of them, and the epoch of the last."""
    buffer = memoryview(fetched.records)
    position, end, next_offset, last_epoch = 0, len(buffer), fetched.fetch_offset, -1
    pending = sorted((first, producer) for producer, first in fetched.aborted) if read_committed else []
    aborted: set[int] = set()
    while end - position >= RECORDS_AT:
        (base_offset, length, epoch, magic, crc, attributes, last_delta, base_time, max_time, producer, _, _, count,
         ) = HEADER.unpack_from(buffer, position)
        if length < RECORDS_AT - LENGTH_OVERHEAD or magic != MAGIC:
            raise MalformedMessage(f"no batch of format {MAGIC} at {position}: length {length}, magic {magic}")
        after = position + length + LENGTH_OVERHEAD
        if after > end:
            break
        if check_crcs and crc32c(buffer[position + ATTRIBUTES_AT : after]) != crc:
            raise MalformedMessage(f"the batch at offset {base_offset} is not what its checksum says")
        last_offset = base_offset + last_delta
        while pending and pending[0][0] <= last_offset:
            aborted.add(pending.pop(0)[1])
        if attributes & CONTROL_BIT:
            if aborted and _is_abort(buffer[position:after]):
                aborted.discard(producer)
        elif count > 0 and last_offset >= fetched.fetch_offset and not (attributes & TRANSACTIONAL_BIT and producer in aborted):
            is_append_time = attributes & LOG_APPEND_TIME_BIT != 0
            batches.buffers.append(buffer)
            batches.start.append(position + RECORDS_AT)
            batches.end.append(after)
            batches.codec.append(attributes & CODEC_MASK)
            batches.count.append(count)
            batches.base_offset.append(base_offset)
            batches.base_time.append(max_time if is_append_time else base_time)
            batches.append_time.append(is_append_time)
            batches.epoch.append(epoch)
            batches.partition.append(index)
        next_offset = max(next_offset, last_offset + 1)
        last_epoch = epoch
        position = after
    return next_offset, last_epoch


def _is_abort(batch: Buffer) -> bool:
    """Whether a control batch ends a transaction by aborting it."""
    key = decode_records(batch)[0].key
    return key is not None and key[2:4] == ABORT_MARKER


def _payloads(batches: _Batches, output_max: int) -> tuple[Buffer, list[int], list[int]]:
    """One buffer that holds the records of all batches, and where those of each batch are in it.

    Batches of one partition that are not compressed stay where they are. All others are put side by side, which takes 0.1 ns a byte.
    """
    buffers = batches.buffers
    if not buffers:
        return b"", [], []
    if not any(batches.codec) and all(buffer is buffers[0] for buffer in buffers):
        return buffers[0], batches.start, batches.end
    pieces: list[Buffer] = []
    starts, ends, total = [], [], 0
    for buffer, start, end, codec in zip(buffers, batches.start, batches.end, batches.codec, strict=True):
        piece: Buffer = memoryview(buffer)[start:end]
        if codec:
            from ottla.wire.compression import decompress

            piece = decompress(codec, piece, output_max)
        pieces.append(piece)
        starts.append(total)
        total += len(piece)
        ends.append(total)
    return b"".join(pieces), starts, ends
