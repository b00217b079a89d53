"""Rebalances of classic groups: members join, the leader computes the assignment, members get theirs."""

from collections.abc import Callable

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.groups.classic_group import EMPTY_ASSIGNMENT, ClassicGroup, GroupState, Member, PendingResponse
from ottla.groups.interface import GroupMetrics, GroupRecord, GroupSettings
from ottla.groups.responses import join_error
from ottla.groups.timers import TimerKey, Timers
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse
from ottla.wire.records.group import group_key, group_value
from ottla.wire.schema import Message

SESSION = "session"
JOIN = "join"
SYNC = "sync"

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Limit of a member's first join. The member does not know its id yet, so it cannot send heartbeats."""


class PendingDecision:
    """Records and responses collected while a decision is made."""

    __slots__ = ("completions", "now_ms", "on_rejected", "records")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.records: list[GroupRecord] = []
        self.completions: list[tuple[PendingResponse, Message]] = []
        self.on_rejected: Callable[[ErrorCode, int], Decision] | None = None

    def store(self, group: ClassicGroup) -> None:
        self.records.append(GroupRecord(group_key(group.group_id), group_value(group.to_record())))

    def decision(self) -> Decision:
        return Decision(
            records=tuple(self.records),
            completions=tuple([(request.token, response) for request, response in self.completions]),
        )


