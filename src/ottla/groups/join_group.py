"""JoinGroup, versions 0-9: new members, rejoining members, and static members that return with a new id.

From version 4 on a dynamic member first requests its id (KIP-394): a client that never receives the response then
leaves only a pending id, which expires with the session timeout.
"""

from collections.abc import Callable

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import random_uuid
from ottla.base.ports import Rng
from ottla.groups.classic_group import ClassicGroup, GroupState, Member, PendingResponse
from ottla.groups.interface import GroupCall
from ottla.groups.rebalancer import NEW_MEMBER_JOIN_TIMEOUT_MS, SESSION, PendingDecision, Rebalancer
from ottla.groups.responses import error_after_append, join_error
from ottla.groups.timers import TimerKey
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

MEMBER_ID_REQUIRED_MIN_VERSION = 4
SKIP_ASSIGNMENT_MIN_VERSION = 9
PENDING_MEMBERS_MAX = 10_000
"""Limit of issued but unused member ids per group. Beyond it the oldest is dropped, which bounds memory."""

UndoJoin = Callable[[ErrorCode, int], Decision]


class JoinOperation:
    """Decides one JoinGroup request."""

    __slots__ = (
        "call", "group", "pending", "pending_response", "protocols", "rebalance_timeout_ms", "rebalancer", "request",
        "rng",
    )  # fmt: skip

    def __init__(
        self, call: GroupCall, request: JoinGroupRequest, rebalancer: Rebalancer, rng: Rng, pending: PendingDecision
    ) -> None:
        self.call = call
        self.request = request
        self.rebalancer = rebalancer
        self.rng = rng
        self.pending = pending
        self.pending_response = PendingResponse(call.token, call.version)
        self.protocols = tuple([(protocol.name, protocol.metadata) for protocol in request.protocols])
        self.rebalance_timeout_ms = request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms
        self.group: ClassicGroup

    def decide(self) -> JoinGroupResponse | None:
        """Return the response, or None if the request waits."""
        request = self.request
        groups = self.rebalancer.groups
        known = groups.get(request.group_id)
        if known is None and request.member_id:
            return self._reject(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        self.group = known or ClassicGroup(request.group_id, self.pending.now_ms)
        if not self._has_capacity():
            self.group.remove(request.member_id)
            response: JoinGroupResponse | None = self._reject(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        elif not self.group.supports_protocols(request.protocol_type, [name for name, _ in self.protocols]):
            response = self._reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif request.member_id:
            response = self._join_known()
        else:
            response = self._join_unknown()
        if known is None:
            groups[request.group_id] = self.group
            self._store_new_group()
        return response

    def _has_capacity(self) -> bool:
        group, member_id, size_max = self.group, self.request.member_id, self.rebalancer.settings.group_max_size
        if group.state is GroupState.EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:  # count members that joined: the last to rejoin are rejected
            return (member is not None and member.joining is not None) or group.joining_count < size_max
        return member is not None or len(group.members) < size_max

    # Members without an id

    def _join_unknown(self) -> JoinGroupResponse | None:
        instance_id = self.request.group_instance_id
        member_id = self._new_member_id(self.call.client_id if instance_id is None else instance_id)
        if instance_id is not None:
            old_id = self.group.static_members.get(instance_id)
            return (
                self._add(member_id) if old_id is None else self._replace_static(self.group.members[old_id], member_id)
            )
        if self.call.version < MEMBER_ID_REQUIRED_MIN_VERSION:
            return self._add(member_id)
        pending_members = self.group.pending_members
        if len(pending_members) >= PENDING_MEMBERS_MAX:
            oldest = next(iter(pending_members))
            del pending_members[oldest]
            self.rebalancer.cancel_session_timer(self.group, oldest)
        pending_members[member_id] = None
        deadline_ms = self.pending.now_ms + self.request.session_timeout_ms
        self.rebalancer.timers.set(TimerKey(self.group.group_id, SESSION, member_id), deadline_ms)
        return self._reject(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _new_member_id(self, prefix: str) -> str:
        digits = random_uuid(self.rng).hex()
        return f"{prefix}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _add(self, member_id: str) -> JoinGroupResponse | None:
        request, group, pending = self.request, self.group, self.pending
        member = Member(
            member_id,
            request.group_instance_id,
            self.call.client_id,
            self.call.client_host,
            self.rebalance_timeout_ms,
            request.session_timeout_ms,
            self.protocols,
        )
        member.is_new = True
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member, self.pending_response)
        self.rebalancer.timers.set(
            TimerKey(group.group_id, SESSION, member_id), pending.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
        )
        self.rebalancer.rebalance(group, pending)
        return None

    def _replace_static(self, member: Member, member_id: str) -> JoinGroupResponse | None:
        """Replace a restarted static member, fencing its old id. A stable group stays stable if the protocol does."""
        group, rebalancer, pending = self.group, self.rebalancer, self.pending
        old = (member.member_id, member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        old_leader = group.leader_id or ""
        rebalancer.reject_join(group, member, ErrorCode.FENCED_INSTANCE_ID, member.member_id, pending)
        rebalancer.respond_to_sync(member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID), pending)
        rebalancer.cancel_session_timer(group, member.member_id)
        group.pending_sync.pop(member.member_id, None)
        group.replace_member_id(member, member_id)
        member.is_new = False
        rebalancer.reset_session_timer(group, member, pending.now_ms)
        group.update(member, self.protocols, self.rebalance_timeout_ms, self.request.session_timeout_ms)
        if group.state is not GroupState.STABLE or group.select_protocol() != group.protocol_name:
            group.set_joining(member, self.pending_response)
            rebalancer.rebalance(group, pending)
            return None
        pending.store(group)
        pending.on_rejected = self._undo_replacement(member, old, old_leader)
        response = rebalancer.join_response(group, member)
        if self.call.version >= SKIP_ASSIGNMENT_MIN_VERSION:
            response.skip_assignment = group.leader_id == member_id
        else:
            # Return its old id as the leader's: clients before version 9 would otherwise compute an assignment.
            response.leader, response.members = old_leader, []
        return response

    # Members with an id

    def _join_known(self) -> JoinGroupResponse | None:
        request, group = self.request, self.group
        if request.member_id in group.pending_members:
            if request.group_instance_id is not None:
                return self._reject(ErrorCode.UNKNOWN_SERVER_ERROR, "")  # pending ids belong to dynamic members
            return self._add(request.member_id)
        error = validate_member(group, request.member_id, request.group_instance_id)
        if error is not None:
            return self._reject(error, request.member_id)
        member = group.members[request.member_id]
        same = member.protocols == self.protocols
        if (group.state is GroupState.COMPLETING_REBALANCE and same) or (
            group.state is GroupState.STABLE and same and group.leader_id != member.member_id
        ):
            return self.rebalancer.join_response(group, member)  # no change: the client may have missed the response
        # A member has one pending JoinGroup, the newest.
        self.rebalancer.reject_join(group, member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id, self.pending)
        group.update(member, self.protocols, self.rebalance_timeout_ms, request.session_timeout_ms)
        group.set_joining(member, self.pending_response)
        self.rebalancer.rebalance(group, self.pending)
        return None

    def _reject(self, error: ErrorCode, member_id: str) -> JoinGroupResponse:
        return join_error(error, member_id, self.call.version)

    # Failed appends

    def _store_new_group(self) -> None:
        """Write an empty group record: a group exists once it is in the log."""
        blank = ClassicGroup(self.group.group_id, self.group.state_timestamp_ms)
        self.pending.store(blank)
        self.pending.on_rejected = self._undo_new_group

    def _undo_new_group(self, error: ErrorCode, now_ms: int) -> Decision:
        self.rebalancer.groups.pop(self.group.group_id, None)
        return Decision(response=self._reject(error_after_append(error), ""))

    def _undo_replacement(
        self, member: Member, old: tuple[str, tuple[tuple[str, bytes], ...], int, int], old_leader: str
    ) -> UndoJoin:
        def undo(error: ErrorCode, now_ms: int) -> Decision:
            group, rebalancer = self.group, self.rebalancer
            member_id, protocols, rebalance_timeout_ms, session_timeout_ms = old
            rebalancer.cancel_session_timer(group, member.member_id)
            group.update(member, protocols, rebalance_timeout_ms, session_timeout_ms)
            group.replace_member_id(member, member_id)
            rebalancer.reset_session_timer(group, member, now_ms)
            response = JoinGroupResponse(
                error_code=error_after_append(error),
                generation_id=group.generation,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader=old_leader,
            )
            return Decision(response=response)

        return undo


def validate_member(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode | None:
    """Return the error if `member_id` is not a member, or is an old id of the static member `instance_id`."""
    if instance_id is not None:
        known = group.static_members.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return None if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID
