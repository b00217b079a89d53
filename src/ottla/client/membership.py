"""Membership in a classic consumer group as a state machine without I/O: events in, effects out.

A member joins, gets a generation, gets its assignment and sends heartbeats. Rebalance callbacks run between these
steps, and only while the user polls, so a user that stops polling is detected and leaves the group.
"""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ErrorCode
from ottla.client.consumer_protocol import decode_assignment, encode_subscription
from ottla.client.errors import ClientError, FencedInstanceIdError, broker_error, error_code
from ottla.client.membership_events import (
    VALID_TRANSITIONS,
    ApplyAssignment,
    AssignmentApplied,
    AssignmentComputed,
    ComputeAssignment,
    Effect,
    Event,
    Fail,
    JoinPrepared,
    Leave,
    MarkCoordinatorUnknown,
    MemberSettings,
    MemberState,
    Polled,
    PrepareJoin,
    RequestFailed,
    ResponseReceived,
    Send,
    Subscribed,
    Tick,
    TopicsChanged,
    Wake,
)
from ottla.client.records import TopicPartition
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1
_E = ErrorCode

COORDINATOR_ERRORS = (
    _E.NOT_COORDINATOR,
    _E.COORDINATOR_NOT_AVAILABLE,
    _E.NETWORK_EXCEPTION,
    _E.REQUEST_TIMED_OUT,
    _E.BROKER_NOT_AVAILABLE,
)
MEMBERSHIP_LOST_ERRORS = (_E.UNKNOWN_MEMBER_ID, _E.ILLEGAL_GENERATION)


