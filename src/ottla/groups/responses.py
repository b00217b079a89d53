"""Responses that need no group state: early rejections, and the error response of each request type."""

from collections.abc import Callable
from typing import Any

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.groups.interface import GroupCall, GroupSettings
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.schema import Message

NULLABLE_PROTOCOL_MIN_VERSION = 7
"""Before this version the protocol name in a JoinGroup response cannot be null."""

PROTOCOL_REQUIRED_MIN_VERSION = 5
"""From this version on SyncGroup must name its protocol, although the fields are nullable."""

APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Error of a failed append to the error in the response. Other errors are returned unchanged, as in Kafka."""


def error_after_append(error: ErrorCode) -> ErrorCode:
    return APPEND_ERRORS.get(error, error)


def early_rejection(call: GroupCall, settings: GroupSettings) -> Message | None:
    """Return the error response if the request is invalid for any group; checked before its shard is looked up."""
    check = _EARLY_CHECKS.get(type(call.request))
    return None if check is None else check(call.request, call.version, settings)


def _check_join(request: JoinGroupRequest, version: int, settings: GroupSettings) -> Message | None:
    if not request.group_id:
        return join_error(ErrorCode.INVALID_GROUP_ID, request.member_id, version)
    if not settings.group_min_session_timeout_ms <= request.session_timeout_ms <= settings.group_max_session_timeout_ms:
        return join_error(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id, version)
    return None


def _check_sync(request: SyncGroupRequest, version: int, settings: GroupSettings) -> Message | None:
    if version >= PROTOCOL_REQUIRED_MIN_VERSION and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return _check_group_id(request, version, settings)


def _check_group_id(
    request: SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest, version: int, settings: GroupSettings
) -> Message | None:
    return None if request.group_id else error_response(request, ErrorCode.INVALID_GROUP_ID)


def error_response(request: Message, error: ErrorCode, version: int = 0) -> Message:
    """Return the response for a request that failed as a whole, for example with NOT_COORDINATOR."""
    if isinstance(request, JoinGroupRequest):
        return join_error(error, "", version)
    return _ERROR_RESPONSES[type(request)](request, error)


def join_error(error: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    """Return a JoinGroup error. The protocol name is null if the version allows it."""
    return JoinGroupResponse(
        error_code=error, member_id=member_id, protocol_name=None if version >= NULLABLE_PROTOCOL_MIN_VERSION else ""
    )


def append_error_handler(
    call: GroupCall, completions: tuple[tuple[Any, Any], ...] = ()
) -> Callable[[ErrorCode, int], Decision]:
    """Return an `on_rejected` callback that responds with the error, for decisions with nothing to undo.

    Completions are sent unchanged.
    """
    return lambda error, now_ms: Decision(
        response=error_response(call.request, error_after_append(error), call.version), completions=completions
    )


def _heartbeat(request: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    """Heartbeats succeed while the coordinator is loading: members get a full session timeout once it is loaded."""
    return HeartbeatResponse(error_code=ErrorCode.NONE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error)


def _offset_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _describe_groups(request: DescribeGroupsRequest, error: ErrorCode) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error) for group_id in request.groups]
    )


def _delete_groups(request: DeleteGroupsRequest, error: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=error) for group_id in request.groups_names]
    )


def _offset_fetch(request: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups]
    )


_ERROR_RESPONSES: dict[type, Callable[[Any, ErrorCode], Message]] = {
    SyncGroupRequest: lambda request, error: SyncGroupResponse(error_code=error),
    HeartbeatRequest: _heartbeat,
    LeaveGroupRequest: lambda request, error: LeaveGroupResponse(error_code=error),
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: _offset_fetch,
    OffsetDeleteRequest: lambda request, error: OffsetDeleteResponse(error_code=error),
    DescribeGroupsRequest: _describe_groups,
    DeleteGroupsRequest: _delete_groups,
    ListGroupsRequest: lambda request, error: ListGroupsResponse(error_code=error),
}
_EARLY_CHECKS: dict[type, Callable[[Any, int, GroupSettings], Message | None]] = {
    JoinGroupRequest: _check_join,
    SyncGroupRequest: _check_sync,
    HeartbeatRequest: _check_group_id,
    LeaveGroupRequest: _check_group_id,
}
