"""OffsetCommit, OffsetFetch and OffsetDelete."""

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.groups.classic_group import CONSUMER_PROTOCOL, ClassicGroup, GroupState
from ottla.groups.interface import GroupCall, GroupRecord
from ottla.groups.join_group import validate_member
from ottla.groups.offset_table import GroupOffsets, OffsetTable
from ottla.groups.rebalancer import Rebalancer
from ottla.groups.responses import append_error_handler, error_response
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.wire.records.group import NO_EXPIRY, CommittedOffset, offset_key, offset_value

NO_RETENTION = -1
NO_OFFSET = -1
GROUP_ID_NOT_FOUND_MIN_VERSION = 9
"""Before this version OffsetCommit reports ILLEGAL_GENERATION for an unknown group."""


def commit_offsets(rebalancer: Rebalancer, call: GroupCall, request: OffsetCommitRequest, now_ms: int) -> Decision:
    group = rebalancer.groups.get(request.group_id)
    error = _check_commit(group, request, call.version)
    if error is not None:
        return Decision(response=error_response(request, error))
    # A commit counts as a heartbeat.
    if group is not None and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
        rebalancer.reset_session_timer(group, group.members[request.member_id], now_ms)
    expire = NO_EXPIRY if request.retention_time_ms == NO_RETENTION else now_ms + request.retention_time_ms
    metadata_max = rebalancer.settings.offset_metadata_max_bytes
    records: list[GroupRecord] = []
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            if len(metadata) > metadata_max:
                partitions.append(
                    OffsetCommitResponsePartition(partition.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE)
                )
                continue
            committed = CommittedOffset(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, expire, topic.topic_id
            )
            key = offset_key(request.group_id, topic.name, partition.partition_index)
            records.append(GroupRecord(key, offset_value(committed)))
            partitions.append(OffsetCommitResponsePartition(partition.partition_index))
        topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions))
    rebalancer.metrics.offset_commits += len(records)
    return Decision(tuple(records), OffsetCommitResponse(topics=topics), on_rejected=append_error_handler(call))


def _check_commit(group: ClassicGroup | None, request: OffsetCommitRequest, version: int) -> ErrorCode | None:
    """Return the error unless the commit is from a member of the current generation, or the group has no members."""
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return None
        return (
            ErrorCode.GROUP_ID_NOT_FOUND if version >= GROUP_ID_NOT_FOUND_MIN_VERSION else ErrorCode.ILLEGAL_GENERATION
        )
    if generation < 0 and group.state is GroupState.EMPTY:
        return None
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = validate_member(group, request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.COMPLETING_REBALANCE else None


def fetch_offsets(table: OffsetTable, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Takes and returns the form of version 8. Classic groups ignore the member id and epoch of version 9 (KIP-848)."""
    return OffsetFetchResponse(groups=[_fetch_group(table, group, request.require_stable) for group in request.groups])


def _fetch_group(
    table: OffsetTable, request: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    offsets = table.of(request.group_id)
    if request.topics is None:
        topics = [_fetch_all(table, request.group_id, name, offsets, require_stable) for name in offsets]
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)
    topics = []
    for topic in request.topics:
        known = offsets.get(topic.name, {})
        partitions = []
        for index in topic.partition_indexes:
            committed = known.get(index)
            if require_stable and table.is_pending(request.group_id, topic.name, index):
                partitions.append(_no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif committed is None or _is_other_topic(committed.topic_id, topic.topic_id):
                partitions.append(_no_offset(index, ErrorCode.NONE))
            else:
                partitions.append(
                    OffsetFetchResponsePartitions(index, committed.offset, committed.leader_epoch, committed.metadata)
                )
        topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _fetch_all(
    table: OffsetTable, group_id: str, topic: str, offsets: GroupOffsets, require_stable: bool
) -> OffsetFetchResponseTopics:
    """Return all offsets of a topic, with the topic id of the commits. The caller checks whether that id is current."""
    partitions = []
    topic_id = ZERO_UUID
    for index, committed in offsets[topic].items():
        topic_id = committed.topic_id
        if require_stable and table.is_pending(group_id, topic, index):
            partitions.append(_no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            partitions.append(
                OffsetFetchResponsePartitions(index, committed.offset, committed.leader_epoch, committed.metadata)
            )
    return OffsetFetchResponseTopics(topic, topic_id, partitions)


def _no_offset(index: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "", error)


def _is_other_topic(committed: Uuid, requested: Uuid) -> bool:
    """Whether the offset was committed for a deleted topic of the same name."""
    return committed != requested and ZERO_UUID not in (committed, requested)


def delete_offsets(
    rebalancer: Rebalancer, table: OffsetTable, call: GroupCall, request: OffsetDeleteRequest
) -> Decision:
    group = rebalancer.groups.get(request.group_id)
    if group is None:
        return Decision(response=OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL:
        return Decision(response=OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
    offsets = table.of(request.group_id)
    records, topics = [], []
    for topic in request.topics:
        subscribed = group.is_subscribed(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index in indexes
                ],
            )
        )
        if not subscribed:
            known = offsets.get(topic.name, {})
            records += [
                GroupRecord(offset_key(request.group_id, topic.name, index), None)
                for index in indexes
                if index in known or table.is_pending(request.group_id, topic.name, index)
            ]
    return Decision(tuple(records), OffsetDeleteResponse(topics=topics), on_rejected=append_error_handler(call))