class Rebalancer:
    """The classic groups of a shard and their timers.

    Callers that change a group's members call `rebalance` or `complete_join` afterwards.
    """

    def __init__(self, settings: GroupSettings, timers: Timers, metrics: GroupMetrics) -> None:
        self.settings = settings
        self.timers = timers
        self.metrics = metrics
        self.groups: dict[str, ClassicGroup] = {}

    # Responses to pending requests

    def respond_to_join(
        self, group: ClassicGroup, member: Member, response: JoinGroupResponse, pending: PendingDecision
    ) -> None:
        if member.joining is not None:
            pending.completions.append((member.joining, response))
            group.set_joining(member, None)

    def reject_join(
        self, group: ClassicGroup, member: Member, error: ErrorCode, member_id: str, pending: PendingDecision
    ) -> None:
        if member.joining is not None:
            self.respond_to_join(group, member, join_error(error, member_id, member.joining.version), pending)

    def respond_to_sync(self, member: Member, response: SyncGroupResponse, pending: PendingDecision) -> bool:
        if member.syncing is None:
            return False
        pending.completions.append((member.syncing, response))
        member.syncing = None
        return True

    def join_response(self, group: ClassicGroup, member: Member) -> JoinGroupResponse:
        """Return the current generation for a member. Only the leader gets the list of members."""
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id or "",
            member_id=member.member_id,
            members=group.member_list() if group.leader_id == member.member_id else [],
        )

    def propagate_assignments(self, group: ClassicGroup, error: ErrorCode, pending: PendingDecision) -> None:
        """Respond to all pending syncs with the member's assignment, or with the error."""
        for member in group.members.values():
            response = SyncGroupResponse(error_code=error, assignment=member.assignment)
            if error is ErrorCode.NONE:
                response.protocol_type, response.protocol_name = group.protocol_type, group.protocol_name
            if self.respond_to_sync(member, response, pending):
                self.reset_session_timer(group, member, pending.now_ms)  # it sends no heartbeats while it waits

    def reset_assignments(self, group: ClassicGroup, error: ErrorCode, pending: PendingDecision) -> None:
        assert group.state is GroupState.COMPLETING_REBALANCE, (group.group_id, group.state)
        for member in group.members.values():
            member.assignment = EMPTY_ASSIGNMENT
        self.propagate_assignments(group, error, pending)

    # Timers

    def reset_session_timer(self, group: ClassicGroup, member: Member, now_ms: int) -> None:
        self.timers.set(TimerKey(group.group_id, SESSION, member.member_id), now_ms + member.session_timeout_ms)

    def cancel_session_timer(self, group: ClassicGroup, member_id: str) -> None:
        self.timers.cancel(TimerKey(group.group_id, SESSION, member_id))

    def on_timer(self, key: TimerKey, pending: PendingDecision) -> None:
        """Handle an expired timer. Its group may be deleted, or the timer obsolete."""
        group = self.groups.get(key.group_id)
        if group is None:
            return
        if key.type == SESSION:
            self._on_session_expired(group, key.member_id, pending)
        elif key.type == JOIN:
            self._on_join_deadline(group, pending)
        else:
            self._on_sync_deadline(group, pending)

    def _on_session_expired(self, group: ClassicGroup, member_id: str, pending: PendingDecision) -> None:
        if member_id in group.pending_members:
            group.remove(member_id)
            if group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
                self.complete_join(group, pending)
            return
        member = group.members.get(member_id)
        if member is not None and not member.has_satisfied_heartbeat:
            self.metrics.expired_members += 1
            self.remove_member(group, member, pending)
            if group.state is GroupState.PREPARING_REBALANCE:
                if group.has_all_joined:
                    self.complete_join(group, pending)
            else:
                self.rebalance(group, pending)

    def _on_join_deadline(self, group: ClassicGroup, pending: PendingDecision) -> None:
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if group.initial_delay_ms >= 0 and group.new_member_added and group.initial_remaining_ms:
            # Members joined during the delay, so more may follow: extend it, at most to the rebalance timeout.
            group.new_member_added = False
            remaining = group.initial_remaining_ms
            group.initial_remaining_ms = max(remaining - group.initial_delay_ms, 0)
            group.initial_delay_ms = min(self.settings.group_initial_rebalance_delay_ms, remaining)
            self.timers.set(TimerKey(group.group_id, JOIN), pending.now_ms + group.initial_delay_ms)
        else:
            self.complete_join(group, pending)

    def _on_sync_deadline(self, group: ClassicGroup, pending: PendingDecision) -> None:
        """Remove members that joined but did not sync, and start a new rebalance."""
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) and group.pending_sync:
            for member_id in list(group.pending_sync):
                group.remove(member_id)
                self.cancel_session_timer(group, member_id)
            self._prepare(group, pending)

    # Rebalance

    def remove_member(self, group: ClassicGroup, member: Member, pending: PendingDecision) -> None:
        """Remove a member and reject its pending requests. The caller then starts or completes the rebalance."""
        self.cancel_session_timer(group, member.member_id)
        self.reject_join(group, member, ErrorCode.UNKNOWN_MEMBER_ID, "", pending)
        self.respond_to_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), pending)
        group.remove(member.member_id)

    def rebalance(self, group: ClassicGroup, pending: PendingDecision) -> None:
        """Members or protocols changed: start a rebalance, or complete the current one if all members joined."""
        if group.can_rebalance:
            self._prepare(group, pending)
        elif (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_joined
        ):
            self.complete_join(group, pending)

    def _prepare(self, group: ClassicGroup, pending: PendingDecision) -> None:
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, pending)
        group.pending_sync.clear()
        self.timers.cancel(TimerKey(group.group_id, SYNC))
        initial = group.state is GroupState.EMPTY
        self.metrics.rebalances += 1
        group.transition_to(GroupState.PREPARING_REBALANCE, pending.now_ms)
        if initial:
            delay = self.settings.group_initial_rebalance_delay_ms
            group.initial_delay_ms = delay
            group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay, 0)
            self.timers.set(TimerKey(group.group_id, JOIN), pending.now_ms + delay)
            return
        group.initial_delay_ms = -1
        if group.has_all_joined:
            self.complete_join(group, pending)
        else:
            self.timers.set(TimerKey(group.group_id, JOIN), pending.now_ms + group.rebalance_timeout_ms)

    def complete_join(self, group: ClassicGroup, pending: PendingDecision) -> None:
        """Remove dynamic members that did not join, and start the next generation."""
        self.timers.cancel(TimerKey(group.group_id, JOIN))
        group.initial_delay_ms = -1
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self.cancel_session_timer(group, member.member_id)
                group.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none joined: wait until one does, or their sessions expire.
            self.timers.set(TimerKey(group.group_id, JOIN), pending.now_ms + group.rebalance_timeout_ms)
            return
        group.start_next_generation(pending.now_ms)
        if group.state is GroupState.EMPTY:
            pending.store(group)
            return
        for member in group.members.values():
            self.respond_to_join(group, member, self.join_response(group, member), pending)
            self.reset_session_timer(group, member, pending.now_ms)
            member.is_new = False
            group.pending_sync[member.member_id] = None
        self.timers.set(TimerKey(group.group_id, SYNC), pending.now_ms + group.rebalance_timeout_ms)
