"""Committed offsets of a shard. Durable state, changed only by replay."""

from collections.abc import Iterator

from ottla.wire.records.group import CommittedOffset

GroupOffsets = dict[str, dict[int, CommittedOffset]]
"""By topic and partition."""

NO_OFFSETS: GroupOffsets = {}
OffsetKey = tuple[str, str, int]


class OffsetTable:
    """Committed offsets, and pending offsets of open transactions by producer id.

    If an offset was committed with and without a transaction, the later record wins (KAFKA-17306).
    """

    def __init__(self) -> None:
        self._groups: dict[str, GroupOffsets] = {}
        self._record_offsets: dict[OffsetKey, int] = {}
        self._pending: dict[int, dict[OffsetKey, tuple[int, CommittedOffset]]] = {}

    def of(self, group_id: str) -> GroupOffsets:
        return self._groups.get(group_id, NO_OFFSETS)

    def group_ids(self) -> list[str]:
        return list(self._groups)

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        partitions[partition] = committed

    def note_record_offset(self, record_offset: int, group_id: str, topic: str, partition: int) -> None:
        """Note a commit's position in the log, if an open transaction may have written the same offset earlier."""
        if self._pending:
            self._record_offsets[group_id, topic, partition] = record_offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        for offsets in self._pending.values():
            offsets.pop((group_id, topic, partition), None)
        topics = self._groups.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
            if not topics:
                del self._groups[group_id]

    # Transactions

    def put_pending(self, record_offset: int, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        self._pending.setdefault(producer_id, {})[key] = (record_offset, committed)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for key, (record_offset, offset) in self._pending.pop(producer_id, {}).items():
            if committed and record_offset > self._record_offsets.get(key, -1):
                self.put(*key, offset)
                self._record_offsets[key] = record_offset
        if not self._pending:
            self._record_offsets.clear()

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any((group_id, topic, partition) in offsets for offsets in self._pending.values())

    def has_pending(self, group_id: str) -> bool:
        return any(True for _ in self.pending_partitions(group_id))

    def pending_partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        for offsets in self._pending.values():
            for owner, topic, partition in offsets:
                if owner == group_id:
                    yield topic, partition
