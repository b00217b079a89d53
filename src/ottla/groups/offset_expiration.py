"""Tombstones for expired offsets and deleted groups."""

from ottla.groups.classic_group import CONSUMER_PROTOCOL, ClassicGroup, GroupState
from ottla.groups.interface import GroupRecord
from ottla.groups.offset_table import OffsetTable
from ottla.wire.records.group import NO_EXPIRY, CommittedOffset, group_key, offset_key


def expired_records(group: ClassicGroup, table: OffsetTable, now_ms: int, retention_ms: int) -> list[GroupRecord]:
    """Return tombstones for a group's expired offsets, and for the group if it has neither members nor offsets left.

    Offsets do not expire during a rebalance, when the members' subscriptions are unknown (KAFKA-13636), nor while an
    open transaction may commit them (KAFKA-19163).
    """
    offsets = table.of(group.group_id)
    if not offsets:
        is_expired = group.state is GroupState.EMPTY and not table.has_pending(group.group_id)
        return [GroupRecord(group_key(group.group_id), None)] if is_expired else []
    if not _may_expire(group):
        return []
    records, kept = [], False
    for topic, partitions in offsets.items():
        if group.is_subscribed(topic):
            kept = True
            continue
        for partition, committed in partitions.items():
            if not _is_expired(group, committed, now_ms, retention_ms) or table.is_pending(
                group.group_id, topic, partition
            ):
                kept = True
            else:
                records.append(GroupRecord(offset_key(group.group_id, topic, partition), None))
    if not kept and group.state is GroupState.EMPTY and not table.has_pending(group.group_id):
        records.append(GroupRecord(group_key(group.group_id), None))
    return records


def _may_expire(group: ClassicGroup) -> bool:
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    return group.protocol_type == CONSUMER_PROTOCOL and group.topics is not None and group.state is GroupState.STABLE


def _is_expired(group: ClassicGroup, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    """Whether retention has passed since the group became empty.

    For groups that never had members, and topics that members no longer subscribe to: since the commit.
    """
    if committed.expire_timestamp != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp
    since = committed.commit_timestamp
    if group.protocol_type is not None and group.state is GroupState.EMPTY and group.state_timestamp_ms >= 0:
        since = group.state_timestamp_ms
    return now_ms - since >= retention_ms


def group_tombstones(group_id: str, table: OffsetTable) -> list[GroupRecord]:
    """Return tombstones for a deleted group and all its offsets."""
    offsets = table.of(group_id)
    keys = {(topic, partition): None for topic, partitions in offsets.items() for partition in partitions}
    keys |= dict.fromkeys(table.pending_partitions(group_id))
    return [
        *[GroupRecord(offset_key(group_id, *key), None) for key in keys],
        GroupRecord(group_key(group_id), None),
    ]
