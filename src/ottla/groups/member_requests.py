"""SyncGroup, Heartbeat and LeaveGroup of classic groups."""

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.groups.classic_group import EMPTY_ASSIGNMENT, ClassicGroup, GroupState, PendingResponse
from ottla.groups.interface import GroupCall
from ottla.groups.join_group import validate_member
from ottla.groups.rebalancer import SYNC, PendingDecision, Rebalancer
from ottla.groups.responses import error_after_append
from ottla.groups.timers import TimerKey
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

BATCH_LEAVE_MIN_VERSION = 3
"""Before this version LeaveGroup names one member, whose error is the response's error."""


def sync_group(
    rebalancer: Rebalancer, call: GroupCall, request: SyncGroupRequest, pending: PendingDecision
) -> SyncGroupResponse | None:
    """Return the response, or None if the request waits for the leader's assignment."""
    group = rebalancer.groups.get(request.group_id)
    if group is None or group.state is GroupState.EMPTY:
        return SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    error = _check_sync(group, request)
    if error is not None:
        return SyncGroupResponse(error_code=error)
    member = group.members[request.member_id]
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        rebalancer.timers.cancel(TimerKey(group.group_id, SYNC))
    if group.state is GroupState.STABLE:
        return SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
        )
    # A member has one pending SyncGroup, the newest.
    rebalancer.respond_to_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), pending)
    member.syncing = PendingResponse(call.token, call.version)
    if group.leader_id == member.member_id:
        _store_assignments(rebalancer, group, request, pending)
    return None


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode | None:
    error = validate_member(group, request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name is not None and group.protocol_name not in (None, request.protocol_name)
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else None


def _store_assignments(
    rebalancer: Rebalancer, group: ClassicGroup, request: SyncGroupRequest, pending: PendingDecision
) -> None:
    """Store the leader's assignments. Members get their response when the record is committed."""
    assignments = {entry.member_id: entry.assignment for entry in request.assignments}
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, EMPTY_ASSIGNMENT)
    pending.store(group)
    rebalancer.propagate_assignments(group, ErrorCode.NONE, pending)
    group.transition_to(GroupState.STABLE, pending.now_ms)
    requests = [request for request, _ in pending.completions]

    def undo(error: ErrorCode, now_ms: int) -> Decision:
        """Return to CompletingRebalance, respond with the error and start a new rebalance."""
        undone = PendingDecision(now_ms)
        group.state = GroupState.COMPLETING_REBALANCE
        client_error = error_after_append(error)
        for member in group.members.values():
            member.assignment = EMPTY_ASSIGNMENT
        undone.completions += [(request, SyncGroupResponse(error_code=client_error)) for request in requests]
        rebalancer.rebalance(group, undone)
        return undone.decision()

    pending.on_rejected = undo


def heartbeat(rebalancer: Rebalancer, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
    group = rebalancer.groups.get(request.group_id)
    if group is None:
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    error = validate_member(group, request.member_id, request.group_instance_id)
    if error is not None:
        return HeartbeatResponse(error_code=error)
    if request.generation_id != group.generation:
        return HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    rebalancer.reset_session_timer(group, group.members[request.member_id], now_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave_group(
    rebalancer: Rebalancer, call: GroupCall, request: LeaveGroupRequest, pending: PendingDecision
) -> LeaveGroupResponse:
    leaving = (
        request.members if call.version >= BATCH_LEAVE_MIN_VERSION else [MemberIdentity(member_id=request.member_id)]
    )
    group = rebalancer.groups.get(request.group_id)
    results = []
    for identity in leaving:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave(rebalancer, group, identity, pending)
        results.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
        )
    if group is not None and group.state is not GroupState.EMPTY and any(not result.error_code for result in results):
        rebalancer.rebalance(group, pending)
    if call.version < BATCH_LEAVE_MIN_VERSION:
        return LeaveGroupResponse(error_code=results[0].error_code)
    return LeaveGroupResponse(members=results)


def _leave(
    rebalancer: Rebalancer, group: ClassicGroup, identity: MemberIdentity, pending: PendingDecision
) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:  # an administrator removes a static member by instance id
        if instance_id is None or instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static_members[instance_id]
    elif member_id in group.pending_members:
        group.remove(member_id)
        rebalancer.cancel_session_timer(group, member_id)
        return ErrorCode.NONE
    else:
        error = validate_member(group, member_id, instance_id)
        if error is not None:
            return error
    rebalancer.remove_member(group, group.members[member_id], pending)
    return ErrorCode.NONE