class Membership:
    """Only `step` changes the state. `deadline_ms` is the time of the next Tick."""

    def __init__(self, settings: MemberSettings) -> None:
        self.settings = settings
        self.state = MemberState.UNJOINED
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol: str | None = None
        self.is_leader = False
        self.topics: tuple[str, ...] = ()
        self.owned: tuple[TopicPartition, ...] = ()
        self._remembered: tuple[tuple[TopicPartition, ...], int] = ((), NO_GENERATION)
        """The last assignment, for sticky assignors."""
        self._is_lost = False
        self._must_join = False
        self._applying: ApplyAssignment | None = None
        self._pending: JoinGroupRequest | SyncGroupRequest | None = None
        self._heartbeat: HeartbeatRequest | None = None
        self._retry_at_ms: float | None = None
        self._heartbeat_at_ms: float | None = None
        self._polled_at_ms = 0.0
        self._last_response_ms = 0.0

    @property
    def is_stable(self) -> bool:
        return self.state is MemberState.STABLE and not self._must_join

    @property
    def is_member(self) -> bool:
        """Whether the coordinator counts this consumer as a member."""
        return self.generation != NO_GENERATION

    @property
    def deadline_ms(self) -> float | None:
        if self.state in (MemberState.UNJOINED, MemberState.FAILED):
            return None
        due = [
            at
            for at in (self._retry_at_ms, self._heartbeat_at_ms if self._heartbeat is None else None)
            if at is not None
        ]
        return min([*due, self._polled_at_ms + self.settings.poll_interval_ms_max])

    def step(self, event: Event, now_ms: float) -> list[Effect]:
        match event:
            case Polled():
                self._polled_at_ms = now_ms
                return self._maybe_rejoin()
            case Subscribed(topics):
                self._must_join = self._must_join or topics != self.topics
                self.topics = topics
                return []
            case TopicsChanged():
                self._must_join = True
                return [Wake()]
            case JoinPrepared():
                return self._on_join_prepared()
            case AssignmentApplied():
                return self._on_assignment_applied()
            case AssignmentComputed(generation, assignments):
                return self._on_assignment_computed(generation, assignments)
            case ResponseReceived(request, response):
                return self._on_response(request, response, now_ms)
            case RequestFailed(request, error):
                return self._on_request_failed(request, error, now_ms)
            case Tick():
                return self._on_tick(now_ms)
            case Leave(reason):
                return self._leave(reason)

    def _enter(self, state: MemberState) -> None:
        assert state in VALID_TRANSITIONS[self.state], (self.state, state)
        self.state = state

    # Joining

    def _maybe_rejoin(self) -> list[Effect]:
        if self.state is MemberState.UNJOINED or (self.state is MemberState.STABLE and self._must_join):
            if not self.topics and not self.owned:
                return []
            self._enter(MemberState.PREPARING)
            if self._is_lost:
                return [PrepareJoin(lost=self.owned)]
            if self.settings.is_cooperative:
                return [
                    PrepareJoin(
                        revoked=tuple(partition for partition in self.owned if partition.topic not in self.topics)
                    )
                ]
            return [PrepareJoin(revoked=self.owned)]
        return []

    def _on_join_prepared(self) -> list[Effect]:
        if self.state is not MemberState.PREPARING:
            return []
        if self._is_lost or not self.settings.is_cooperative:
            self.owned = ()
        else:
            self.owned = tuple(partition for partition in self.owned if partition.topic in self.topics)
        self._is_lost = False
        return self._join()

    def _join(self) -> list[Effect]:
        self._enter(MemberState.JOINING)
        self._must_join = False
        self._retry_at_ms = None
        self._heartbeat_at_ms = None
        settings = self.settings
        protocols = [
            JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=encode_subscription(
                    self.topics, self.owned, self._remembered[1], settings.rack, assignor.user_data(*self._remembered)
                ),
            )
            for assignor in settings.assignors
        ]
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.poll_interval_ms_max,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
        )
        self._pending = request
        return [Send(request)]

    def _on_response(self, request: object, response: object, now_ms: float) -> list[Effect]:
        if isinstance(response, HeartbeatResponse):
            return self._on_heartbeat(request, response.error_code, now_ms)
        if request is not self._pending:
            return []  # of an abandoned attempt
        self._pending = None
        if isinstance(response, JoinGroupResponse):
            return self._on_joined(response, now_ms)
        assert isinstance(response, SyncGroupResponse)
        return self._on_synced(response, now_ms)

    def _on_joined(self, response: JoinGroupResponse, now_ms: float) -> list[Effect]:
        code = error_code(response.error_code)
        if code == _E.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return self._join()
        if code != _E.NONE:
            return self._on_join_error(code, now_ms)
        self.member_id, self.generation, self.protocol = (
            response.member_id,
            response.generation_id,
            response.protocol_name,
        )
        self.is_leader = response.leader == response.member_id
        self._last_response_ms = now_ms
        self._heartbeat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        if self.is_leader and not response.skip_assignment:
            self._enter(MemberState.COMPUTING)
            return [ComputeAssignment(response.protocol_name or "", self.generation, tuple(response.members))]
        self._enter(MemberState.SYNCING)
        return self._sync(())

    def _on_assignment_computed(self, generation: int, assignments: Mapping[str, bytes]) -> list[Effect]:
        if self.state is not MemberState.COMPUTING or generation != self.generation:
            return []
        self._enter(MemberState.SYNCING)
        return self._sync(
            [
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in sorted(assignments.items())
            ]
        )

    def _sync(self, assignments: Sequence[SyncGroupRequestAssignment]) -> list[Effect]:
        request = SyncGroupRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol,
            assignments=list(assignments),
        )
        self._pending = request
        return [Send(request)]

    def _on_synced(self, response: SyncGroupResponse, now_ms: float) -> list[Effect]:
        code = error_code(response.error_code)
        if code != _E.NONE:
            return self._on_join_error(code, now_ms)
        assigned = decode_assignment(response.assignment)
        before, after = dict.fromkeys(self.owned), dict.fromkeys(assigned)
        self._applying = ApplyAssignment(
            assigned, tuple(p for p in assigned if p not in before), tuple(p for p in self.owned if p not in after)
        )
        self._enter(MemberState.APPLYING)
        return [self._applying]

    def _on_assignment_applied(self) -> list[Effect]:
        if self.state is not MemberState.APPLYING or self._applying is None:
            return []
        applied, self._applying = self._applying, None
        self.owned = applied.assigned
        self._remembered = (self.owned, self.generation)
        # Revoked partitions are unassigned until the next generation, so join again.
        self._must_join = self._must_join or bool(applied.revoked)
        self._enter(MemberState.STABLE)
        return [Wake()] if self._must_join else []

    def _on_join_error(self, code: ErrorCode, now_ms: float) -> list[Effect]:
        if code in MEMBERSHIP_LOST_ERRORS:
            self._reset_membership(keep_member=code == _E.ILLEGAL_GENERATION)
            return self._rejoin(now_ms, 0)
        if code == _E.REBALANCE_IN_PROGRESS:
            return self._rejoin(now_ms, 0 if self.state is MemberState.SYNCING else self.settings.retry_ms)
        if code in COORDINATOR_ERRORS:
            return [MarkCoordinatorUnknown(), *self._rejoin(now_ms, self.settings.retry_ms)]
        if code == _E.COORDINATOR_LOAD_IN_PROGRESS:
            return self._rejoin(now_ms, self.settings.retry_ms)
        return self._fail(code)

    def _rejoin(self, now_ms: float, delay_ms: float) -> list[Effect]:
        if delay_ms <= 0:
            return self._join()
        self._enter(MemberState.JOINING)
        self._retry_at_ms = now_ms + delay_ms
        self._heartbeat_at_ms = None
        return []

    def _on_request_failed(self, request: object, error: ClientError, now_ms: float) -> list[Effect]:
        if request is self._heartbeat:
            self._heartbeat = None
            self._heartbeat_at_ms = now_ms + self.settings.retry_ms
            return [MarkCoordinatorUnknown()]
        if request is not self._pending:
            return []
        self._pending = None
        if not error.is_retriable:
            self._enter(MemberState.FAILED)
            return [Fail(error)]
        return [MarkCoordinatorUnknown(), *self._rejoin(now_ms, self.settings.retry_ms)]

    # Heartbeats

    def _on_heartbeat(self, request: object, number: int, now_ms: float) -> list[Effect]:
        if request is not self._heartbeat:
            return []
        assert isinstance(request, HeartbeatRequest)
        self._heartbeat = None
        if request.generation_id != self.generation or request.member_id != self.member_id:
            return []
        code = error_code(number)
        if self._heartbeat_at_ms is not None:
            self._heartbeat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        if code in (_E.NONE, _E.REBALANCE_IN_PROGRESS):
            self._last_response_ms = now_ms
            if code == _E.REBALANCE_IN_PROGRESS and self.state is MemberState.STABLE and not self._must_join:
                self._must_join = True
                return [Wake()]
            return []
        if code in MEMBERSHIP_LOST_ERRORS:
            if self.state not in (MemberState.STABLE, MemberState.PREPARING, MemberState.APPLYING):
                return []  # the request in flight gets the same error
            self._on_membership_lost(keep_member=code == _E.ILLEGAL_GENERATION)
            return [Wake()]
        if code in COORDINATOR_ERRORS:
            self._heartbeat_at_ms = now_ms + self.settings.retry_ms
            return [MarkCoordinatorUnknown()]
        if code == _E.COORDINATOR_LOAD_IN_PROGRESS:
            return []
        return self._fail(code)

    def _on_tick(self, now_ms: float) -> list[Effect]:
        if self.state in (MemberState.UNJOINED, MemberState.FAILED):
            return []
        if now_ms - self._polled_at_ms >= self.settings.poll_interval_ms_max:
            effects = self._leave_request("the consumer did not poll for max.poll.interval.ms")
            self._on_membership_lost(keep_member=False)
            return effects
        effects = []
        if self._retry_at_ms is not None and now_ms >= self._retry_at_ms:
            effects += self._join()
        if self._heartbeat_at_ms is not None and self._heartbeat is None and now_ms >= self._heartbeat_at_ms:
            if now_ms - self._last_response_ms > self.settings.session_timeout_ms:
                effects.append(MarkCoordinatorUnknown())  # the coordinator may have moved
            self._heartbeat = HeartbeatRequest(
                group_id=self.settings.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.settings.instance_id,
            )
            effects.append(Send(self._heartbeat))
        return effects

    # Leaving

    def _on_membership_lost(self, *, keep_member: bool) -> None:
        """The group rebalanced without this member: its partitions are lost. The next poll calls `on_lost`."""
        self._reset_membership(keep_member=keep_member)
        if self.state is MemberState.APPLYING and self._applying is not None:
            self.owned = self._applying.assigned
            self._applying = None
        self._is_lost = bool(self.owned)
        self._must_join = True
        self._pending = None
        self._enter(MemberState.UNJOINED)

    def _reset_membership(self, *, keep_member: bool) -> None:
        self.generation = NO_GENERATION
        if not keep_member:
            self.member_id = ""
        self._heartbeat_at_ms = None
        self._heartbeat = None
        self.is_leader = False

    def _leave_request(self, reason: str) -> list[Effect]:
        """Return a LeaveGroup request, except for static members: they keep their assignment until they return."""
        if not self.member_id or self.settings.instance_id is not None:
            return []
        member = MemberIdentity(member_id=self.member_id, group_instance_id=None, reason=reason)
        return [Send(LeaveGroupRequest(group_id=self.settings.group_id, members=[member]))]

    def _leave(self, reason: str) -> list[Effect]:
        effects = self._leave_request(reason)
        self._reset_membership(keep_member=False)
        self.owned = ()
        self.topics = ()
        self._is_lost = self._must_join = False
        self._applying = None
        self._pending = None
        self._retry_at_ms = None
        self._enter(MemberState.UNJOINED)
        return effects

    def _fail(self, code: ErrorCode) -> list[Effect]:
        self._enter(MemberState.FAILED)
        if code == _E.FENCED_INSTANCE_ID:
            return [Fail(FencedInstanceIdError(self.settings.instance_id))]
        return [Fail(broker_error(code, about=f"group {self.settings.group_id!r}"))]
