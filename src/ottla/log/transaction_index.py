"""Transaction index of a segment: the aborted transactions whose markers it contains, which read_committed readers
leave out.

The entries of a `.txnindex` file are in the order of those markers. A segment without aborted transactions has no file.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from ottla.base.ports import Buffer
from ottla.wire.batches import decode_records

ENTRY_BYTES = 34
VERSION = 0
_entry = Struct(">hqqqq")

ABORT = 0
COMMIT = 1
_marker_key = Struct(">hh")
_marker_value = Struct(">hi")


class AbortedTransaction(NamedTuple):
    """`last_offset` is the marker's; `last_stable_offset` is the one after the transaction ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Marker(NamedTuple):
    """A transaction marker."""

    is_abort: bool
    coordinator_epoch: int


def read_marker(batch: Buffer) -> Marker | None:
    """Return the marker in a control batch, or None if it has another record, or none after compaction."""
    records = decode_records(batch)
    if not records:
        return None
    record = records[0]
    if (
        record.key is None
        or record.value is None
        or len(record.key) < _marker_key.size
        or len(record.value) < _marker_value.size
    ):
        return None
    _, marker_type = _marker_key.unpack_from(record.key)
    if marker_type not in (ABORT, COMMIT):
        return None
    _, coordinator_epoch = _marker_value.unpack_from(record.value)
    return Marker(marker_type == ABORT, coordinator_epoch)


def encode(aborted: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_entry.pack(VERSION, *transaction) for transaction in aborted)


def decode(data: Buffer, path: str) -> list[AbortedTransaction]:
    """Raises ValueError unless the file consists of complete entries of version 0 whose last offsets increase."""
    if len(data) % ENTRY_BYTES:
        raise ValueError(f"{path}: {len(data)} bytes are not a multiple of the entry size, {ENTRY_BYTES}")
    found: list[AbortedTransaction] = []
    for version, *fields in _entry.iter_unpack(data):
        transaction = AbortedTransaction(*fields)
        if version != VERSION or transaction.first_offset > transaction.last_offset:
            raise ValueError(f"{path}: invalid entry {transaction} of version {version}")
        if found and found[-1].last_offset >= transaction.last_offset:
            raise ValueError(f"{path}: entries out of order: {transaction} after {found[-1]}")
        found.append(transaction)
    return found
