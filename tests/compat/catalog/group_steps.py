"""How groups are brought to where a case begins: members that joined, assignments that were handed over."""

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
    """To one topic, which need not exist. Kafka 4.3 reads what consumers send, and never ends a rebalance in which it cannot."""
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
"""Every case begins with it: the coordinator may have to be made."""


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
    """Before version 3 it is one member, after it a list of one."""
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=member)
    return LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member, group_instance_id=instance)])


JOINING = (COORDINATOR_READY, Call(join(), 5, member="a"))
"""`@a` has an id, and has not joined."""
JOINED = (*JOINING, Call(join("@a"), 5))
"""`@a` leads generation 1 and has not handed over assignments."""
STABLE = (*JOINED, Call(sync("@a", assign=("@a",)), 3))
STATIC = (COORDINATOR_READY, Call(join(instance="i"), 5, member="a"), Call(sync("@a", assign=("@a",), instance="i"), 3))
"""One static member, `i`, whose id is `@a`."""
EMPTY = (*STABLE, Call(leave_at(5, "@a"), 5))
"""The group has been, and has nobody now."""
SECOND = (*STABLE, Call(join(), 5, member="b"))
"""`@b` has an id."""
TWO_JOINED = (
    *SECOND,
    Start(join("@b"), 5, "b"),
    Call(heartbeat("@a"), 3, until=lambda response: response.error_code == 27),
    Call(join("@a"), 5),
    Await("b"),
)
"""Generation 2 of two, without assignments yet."""
TWO_STABLE = (*TWO_JOINED, Start(sync("@b", 2), 3, "b"), Call(sync("@a", 2, assign=("@a", "@b")), 3), Await("b"))
