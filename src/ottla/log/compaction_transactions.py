"""Transactions in compaction: batches of aborted ones are removed; a marker stays until no batch of its transaction is
left.

Transactions are read from the batches and not from the transaction index, because compaction must decide by what is in
the log.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.ports import Buffer, File
from ottla.log.transaction_index import AbortedTransaction, read_marker
from ottla.wire.batches import HEADER, LENGTH_OVERHEAD, RECORDS_AT, BatchHeader

HOP_BYTES = 8 << 10
"""After a larger batch only the next header is read, not a full window."""
READ_BYTES = 64 << 10

_make = BatchHeader._make


class Transactions(NamedTuple):
    """Transactions of a log up to some offset."""

    aborted: list[AbortedTransaction]
    """Sorted by first offset."""
    first_open_offset: int | None
    """Start of the first open transaction."""


def find_transactions(files: Iterable[tuple[File, int]]) -> Transactions:
    """Find the transactions in these files, given with their sizes. Reads a file up to the first corrupt batch."""
    aborted: list[AbortedTransaction] = []
    open_at: dict[int, int] = {}
    for file, size in files:
        for at, header in headers(file, size):
            if header.producer_id < 0 or not (header.is_transactional or header.is_control):
                continue
            if not header.is_control:
                open_at.setdefault(header.producer_id, header.base_offset)
            else:
                marker = read_marker(file.read_at(at, header.size))
                first_offset = None if marker is None else open_at.pop(header.producer_id, None)
                if marker is not None and marker.is_abort and first_offset is not None:
                    stable = min(open_at.values(), default=header.last_offset + 1)
                    aborted.append(AbortedTransaction(header.producer_id, first_offset, header.last_offset, stable))
    aborted.sort(key=lambda transaction: transaction.first_offset)
    return Transactions(aborted, min(open_at.values(), default=None))


def headers(file: File, size: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch, up to the first corrupt one."""
    position, last_size = 0, 0
    while size - position >= RECORDS_AT:
        data = file.read_at(position, RECORDS_AT if last_size > HOP_BYTES else READ_BYTES)
        at = 0
        while len(data) - at >= RECORDS_AT:
            header = _make(HEADER.unpack_from(data, at))
            if header.length < RECORDS_AT - LENGTH_OVERHEAD:
                return
            yield position + at, header
            last_size = header.size
            at += last_size
        if at == 0:
            return
        position += at


class TransactionFilter:
    """Reads the headers of all batches in order and determines which are discardable."""

    def __init__(self, transactions: Transactions) -> None:
        self._pending = list(reversed(transactions.aborted))
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        """Current one of each producer, and whether a batch of it was seen."""
        self._committed: dict[int, None] = {}
        """Producers with batches in a current transaction that was not aborted."""
        self.retained: list[AbortedTransaction] = []
        """Aborted transactions with batches, for the transaction index of the new segment."""

    def is_discardable(self, header: BatchHeader) -> bool:
        """Whether a batch of records belongs to an aborted transaction."""
        self._begin(header.last_offset)
        if not header.is_transactional:
            return False
        known = self._aborted.get(header.producer_id)
        if known is None:
            self._committed[header.producer_id] = None
            return False
        self._aborted[header.producer_id] = (known[0], True)
        return True

    def is_marker_discardable(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether no batch is left of a marker's transaction. A marker emptied by compaction is discardable too."""
        self._begin(header.last_offset)
        if header.record_count <= 0:
            return True
        marker = read_marker(batch)
        if marker is None:
            return False
        if marker.is_abort:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is not None and aborted[1]:
                self.retained.append(aborted[0])
                return False
            return True
        if header.producer_id not in self._committed:
            return True
        del self._committed[header.producer_id]
        return False

    def drain_retained_aborted(self) -> list[AbortedTransaction]:
        retained, self.retained = self.retained, []
        return retained

    def _begin(self, offset: int) -> None:
        while self._pending and self._pending[-1].first_offset <= offset:
            transaction = self._pending.pop()
            self._aborted.setdefault(transaction.producer_id, (transaction, False))
