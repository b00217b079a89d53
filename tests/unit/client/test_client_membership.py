"""The membership state machine: complete lists of effects for each event."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.client.assignors import CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from ottla.client.consumer_protocol import decode_subscription, encode_assignment
from ottla.client.errors import DisconnectedError, FencedInstanceIdError
from ottla.client.membership import Membership
from ottla.client.membership_events import (
    VALID_TRANSITIONS,
    ApplyAssignment,
    AssignmentApplied,
    AssignmentComputed,
    ComputeAssignment,
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
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
EAGER = MemberSettings(
    "g", (RangeAssignor(),), session_timeout_ms=10_000, poll_interval_ms_max=60_000, heartbeat_interval_ms=3_000
)
COOPERATIVE = MemberSettings(
    "g", (CooperativeStickyAssignor(),), session_timeout_ms=10_000, poll_interval_ms_max=60_000
)
STATIC = MemberSettings(
    "g", (RangeAssignor(),), instance_id="one", session_timeout_ms=10_000, poll_interval_ms_max=60_000
)


def sent(effects, kind):
    """Return the only request of a type among effects."""
    (request,) = (effect.request for effect in effects if isinstance(effect, Send))
    assert isinstance(request, kind)
    return request


def start_join(settings=EAGER, topics=("t",)):
    """Return a member that sent its first JoinGroup, and the request."""
    member = Membership(settings)
    assert member.step(Subscribed(topics), 0) == []
    assert member.step(Polled(), 0) == [PrepareJoin()]
    return member, sent(member.step(JoinPrepared(), 0), JoinGroupRequest)


def join(member, request, *, generation=1, leader="other", now_ms=0, protocol=None):
    """Respond to the join; return the SyncGroup it sends."""
    response = JoinGroupResponse(
        member_id="m",
        generation_id=generation,
        leader=leader,
        protocol_type="consumer",
        protocol_name=protocol or member.settings.assignors[0].name,
    )
    return sent(member.step(ResponseReceived(request, response), now_ms), SyncGroupRequest)


def stable(settings=EAGER, assigned=(T0, T1), generation=1):
    """Return a member in state STABLE."""
    member, request = start_join(settings)
    sync = join(member, request, generation=generation)
    assert member.step(ResponseReceived(sync, SyncGroupResponse(assignment=encode_assignment(assigned))), 0) == [
        ApplyAssignment(assigned, assigned, ())
    ]
    assert member.step(AssignmentApplied(), 0) == []
    assert member.is_stable
    return member


def heartbeat(member, now_ms):
    return sent(member.step(Tick(), now_ms), HeartbeatRequest)


def start_rebalance(member, now_ms=3_000):
    beat = heartbeat(member, now_ms)
    return member.step(ResponseReceived(beat, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)), now_ms)


def test_first_join_gets_a_member_id():
    """The coordinator assigns a member id, and the member rejoins immediately with it."""
    member, request = start_join()
    assert (request.member_id, request.session_timeout_ms, request.rebalance_timeout_ms) == ("", 10_000, 60_000)
    effects = member.step(
        ResponseReceived(request, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")), 0
    )
    assert sent(effects, JoinGroupRequest).member_id == "m"


def test_leader_computes_the_assignment():
    member, request = start_join()
    members = [
        JoinGroupResponseMember(member_id="m", metadata=b"x"),
        JoinGroupResponseMember(member_id="n", metadata=b"y"),
    ]
    response = JoinGroupResponse(member_id="m", generation_id=5, leader="m", protocol_name="range", members=members)
    assert member.step(ResponseReceived(request, response), 0) == [ComputeAssignment("range", 5, tuple(members))]
    effects = member.step(AssignmentComputed(5, {"n": b"2", "m": b"1"}), 0)
    assert sent(effects, SyncGroupRequest) == SyncGroupRequest(
        group_id="g",
        generation_id=5,
        member_id="m",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id="m", assignment=b"1"),
            SyncGroupRequestAssignment(member_id="n", assignment=b"2"),
        ],
    )


def test_leader_skips_the_assignment_on_request():
    """A returning static leader keeps the assignment of its generation."""
    member, request = start_join(STATIC)
    response = JoinGroupResponse(
        member_id="m", generation_id=5, leader="m", protocol_name="range", skip_assignment=True
    )
    assert sent(member.step(ResponseReceived(request, response), 0), SyncGroupRequest).assignments == []


def test_assignment_of_an_older_generation_is_dropped():
    member, request = start_join()
    member.step(
        ResponseReceived(request, JoinGroupResponse(member_id="m", generation_id=5, leader="m", protocol_name="range")),
        0,
    )
    assert member.step(AssignmentComputed(4, {"m": b""}), 0) == []


def test_eager_member_revokes_all_partitions():
    """A heartbeat reports the rebalance; the partitions are revoked at the next poll."""
    member = stable()
    assert start_rebalance(member) == [Wake()]
    assert member.step(Polled(), 3_500) == [PrepareJoin(revoked=(T0, T1))]
    request = sent(member.step(JoinPrepared(), 3_500), JoinGroupRequest)
    assert request.member_id == "m"
    assert decode_subscription(request.protocols[0].metadata, "m", None).owned == ()


def test_cooperative_member_keeps_remaining_partitions():
    """It revokes the others after the sync, and rejoins so that they can be reassigned."""
    member = stable(COOPERATIVE)
    assert start_rebalance(member) == [Wake()]
    assert member.step(Polled(), 3_500) == [PrepareJoin()]
    request = sent(member.step(JoinPrepared(), 3_500), JoinGroupRequest)
    described = decode_subscription(request.protocols[0].metadata, "m", None)
    assert (described.owned, described.generation) == ((T0, T1), 1)
    sync = join(member, request, generation=2, now_ms=3_600)
    assert member.step(ResponseReceived(sync, SyncGroupResponse(assignment=encode_assignment([T1, T2]))), 3_700) == [
        ApplyAssignment((T1, T2), (T2,), (T0,))
    ]
    assert member.step(AssignmentApplied(), 3_700) == [Wake()]
    assert member.step(Polled(), 3_700) == [PrepareJoin()]
    again = sent(member.step(JoinPrepared(), 3_700), JoinGroupRequest)
    assert decode_subscription(again.protocols[0].metadata, "m", None).owned == (T1, T2)


def test_sticky_member_sends_its_last_assignment():
    member = stable(MemberSettings("g", (StickyAssignor(),)))
    start_rebalance(member)
    member.step(Polled(), 3_500)
    request = sent(member.step(JoinPrepared(), 3_500), JoinGroupRequest)
    from ottla.client.assignors.sticky import decode_user_data

    data = decode_subscription(request.protocols[0].metadata, "m", None).user_data
    assert decode_user_data(data) == ((T0, T1), 1)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_removed_member_loses_its_partitions(code):
    """It must not commit, as its partitions are reassigned. It rejoins, with a new id if its own is unknown."""
    member = stable(COOPERATIVE)
    beat = heartbeat(member, 3_000)
    assert member.step(ResponseReceived(beat, HeartbeatResponse(error_code=code)), 3_000) == [Wake()]
    assert (member.generation, member.is_member) == (-1, False)
    assert member.step(Polled(), 4_000) == [PrepareJoin(lost=(T0, T1))]
    request = sent(member.step(JoinPrepared(), 4_000), JoinGroupRequest)
    assert request.member_id == ("" if code == ErrorCode.UNKNOWN_MEMBER_ID else "m")
    assert decode_subscription(request.protocols[0].metadata, "m", None).owned == ()


def test_member_that_does_not_poll_leaves():
    """The group rebalances immediately; the member loses its partitions at its next poll."""
    member = stable()
    member.step(Tick(), 3_000)
    assert member.step(Tick(), 60_000) == [
        Send(
            LeaveGroupRequest(
                group_id="g",
                members=[MemberIdentity(member_id="m", reason="the consumer did not poll for max.poll.interval.ms")],
            )
        )
    ]
    assert member.deadline_ms is None
    assert member.step(Polled(), 70_000) == [PrepareJoin(lost=(T0, T1))]


def test_static_member_sends_no_leave_group():
    """Their assignment is kept until the session times out."""
    member = stable(STATIC)
    assert member.step(Leave("closed"), 0) == []
    assert member.state is MemberState.UNJOINED


def test_leaving_member_sends_leave_group():
    member = stable()
    assert member.step(Leave("bye"), 0) == [
        Send(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m", reason="bye")]))
    ]
    assert (member.owned, member.state) == ((), MemberState.UNJOINED)


def test_fenced_static_member_fails():
    """Another consumer with the same instance id joined; rejoining would remove it."""
    member = stable(STATIC)
    beat = heartbeat(member, 3_000)
    (effect,) = member.step(ResponseReceived(beat, HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)), 3_000)
    assert isinstance(effect, Fail)
    assert isinstance(effect.error, FencedInstanceIdError)
    assert member.step(Polled(), 4_000) == []


def test_one_heartbeat_is_in_flight():
    """The next follows after the interval; after a lost one the coordinator is looked up again."""
    member = stable()
    assert member.deadline_ms == 3_000
    beat = heartbeat(member, 3_000)
    assert member.step(Tick(), 9_000) == []
    assert member.step(ResponseReceived(beat, HeartbeatResponse()), 9_100) == []
    assert member.deadline_ms == 12_100
    beat = heartbeat(member, 12_100)
    assert member.step(RequestFailed(beat, DisconnectedError("gone")), 12_200) == [MarkCoordinatorUnknown()]
    assert member.deadline_ms == 12_300


def test_response_to_an_old_heartbeat_is_ignored():
    """It may arrive while the member rejoins."""
    member = stable()
    beat = heartbeat(member, 3_000)
    member.step(TopicsChanged(), 3_000)
    member.step(Polled(), 3_000)
    request = sent(member.step(JoinPrepared(), 3_000), JoinGroupRequest)
    sync = join(member, request, generation=2, now_ms=3_100)
    member.step(ResponseReceived(sync, SyncGroupResponse(assignment=encode_assignment([T0]))), 3_100)
    member.step(AssignmentApplied(), 3_100)
    assert member.step(ResponseReceived(beat, HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)), 3_200) == []
    assert (member.generation, member.is_stable) == (2, True)


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_moved_coordinator_is_looked_up(code):
    member, request = start_join()
    assert member.step(ResponseReceived(request, JoinGroupResponse(error_code=code)), 1_000) == [
        MarkCoordinatorUnknown()
    ]
    assert member.step(Tick(), 1_050) == []
    sent(member.step(Tick(), 1_100), JoinGroupRequest)


def test_late_sync_rejoins():
    """With its member id: the group is already in the next rebalance."""
    member, request = start_join()
    sync = join(member, request)
    effects = member.step(ResponseReceived(sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)), 0)
    assert sent(effects, JoinGroupRequest).member_id == "m"


def test_fatal_errors_are_reported():
    for code in (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    ):
        member, request = start_join()
        (effect,) = member.step(ResponseReceived(request, JoinGroupResponse(error_code=code)), 0)
        assert isinstance(effect, Fail)
        assert effect.error.code == code


def test_changed_subscription_rejoins():
    """Cooperative members revoke partitions of removed topics before the join."""
    member = stable(COOPERATIVE)
    assert member.step(Subscribed(("u",)), 0) == []
    assert member.step(Polled(), 0) == [PrepareJoin(revoked=(T0, T1))]
    assert sent(member.step(JoinPrepared(), 0), JoinGroupRequest).protocols[0].name == "cooperative-sticky"
    assert member.owned == ()


def test_response_after_leaving_is_ignored():
    member, request = start_join()
    member.step(Leave("bye"), 0)
    assert member.step(ResponseReceived(request, JoinGroupResponse(member_id="m", generation_id=1)), 0) == []
    assert member.state is MemberState.UNJOINED


def test_unlisted_transitions_are_rejected():
    """Transitions outside the table fail an assertion."""
    for state in MemberState:
        for after in MemberState:
            member = Membership(EAGER)
            member.state = state
            if after in VALID_TRANSITIONS[state]:
                member._enter(after)
            else:
                with pytest.raises(AssertionError):
                    member._enter(after)
