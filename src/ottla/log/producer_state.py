"""State of idempotent producers: their last five batches each, to tell duplicates from gaps in their sequences.

A producer has at most five requests in flight, and all of them may be retried, in any order (KAFKA-5494).
"""

from struct import Struct

from ottla.base.errors import ErrorCode
from ottla.base.ports import Buffer, Disk
from ottla.log.transaction_index import AbortedTransaction, read_marker
from ottla.wire.batches import NO_PRODUCER_EPOCH, BatchHeader
from ottla.wire.crc import crc32c
from ottla.wire.errors import BatchRejected

BATCHES_PER_PRODUCER_MAX = 5
PRODUCERS_MAX = 100_000
"""Limit per partition. Beyond it the idlest producers are removed, so that invented ids cannot exhaust memory."""

SEQUENCE_MASK = 0x7FFF_FFFF
"""Sequences wrap from 2**31 - 1 to 0."""

SNAPSHOT_SUFFIX = ".snapshot"
SNAPSHOT_VERSION = 1
_snapshot_head = Struct(">hIi")
_snapshot_entry = Struct(">qhiqiqiq")
_CHECKSUM_FROM = 6

BatchMetadata = tuple[int, int, int, int, int]
"""First and last sequence, first and last offset, highest timestamp."""


class ProducerStateEntry:
    """State of one producer id in this partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "transaction_first_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[BatchMetadata] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_first_offset = -1


class ProducerStateManager:
    """State of all producers of a partition."""

    def __init__(self, *, producers_max: int = PRODUCERS_MAX) -> None:
        self._producers: dict[int, ProducerStateEntry] = {}
        self._producers_max = producers_max

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> ProducerStateEntry | None:
        return self._producers.get(producer_id)

    def items(self) -> list[tuple[int, ProducerStateEntry]]:
        return list(self._producers.items())

    def check(self, producer_id: int, epoch: int, base_sequence: int, count: int) -> BatchMetadata | None:
        """Return the batch that this one duplicates, or None for the next one. Raises BatchRejected if neither."""
        producer = self._producers.get(producer_id)
        if producer is None:
            if epoch < NO_PRODUCER_EPOCH:
                raise BatchRejected(ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} sent epoch {epoch}")
            return None  # unknown or expired: any sequence is valid
        if epoch == producer.epoch:
            batches = producer.batches
            if not batches:
                last = -1
            else:
                last = batches[-1][1]
                for batch in batches:
                    if batch[0] == base_sequence and batch[1] == last_sequence(base_sequence, count):
                        return batch
            if (
                epoch != NO_PRODUCER_EPOCH
                and base_sequence != last + 1
                and not (base_sequence == 0 and last == SEQUENCE_MASK)
            ):
                raise BatchRejected(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id} sent sequence {base_sequence} after {last}",
                )
        elif epoch < producer.epoch:
            raise BatchRejected(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} sent epoch {epoch}, its latest is {producer.epoch}",
            )
        elif base_sequence != 0 and producer.epoch != NO_PRODUCER_EPOCH:
            raise BatchRejected(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} started its epoch {epoch} with sequence {base_sequence}",
            )
        return None

    def add_batch(
        self, producer_id: int, epoch: int, base_sequence: int, count: int, base_offset: int, timestamp: int
    ) -> None:
        """Record that a batch was appended."""
        producer = self._producers.get(producer_id)
        if producer is None:
            if len(self._producers) >= self._producers_max:
                self._remove_idlest()
            producer = self._producers[producer_id] = ProducerStateEntry(epoch)
        elif epoch != producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
        batches = producer.batches
        if len(batches) == BATCHES_PER_PRODUCER_MAX:
            del batches[0]
        batches.append(
            (base_sequence, last_sequence(base_sequence, count), base_offset, base_offset + count - 1, timestamp)
        )
        producer.last_timestamp = timestamp

    def on_batch(self, header: BatchHeader, batch: Buffer) -> AbortedTransaction | None:
        """Update the state from a stored batch of any type. Return the transaction that it aborts, if it does."""
        if header.producer_id < 0:
            return None
        if header.is_control:
            return self._on_marker(header, batch)
        self.add_batch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta + 1,
            header.base_offset,
            header.max_timestamp,
        )
        if header.is_transactional:
            producer = self._producers[header.producer_id]
            if producer.transaction_first_offset < 0:
                producer.transaction_first_offset = header.base_offset
        return None

    def _on_marker(self, header: BatchHeader, batch: Buffer) -> AbortedTransaction | None:
        marker = read_marker(batch)
        if marker is None:
            return None
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = ProducerStateEntry(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset, producer.transaction_first_offset = producer.transaction_first_offset, -1
        if first_offset < 0 or not marker.is_abort:
            return None
        return AbortedTransaction(
            header.producer_id, first_offset, header.last_offset, self.first_unstable_offset(header.last_offset + 1)
        )

    def first_unstable_offset(self, end: int) -> int:
        """Return the first offset of all open transactions, or `end` if there are none."""
        return min(
            (
                producer.transaction_first_offset
                for producer in self._producers.values()
                if producer.transaction_first_offset >= 0
            ),
            default=end,
        )

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that were idle for too long and return how many. An open transaction keeps its producer."""
        expired = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def clear(self) -> None:
        self._producers.clear()

    def _remove_idlest(self) -> None:
        """Remove an eighth of all producers at once, so that sorting is rare."""
        idlest = sorted(self._producers, key=lambda producer_id: self._producers[producer_id].last_timestamp)
        for producer_id in idlest[: max(1, self._producers_max // 8)]:
            del self._producers[producer_id]

    def encode(self) -> bytes:
        """Return a snapshot in Kafka's format, which contains only the last batch of each producer."""
        data = bytearray(_snapshot_head.size)
        for producer_id, producer in self._producers.items():
            _, last, first_offset, last_offset, _ = producer.batches[-1] if producer.batches else (-1, -1, -1, -1, -1)
            data += _snapshot_entry.pack(
                producer_id,
                producer.epoch,
                last,
                last_offset,
                last_offset - first_offset,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
        _snapshot_head.pack_into(data, 0, SNAPSHOT_VERSION, 0, len(self._producers))
        _snapshot_head.pack_into(
            data, 0, SNAPSHOT_VERSION, crc32c(memoryview(data)[_CHECKSUM_FROM:]), len(self._producers)
        )
        return bytes(data)

    def restore(self, data: bytes) -> None:
        """Replace the state by a snapshot. Raises ValueError if the snapshot is corrupt."""
        if len(data) < _snapshot_head.size:
            raise ValueError(f"corrupt producer snapshot: {len(data)} bytes")
        version, crc, count = _snapshot_head.unpack_from(data)
        size = _snapshot_head.size + count * _snapshot_entry.size
        if version != SNAPSHOT_VERSION or crc != crc32c(data[_CHECKSUM_FROM:]) or len(data) != size:
            raise ValueError(f"corrupt producer snapshot: version {version}, {count} entries in {len(data)} bytes")
        self._producers.clear()
        for (
            producer_id,
            epoch,
            last,
            last_offset,
            delta,
            timestamp,
            coordinator_epoch,
            first_offset,
        ) in _snapshot_entry.iter_unpack(data[_snapshot_head.size :]):
            producer = self._producers[producer_id] = ProducerStateEntry(epoch)
            producer.last_timestamp = timestamp
            producer.coordinator_epoch = coordinator_epoch
            producer.transaction_first_offset = first_offset
            if last_offset >= 0:
                first = last - delta & SEQUENCE_MASK if last >= 0 else -1
                producer.batches.append((first, last, last_offset - delta, last_offset, timestamp))


def last_sequence(base_sequence: int, count: int) -> int:
    """Return the last sequence of a batch, or -1 if it has no sequence."""
    return base_sequence + count - 1 & SEQUENCE_MASK if base_sequence >= 0 else -1


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


def write_snapshot(disk: Disk, directory: str, offset: int, table: ProducerStateManager) -> None:
    """Write the state after all batches before an offset."""
    disk.write_atomically(snapshot_path(directory, offset), table.encode())
