"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.compat.catalog.case import Await, Call, Case, Disconnect, Start
from tests.compat.catalog.group_steps import (
    BOTH,
    COORDINATOR_READY,
    EMPTY,
    JOINED,
    JOINING,
    NEW,
    NO_SUCH_MEMBER,
    REVERSED,
    SECOND,
    STABLE,
    STATIC,
    STICKY,
    TWO_JOINED,
    TWO_STABLE,
    heartbeat,
    join,
    leave_at,
    sync,
)

JOINS, SYNCS, BEATS, LEAVES = range(10), range(6), range(5), range(6)
STATIC_JOINS, STATIC_SYNCS, STATIC_BEATS, STATIC_LEAVES = range(5, 10), range(3, 6), range(3, 5), range(3, 6)
REBALANCING = Call(heartbeat("@a"), 3, until=lambda response: response.error_code == 27)


def leaves(member: str, *, group: str = "$g", instance: str | None = None) -> Call:
    return Call(lambda version: leave_at(version, member, group=group, instance=instance))


def leaves_many(*members: tuple[str, str | None]) -> Call:
    return Call(
        LeaveGroupRequest(
            group_id="$g", members=[MemberIdentity(member, instance, "because") for member, instance in members]
        )
    )


CASES = [
    # JoinGroup
    Case("join: new member", (Call(join(), member="a"),), (COORDINATOR_READY,)),
    Case("join: with the assigned member id", (Call(join("@a")),), JOINING),
    Case("join: several protocols", (Call(join("@a", protocols=REVERSED)),), JOINING),
    Case("join: unknown member id", (Call(join(NO_SUCH_MEMBER)),), (COORDINATOR_READY,)),
    Case("join: unknown member id, group with members", (Call(join(NO_SUCH_MEMBER)),), STABLE),
    Case("join: no group id", (Call(join(group="")),), (COORDINATOR_READY,)),
    Case("join: no protocol type", (Call(join("@a", kind="")),), JOINING),
    Case("join: no protocols", (Call(join("@a", protocols=())),), JOINING),
    Case("join: neither protocol type nor protocols", (Call(join("@a", kind="", protocols=())),), JOINING),
    Case("join: new member, no protocols", (Call(join(protocols=())),), (COORDINATOR_READY,)),
    Case("join: new member, no protocol type", (Call(join(kind="")),), (COORDINATOR_READY,)),
    Case(
        "join: session timeout too short",
        (Call(join(session_ms=5999)), Call(join(session_ms=0)), Call(join(session_ms=-1))),
        (COORDINATOR_READY,),
    ),
    Case("join: session timeout too long", (Call(join(session_ms=1_800_001)),), (COORDINATOR_READY,)),
    Case("join: session timeout at the limits", (Call(join("@a", session_ms=6000)),), JOINING),
    Case("join: negative rebalance timeout", (Call(join("@a", rebalance_ms=-5)),), JOINING, versions=(1, 5, 9)),
    Case("join: again, unchanged", (Call(join("@a")),), JOINED),
    Case("join: again when stable, unchanged", (Call(join("@a")),), STABLE),
    Case("join: again when stable, with another subscription", (Call(join("@a", protocols=NEW)),), STABLE),
    Case("join: again when stable, with another protocol", (Call(join("@a", protocols=REVERSED[:1])),), STABLE),
    Case("join: again with another protocol type", (Call(join("@a", kind="connect")),), STABLE),
    Case(
        "join: another protocol type",
        (Call(join("", kind="connect")), Call(join(NO_SUCH_MEMBER, kind="connect"))),
        STABLE,
    ),
    Case("join: no protocol in common", (Call(join(protocols=STICKY)),), STABLE),
    Case("join: empty group", (Call(join(), member="b"),), EMPTY),
    Case("join: empty group, another protocol type", (Call(join(kind="connect"), member="b"),), EMPTY),
    Case("join: empty group, id of a former member", (Call(join("@a")),), EMPTY),
    Case("join: second member", (Start(join("@b"), None, "b"), REBALANCING, Call(join("@a")), Await("b")), SECOND),
    Case(
        "join: second member, protocols in reverse order",
        (Start(join("@b", protocols=REVERSED), None, "b"), REBALANCING, Call(join("@a", protocols=BOTH)), Await("b")),
        SECOND,
    ),
    Case(
        "join: second member, one common protocol",
        (Start(join("@b", protocols=REVERSED), None, "b"), REBALANCING, Call(join("@a")), Await("b")),
        SECOND,
    ),
    Case("join: follower again when stable", (Call(join("@b"), on="b"),), TWO_STABLE),
    Case("join: follower again before assignments", (Call(join("@b"), on="b"), Call(join("@a"))), TWO_JOINED),
    Case(
        "join: follower with another subscription",
        (
            Start(join("@b", protocols=NEW), None, "b"),
            Call(heartbeat("@a", 2), 3, until=lambda response: response.error_code == 27),
            Call(join("@a")),
            Await("b"),
        ),
        TWO_STABLE,
    ),
    Case(
        "join: leader again when stable",
        (
            Start(join("@a"), None, "a"),
            Call(heartbeat("@b", 2), 3, until=lambda response: response.error_code == 27),
            Call(join("@b")),
            Await("a"),
        ),
        TWO_STABLE,
    ),
    Case(
        "join: same member on two connections",
        (
            Start(join("@b"), None, "b"),
            REBALANCING,
            Start(join("@b"), None, "c"),
            Call(heartbeat("@b"), 3),
            Call(join("@a")),
            Await("c"),
        ),
        SECOND,
        versions=(5, 9),
    ),
    Case(
        "join: member disconnects while waiting",
        (Start(join("@b"), None, "b"), REBALANCING, Disconnect("b"), Call(join("@a"))),
        SECOND,
    ),
    Case(
        "join: member leaves while waiting",
        (Start(join("@b"), None, "b"), REBALANCING, Call(leave_at(5, "@b"), 5), Await("b"), Call(join("@a"))),
        SECOND,
    ),
    # static members
    Case(
        "join: static, new member", (Call(join(instance="i"), member="a"),), (COORDINATOR_READY,), versions=STATIC_JOINS
    ),
    Case(
        "join: static, unknown member id",
        (Call(join(NO_SUCH_MEMBER, instance="i")),),
        (COORDINATOR_READY,),
        versions=STATIC_JOINS,
    ),
    Case("join: static, known member id", (Call(join("@a", instance="i")),), STATIC, versions=STATIC_JOINS),
    Case(
        "join: static, restarted",
        (
            Call(join(instance="i"), member="b"),
            Call(heartbeat("@a", instance="i"), 3),
            Call(heartbeat("@b", instance="i"), 3),
        ),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, restarted with another subscription",
        (Call(join(instance="i", protocols=NEW), member="b"), Call(heartbeat("@a", instance="i"), 3)),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, restarted with another protocol",
        (Call(join(instance="i", protocols=STICKY), member="b"),),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, fenced",
        (Call(join(instance="i"), 5, member="b"), Call(join("@a", instance="i"))),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, id of another member",
        (Call(join("@b", instance="i")),),
        (*STATIC, Call(join(), 5, member="b")),
        versions=STATIC_JOINS,
    ),
    Case("join: static member without its instance id", (Call(join("@a")),), STATIC, versions=JOINS),
    *(
        Case(
            f"join: static, invalid instance id {name[:9]!r}",
            (Call(join(instance=name)),),
            (COORDINATOR_READY,),
            versions=STATIC_JOINS,
        )
        for name in ("", "a/b", "..", "x" * 250)
    ),
    Case(
        "join: static, second member",
        (
            Start(join(instance="j"), None, "b"),
            Call(heartbeat("@a", instance="i"), 3, until=lambda response: response.error_code == 27),
            Call(join("@a", instance="i")),
            Await("b"),
        ),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, replaced while waiting",
        (
            Start(join(instance="j"), None, "b"),
            Call(heartbeat("@a", instance="i"), 3, until=lambda response: response.error_code == 27),
            Start(join(instance="j"), None, "c"),
            Await("b"),
            Call(join("@a", instance="i")),
            Await("c"),
        ),
        STATIC,
        versions=STATIC_JOINS,
    ),
    # SyncGroup
    Case("sync: leader", (Call(sync("@a", assign=("@a",))),), JOINED),
    Case("sync: leader without assignments", (Call(sync("@a")),), JOINED),
    Case("sync: leader, assignment of an unknown member", (Call(sync("@a", assign=(NO_SUCH_MEMBER,))),), JOINED),
    Case("sync: leader twice", (Call(sync("@a", assign=("@a",))), Call(sync("@a", assign=("@a",)))), JOINED),
    Case("sync: when stable, another assignment", (Call(sync("@a", assign=())),), STABLE),
    Case("sync: no group id", (Call(sync("@a", group="")),), JOINED),
    Case("sync: unknown group", (Call(sync("m", group="$no")),), (COORDINATOR_READY,)),
    Case("sync: unknown member", (Call(sync(NO_SUCH_MEMBER)),), JOINED),
    Case("sync: no member id", (Call(sync("")),), JOINED),
    Case("sync: member that has not joined", (Call(sync("@b")),), SECOND),
    Case("sync: wrong generation", (Call(sync("@a", 0)), Call(sync("@a", 2)), Call(sync("@a", -1))), JOINED),
    Case("sync: empty group", (Call(sync("@a")), Call(sync("@a", 2))), EMPTY),
    Case(
        "sync: protocol type and name",
        (Call(sync("@a", kind="consumer", protocol="range", assign=("@a",))),),
        JOINED,
        versions=(5,),
    ),
    Case("sync: another protocol type", (Call(sync("@a", kind="connect", protocol="range")),), JOINED, versions=(5,)),
    Case("sync: another protocol", (Call(sync("@a", kind="consumer", protocol="roundrobin")),), JOINED, versions=(5,)),
    Case(
        "sync: followers wait",
        (Start(sync("@b", 2), None, "b"), Call(sync("@a", 2, assign=("@a", "@b"))), Await("b")),
        TWO_JOINED,
    ),
    Case(
        "sync: follower without an assignment",
        (Start(sync("@b", 2), None, "b"), Call(sync("@a", 2, assign=("@a",))), Await("b")),
        TWO_JOINED,
    ),
    Case("sync: follower when stable", (Call(sync("@b", 2)),), TWO_STABLE),
    Case(
        "sync: follower sends assignments",
        (Start(sync("@b", 2, assign=("@b",)), None, "b"), Call(sync("@a", 2, assign=("@a",))), Await("b")),
        TWO_JOINED,
    ),
    Case("sync: during a rebalance", (Start(join("@b"), 5, "b"), REBALANCING, Call(sync("@a"))), SECOND),
    Case(
        "sync: leader rejoins while the follower waits",
        (
            Start(sync("@b", 2), None, "b"),
            Start(join("@a", protocols=NEW), 5, "a"),
            Await("b"),
            Call(join("@b"), 5, on="b"),
            Await("a"),
        ),
        TWO_JOINED,
        versions=range(5),
    ),
    Case("sync: static", (Call(sync("@a", instance="i")),), STATIC, versions=STATIC_SYNCS),
    Case(
        "sync: static, unknown instance",
        (Call(sync("@a", instance="j")), Call(sync("", instance="j"))),
        STATIC,
        versions=STATIC_SYNCS,
    ),
    Case(
        "sync: static, fenced",
        (Call(sync("@a", instance="i")), Call(sync("", instance="i"))),
        (*STATIC, Call(join(instance="i"), 5, member="b")),
        versions=STATIC_SYNCS,
    ),
    # Heartbeat
    Case("heartbeat: stable member", (Call(heartbeat("@a")),), STABLE),
    Case("heartbeat: before assignments", (Call(heartbeat("@a")),), JOINED),
    Case(
        "heartbeat: before joining",
        (Call(heartbeat("@a")), Call(heartbeat("@a", -1)), Call(heartbeat("@a", 0))),
        JOINING,
    ),
    Case("heartbeat: no group id", (Call(heartbeat("@a", group="")),), STABLE),
    Case("heartbeat: unknown group", (Call(heartbeat("m", group="$no")),), (COORDINATOR_READY,)),
    Case("heartbeat: unknown member", (Call(heartbeat(NO_SUCH_MEMBER)), Call(heartbeat(""))), STABLE),
    Case(
        "heartbeat: wrong generation",
        (Call(heartbeat("@a", 0)), Call(heartbeat("@a", 2)), Call(heartbeat("@a", -1))),
        STABLE,
    ),
    Case("heartbeat: empty group", (Call(heartbeat("@a")),), EMPTY),
    Case(
        "heartbeat: during a rebalance",
        (
            Start(join("@b"), 5, "b"),
            REBALANCING,
            Call(heartbeat("@a")),
            Call(heartbeat("@a", 2)),
            Call(heartbeat("@b")),
            Call(heartbeat("@b", 2)),
        ),
        SECOND,
    ),
    Case(
        "heartbeat: two members",
        (Call(heartbeat("@a", 2)), Call(heartbeat("@b", 2)), Call(heartbeat("@b", 1))),
        TWO_STABLE,
    ),
    Case(
        "heartbeat: static", (Call(heartbeat("@a", instance="i")), Call(heartbeat("@a"))), STATIC, versions=STATIC_BEATS
    ),
    Case("heartbeat: static, unknown instance", (Call(heartbeat("@a", instance="j")),), STATIC, versions=STATIC_BEATS),
    Case(
        "heartbeat: static, fenced",
        (
            Call(heartbeat("@a", instance="i")),
            Call(heartbeat("@b", instance="i")),
            Call(heartbeat("@b", 2, instance="i")),
        ),
        (*STATIC, Call(join(instance="i"), 5, member="b")),
        versions=STATIC_BEATS,
    ),
    # LeaveGroup
    Case("leave: only member", (leaves("@a"), Call(heartbeat("@a"), 3)), STABLE, versions=LEAVES),
    Case("leave: twice", (leaves("@a"), leaves("@a")), STABLE, versions=LEAVES),
    Case("leave: member that has not joined", (leaves("@a"), leaves("@a")), JOINING, versions=LEAVES),
    Case("leave: before assignments", (leaves("@a"),), JOINED, versions=LEAVES),
    Case("leave: no group id", (leaves("@a", group=""),), STABLE, versions=LEAVES),
    Case("leave: unknown group", (leaves("m", group="$no"),), (COORDINATOR_READY,), versions=LEAVES),
    Case("leave: unknown member", (leaves(NO_SUCH_MEMBER), leaves("")), STABLE, versions=LEAVES),
    Case("leave: empty group", (leaves("@a"),), EMPTY, versions=LEAVES),
    Case(
        "leave: follower of two members",
        (leaves("@b"), Call(heartbeat("@a", 2), 3), Call(join("@a"), 5)),
        TWO_STABLE,
        versions=LEAVES,
    ),
    Case(
        "leave: leader of two members",
        (leaves("@a"), Call(heartbeat("@b", 2), 3), Call(join("@b"), 5)),
        TWO_STABLE,
        versions=LEAVES,
    ),
    Case(
        "leave: several members",
        (leaves_many(("@a", None), ("@b", None), (NO_SUCH_MEMBER, None)), Call(heartbeat("@a", 2), 3)),
        TWO_STABLE,
        versions=STATIC_LEAVES,
    ),
    Case("leave: no members", (leaves_many(),), STABLE, versions=STATIC_LEAVES),
    Case("leave: same member twice", (leaves_many(("@a", None), ("@a", None)),), STABLE, versions=STATIC_LEAVES),
    Case(
        "leave: by instance id",
        (leaves_many(("", "i")), Call(heartbeat("@a", instance="i"), 3)),
        STATIC,
        versions=STATIC_LEAVES,
    ),
    Case("leave: by instance id and member id", (leaves_many(("@a", "i")),), STATIC, versions=STATIC_LEAVES),
    Case("leave: static member by member id", (leaves("@a"),), STATIC, versions=LEAVES),
    Case("leave: unknown instance id", (leaves_many(("", "j"), ("@a", "j")),), STATIC, versions=STATIC_LEAVES),
    Case(
        "leave: fenced static member",
        (leaves_many(("@a", "i")), leaves_many(("@b", "i"))),
        (*STATIC, Call(join(instance="i"), 5, member="b")),
        versions=STATIC_LEAVES,
    ),
]
