"""The transaction index: which transactions of a segment were aborted, so that readers of committed records can leave them out.

A `.txnindex` file is of entries in the order of the markers that ended the transactions; a segment without any has no file.
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
    """`last_offset` is that of the marker; `last_stable_offset` is what it was once the transaction had ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Marker(NamedTuple):
    """How a transaction ended."""

    is_abort: bool
    coordinator_epoch: int


def read_marker(batch: Buffer) -> Marker | None:
    """What a control batch says of a transaction; None where it says something else, or nothing since compaction has emptied it."""
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
    _, kind = _marker_key.unpack_from(record.key)
    if kind not in (ABORT, COMMIT):
        return None
    _, coordinator_epoch = _marker_value.unpack_from(record.value)
    return Marker(kind == ABORT, coordinator_epoch)


def encode(aborted: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_entry.pack(VERSION, *transaction) for transaction in aborted)


def decode(data: Buffer, path: str) -> list[AbortedTransaction]:
    """ValueError where the file cannot be one: of whole entries of version 0, whose last offsets rise."""
    if len(data) % ENTRY_BYTES:
        raise ValueError(f"{path}: {len(data)} bytes are no whole entries")
    found: list[AbortedTransaction] = []
    for version, *fields in _entry.iter_unpack(data):
        transaction = AbortedTransaction(*fields)
        if version != VERSION or transaction.first_offset > transaction.last_offset:
            raise ValueError(f"{path}: {transaction} of version {version}")
        if found and found[-1].last_offset >= transaction.last_offset:
            raise ValueError(f"{path}: {transaction} after {found[-1]}")
        found.append(transaction)
    return found
