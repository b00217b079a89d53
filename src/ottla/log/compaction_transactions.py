"""Which batches belong to aborted transactions, and which markers may go: a marker stays until nothing of its transaction is left.

The transactions are found in the log itself, and not in a transaction index: what compaction decides by must be what is there.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.ports import Buffer, File
from ottla.log.transaction_index import AbortedTransaction, read_marker
from ottla.wire.batches import HEADER, LENGTH_OVERHEAD, RECORDS_AT, BatchHeader

HOP_BYTES = 8 << 10
"""Behind a larger batch only the next header is read, and not what follows it."""
READ_BYTES = 64 << 10

_make = BatchHeader._make


class Transactions(NamedTuple):
    """Those of a log up to some offset."""

    aborted: list[AbortedTransaction]
    """By their first offsets."""
    first_open_offset: int | None
    """Where the first one starts that had not ended."""


def find_transactions(files: Iterable[tuple[File, int]]) -> Transactions:
    """Of the batches in these files, each with its size. Damage is for others to find: a file is read as far as it can be."""
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
    """Position and header of each batch. What is behind damage is not looked at."""
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
    """Goes through the batches in their order, and says of each whether its transaction allows it to go."""

    def __init__(self, transactions: Transactions) -> None:
        self._pending = list(reversed(transactions.aborted))
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        """By producer; with whether a batch of it was seen."""
        self._committed: dict[int, None] = {}
        """Producers of whose current transaction, which was not aborted, a batch was seen."""
        self.kept: list[AbortedTransaction] = []
        """Aborted transactions of which batches were seen: the next transaction index has them."""

    def is_discardable(self, header: BatchHeader) -> bool:
        """A batch of records: whether it was aborted."""
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
        """A marker: whether nothing of its transaction is left. One that an earlier compaction has emptied is of no use."""
        self._begin(header.last_offset)
        if header.record_count <= 0:
            return True
        marker = read_marker(batch)
        if marker is None:
            return False
        if marker.is_abort:
            aborted = self._aborted.pop(header.producer_id, None)
            if aborted is not None and aborted[1]:
                self.kept.append(aborted[0])
                return False
            return True
        if header.producer_id not in self._committed:
            return True
        del self._committed[header.producer_id]
        return False

    def take_retained_aborted(self) -> list[AbortedTransaction]:
        kept, self.kept = self.kept, []
        return kept

    def _begin(self, offset: int) -> None:
        while self._pending and self._pending[-1].first_offset <= offset:
            transaction = self._pending.pop()
            self._aborted.setdefault(transaction.producer_id, (transaction, False))
