"""Steps that bring a group into the initial state of a case."""

import struct
from collections.abc import Sequence

from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.compat.catalog.case import Await, Call, Start

SESSION_MS = 30_000
REBALANCE_MS = 30_000


def subscription(label: str) -> bytes:
    """Return a subscription to one topic, which need not exist.

    Kafka 4.3 decodes subscriptions and never completes a rebalance with an invalid one.
    """
    text = label.encode()
    return struct.pack(">hih", 0, 1, len(text)) + text + struct.pack(">i", 0)


RANGE = (("range", subscription("one")),)
BOTH = (("range", subscription("one")), ("roundrobin", subscription("one")))
REVERSED = (("roundrobin", subscription("two")), ("range", subscription("two")))
NEW = (("range", subscription("new")),)
STICKY = (("sticky", subscription("one")),)
NO_SUCH_MEMBER = "compat-00000000-0000-0000-0000-000000000000"
COORDINATOR_READY = Call(
    FindCoordinatorRequest(key="$g", key_type=0), 1, until=lambda response: response.error_code == 0
)
"""First step of every case: the coordinator may have to be created."""


def join(
    member: str = "",
    group: str = "$g",
    *,
    protocols: Sequence[tuple[str, bytes]] = RANGE,
    kind: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
    instance: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name, metadata) for name, metadata in protocols],
    )


def sync(
    member: str,
    generation: int = 1,
    *,
    group: str = "$g",
    assign: Sequence[str] = (),
    instance: str | None = None,
    kind: str | None = None,
    protocol: str | None = None,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=protocol,
        assignments=[SyncGroupRequestAssignment(name, b"for " + name.encode()) for name in assign],
    )


def heartbeat(member: str, generation: int = 1, *, group: str = "$g", instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member, group_instance_id=instance)


def leave_at(version: int, member: str, *, group: str = "$g", instance: str | None = None) -> LeaveGroupRequest:
    """Leave as one member before version 3, and as a list of one from then on."""
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=member)
    return LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member, group_instance_id=instance)])


JOINING = (COORDINATOR_READY, Call(join(), 5, member="a"))
"""`@a` has a member id and has not joined."""
JOINED = (*JOINING, Call(join("@a"), 5))
"""`@a` is the leader of generation 1 and has not sent assignments."""
STABLE = (*JOINED, Call(sync("@a", assign=("@a",)), 3))
STATIC = (COORDINATOR_READY, Call(join(instance="i"), 5, member="a"), Call(sync("@a", assign=("@a",), instance="i"), 3))
"""One static member, `i`, with member id `@a`."""
EMPTY = (*STABLE, Call(leave_at(5, "@a"), 5))
"""A group whose only member left."""
SECOND = (*STABLE, Call(join(), 5, member="b"))
"""`@b` has a member id."""
TWO_JOINED = (
    *SECOND,
    Start(join("@b"), 5, "b"),
    Call(heartbeat("@a"), 3, until=lambda response: response.error_code == 27),
    Call(join("@a"), 5),
    Await("b"),
)
"""Generation 2 with two members, without assignments yet."""
TWO_STABLE = (*TWO_JOINED, Start(sync("@b", 2), 3, "b"), Call(sync("@a", 2, assign=("@a", "@b")), 3), Await("b"))
