"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: members come, share and go."""

from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.compat.catalog.case import Ask, Await, Case, Leave, Start
from tests.compat.catalog.group_steps import (
    BOTH,
    EMPTY,
    FOUND,
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
REBALANCING = Ask(heartbeat("@a"), 3, until=lambda answer: answer.error_code == 27)


def leaves(member: str, *, group: str = "$g", instance: str | None = None) -> Ask:
    return Ask(lambda version: leave_at(version, member, group=group, instance=instance))


def leaves_many(*members: tuple[str, str | None]) -> Ask:
    return Ask(
        LeaveGroupRequest(
            group_id="$g", members=[MemberIdentity(member, instance, "because") for member, instance in members]
        )
    )


CASES = [
    # JoinGroup
    Case("join: first", (Ask(join(), member="a"),), (FOUND,)),
    Case("join: first, with the id that was given", (Ask(join("@a")),), JOINING),
    Case("join: several protocols", (Ask(join("@a", protocols=REVERSED)),), JOINING),
    Case("join: an id that nobody has", (Ask(join(NO_SUCH_MEMBER)),), (FOUND,)),
    Case("join: an id that nobody has, to a group with members", (Ask(join(NO_SUCH_MEMBER)),), STABLE),
    Case("join: no group id", (Ask(join(group="")),), (FOUND,)),
    Case("join: no protocol type", (Ask(join("@a", kind="")),), JOINING),
    Case("join: no protocols", (Ask(join("@a", protocols=())),), JOINING),
    Case("join: neither protocol type nor protocols", (Ask(join("@a", kind="", protocols=())),), JOINING),
    Case("join: new, no protocols", (Ask(join(protocols=())),), (FOUND,)),
    Case("join: new, no protocol type", (Ask(join(kind="")),), (FOUND,)),
    Case(
        "join: session timeout too short",
        (Ask(join(session_ms=5999)), Ask(join(session_ms=0)), Ask(join(session_ms=-1))),
        (FOUND,),
    ),
    Case("join: session timeout too long", (Ask(join(session_ms=1_800_001)),), (FOUND,)),
    Case("join: session timeout at the limits", (Ask(join("@a", session_ms=6000)),), JOINING),
    Case("join: negative rebalance timeout", (Ask(join("@a", rebalance_ms=-5)),), JOINING, versions=(1, 5, 9)),
    Case("join: again, as before", (Ask(join("@a")),), JOINED),
    Case("join: again when stable, as before", (Ask(join("@a")),), STABLE),
    Case("join: again when stable, with another subscription", (Ask(join("@a", protocols=NEW)),), STABLE),
    Case("join: again when stable, with another protocol", (Ask(join("@a", protocols=REVERSED[:1])),), STABLE),
    Case("join: again with an other protocol type", (Ask(join("@a", kind="connect")),), STABLE),
    Case(
        "join: another protocol type",
        (Ask(join("", kind="connect")), Ask(join(NO_SUCH_MEMBER, kind="connect"))),
        STABLE,
    ),
    Case("join: no protocol in common", (Ask(join(protocols=STICKY)),), STABLE),
    Case("join: to an empty group", (Ask(join(), member="b"),), EMPTY),
    Case("join: to an empty group, another type", (Ask(join(kind="connect"), member="b"),), EMPTY),
    Case("join: to an empty group, as who left", (Ask(join("@a")),), EMPTY),
    Case("join: second member", (Start(join("@b"), None, "b"), REBALANCING, Ask(join("@a")), Await("b")), SECOND),
    Case(
        "join: second member, in the other order of protocols",
        (Start(join("@b", protocols=REVERSED), None, "b"), REBALANCING, Ask(join("@a", protocols=BOTH)), Await("b")),
        SECOND,
    ),
    Case(
        "join: second member, a protocol that both know",
        (Start(join("@b", protocols=REVERSED), None, "b"), REBALANCING, Ask(join("@a")), Await("b")),
        SECOND,
    ),
    Case("join: the follower again, when stable", (Ask(join("@b"), on="b"),), TWO_STABLE),
    Case("join: the follower again, before assignments", (Ask(join("@b"), on="b"), Ask(join("@a"))), TWO_JOINED),
    Case(
        "join: the follower with another subscription",
        (
            Start(join("@b", protocols=NEW), None, "b"),
            Ask(heartbeat("@a", 2), 3, until=lambda answer: answer.error_code == 27),
            Ask(join("@a")),
            Await("b"),
        ),
        TWO_STABLE,
    ),
    Case(
        "join: the leader again, when stable",
        (
            Start(join("@a"), None, "a"),
            Ask(heartbeat("@b", 2), 3, until=lambda answer: answer.error_code == 27),
            Ask(join("@b")),
            Await("a"),
        ),
        TWO_STABLE,
    ),
    Case(
        "join: twice at once",
        (
            Start(join("@b"), None, "b"),
            REBALANCING,
            Start(join("@b"), None, "c"),
            Ask(heartbeat("@b"), 3),
            Ask(join("@a")),
            Await("c"),
        ),
        SECOND,
        versions=(5, 9),
    ),
    Case("join: gone while it waits", (Start(join("@b"), None, "b"), REBALANCING, Leave("b"), Ask(join("@a"))), SECOND),
    Case(
        "join: left while it waits",
        (Start(join("@b"), None, "b"), REBALANCING, Ask(leave_at(5, "@b"), 5), Await("b"), Ask(join("@a"))),
        SECOND,
    ),
    # static members
    Case("join: static, first", (Ask(join(instance="i"), member="a"),), (FOUND,), versions=STATIC_JOINS),
    Case(
        "join: static, an id that nobody has",
        (Ask(join(NO_SUCH_MEMBER, instance="i")),),
        (FOUND,),
        versions=STATIC_JOINS,
    ),
    Case("join: static, known id", (Ask(join("@a", instance="i")),), STATIC, versions=STATIC_JOINS),
    Case(
        "join: static, restarted",
        (
            Ask(join(instance="i"), member="b"),
            Ask(heartbeat("@a", instance="i"), 3),
            Ask(heartbeat("@b", instance="i"), 3),
        ),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, restarted with another subscription",
        (Ask(join(instance="i", protocols=NEW), member="b"), Ask(heartbeat("@a", instance="i"), 3)),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, restarted with another protocol",
        (Ask(join(instance="i", protocols=STICKY), member="b"),),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, fenced",
        (Ask(join(instance="i"), 5, member="b"), Ask(join("@a", instance="i"))),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, another's id",
        (Ask(join("@b", instance="i")),),
        (*STATIC, Ask(join(), 5, member="b")),
        versions=STATIC_JOINS,
    ),
    Case("join: static, as a dynamic member", (Ask(join("@a")),), STATIC, versions=JOINS),
    *(
        Case(
            f"join: static, an instance id that is no name: {name[:9]!r}",
            (Ask(join(instance=name)),),
            (FOUND,),
            versions=STATIC_JOINS,
        )
        for name in ("", "a/b", "..", "x" * 250)
    ),
    Case(
        "join: static, second member, as the first waits",
        (
            Start(join(instance="j"), None, "b"),
            Ask(heartbeat("@a", instance="i"), 3, until=lambda answer: answer.error_code == 27),
            Ask(join("@a", instance="i")),
            Await("b"),
        ),
        STATIC,
        versions=STATIC_JOINS,
    ),
    Case(
        "join: static, replaced while it waits",
        (
            Start(join(instance="j"), None, "b"),
            Ask(heartbeat("@a", instance="i"), 3, until=lambda answer: answer.error_code == 27),
            Start(join(instance="j"), None, "c"),
            Await("b"),
            Ask(join("@a", instance="i")),
            Await("c"),
        ),
        STATIC,
        versions=STATIC_JOINS,
    ),
    # SyncGroup
    Case("sync: the leader", (Ask(sync("@a", assign=("@a",))),), JOINED),
    Case("sync: the leader, nothing assigned", (Ask(sync("@a")),), JOINED),
    Case("sync: the leader, assigned to another", (Ask(sync("@a", assign=(NO_SUCH_MEMBER,))),), JOINED),
    Case("sync: the leader, twice", (Ask(sync("@a", assign=("@a",))), Ask(sync("@a", assign=("@a",)))), JOINED),
    Case("sync: when stable, another assignment", (Ask(sync("@a", assign=())),), STABLE),
    Case("sync: no group id", (Ask(sync("@a", group="")),), JOINED),
    Case("sync: an unknown group", (Ask(sync("m", group="$no")),), (FOUND,)),
    Case("sync: an unknown member", (Ask(sync(NO_SUCH_MEMBER)),), JOINED),
    Case("sync: no member id", (Ask(sync("")),), JOINED),
    Case("sync: an id that has not joined", (Ask(sync("@b")),), SECOND),
    Case("sync: wrong generation", (Ask(sync("@a", 0)), Ask(sync("@a", 2)), Ask(sync("@a", -1))), JOINED),
    Case("sync: of an empty group", (Ask(sync("@a")), Ask(sync("@a", 2))), EMPTY),
    Case(
        "sync: protocol type and name",
        (Ask(sync("@a", kind="consumer", protocol="range", assign=("@a",))),),
        JOINED,
        versions=(5,),
    ),
    Case("sync: another protocol type", (Ask(sync("@a", kind="connect", protocol="range")),), JOINED, versions=(5,)),
    Case("sync: another protocol", (Ask(sync("@a", kind="consumer", protocol="roundrobin")),), JOINED, versions=(5,)),
    Case(
        "sync: followers wait",
        (Start(sync("@b", 2), None, "b"), Ask(sync("@a", 2, assign=("@a", "@b"))), Await("b")),
        TWO_JOINED,
    ),
    Case(
        "sync: followers get nothing",
        (Start(sync("@b", 2), None, "b"), Ask(sync("@a", 2, assign=("@a",))), Await("b")),
        TWO_JOINED,
    ),
    Case("sync: the follower afterwards", (Ask(sync("@b", 2)),), TWO_STABLE),
    Case(
        "sync: the follower assigns",
        (Start(sync("@b", 2, assign=("@b",)), None, "b"), Ask(sync("@a", 2, assign=("@a",))), Await("b")),
        TWO_JOINED,
    ),
    Case("sync: while it is rebalanced", (Start(join("@b"), 5, "b"), REBALANCING, Ask(sync("@a"))), SECOND),
    Case(
        "sync: another joins while it waits",
        (
            Start(sync("@b", 2), None, "b"),
            Start(join("@a", protocols=NEW), 5, "a"),
            Await("b"),
            Ask(join("@b"), 5, on="b"),
            Await("a"),
        ),
        TWO_JOINED,
        versions=range(5),
    ),
    Case("sync: static", (Ask(sync("@a", instance="i")),), STATIC, versions=STATIC_SYNCS),
    Case(
        "sync: static, unknown instance",
        (Ask(sync("@a", instance="j")), Ask(sync("", instance="j"))),
        STATIC,
        versions=STATIC_SYNCS,
    ),
    Case(
        "sync: static, fenced",
        (Ask(sync("@a", instance="i")), Ask(sync("", instance="i"))),
        (*STATIC, Ask(join(instance="i"), 5, member="b")),
        versions=STATIC_SYNCS,
    ),
    # Heartbeat
    Case("heartbeat: of a member", (Ask(heartbeat("@a")),), STABLE),
    Case("heartbeat: before assignments", (Ask(heartbeat("@a")),), JOINED),
    Case(
        "heartbeat: before joining", (Ask(heartbeat("@a")), Ask(heartbeat("@a", -1)), Ask(heartbeat("@a", 0))), JOINING
    ),
    Case("heartbeat: no group id", (Ask(heartbeat("@a", group="")),), STABLE),
    Case("heartbeat: an unknown group", (Ask(heartbeat("m", group="$no")),), (FOUND,)),
    Case("heartbeat: an unknown member", (Ask(heartbeat(NO_SUCH_MEMBER)), Ask(heartbeat(""))), STABLE),
    Case(
        "heartbeat: wrong generation",
        (Ask(heartbeat("@a", 0)), Ask(heartbeat("@a", 2)), Ask(heartbeat("@a", -1))),
        STABLE,
    ),
    Case("heartbeat: of an empty group", (Ask(heartbeat("@a")),), EMPTY),
    Case(
        "heartbeat: while it is rebalanced",
        (
            Start(join("@b"), 5, "b"),
            REBALANCING,
            Ask(heartbeat("@a")),
            Ask(heartbeat("@a", 2)),
            Ask(heartbeat("@b")),
            Ask(heartbeat("@b", 2)),
        ),
        SECOND,
    ),
    Case("heartbeat: of two", (Ask(heartbeat("@a", 2)), Ask(heartbeat("@b", 2)), Ask(heartbeat("@b", 1))), TWO_STABLE),
    Case(
        "heartbeat: static", (Ask(heartbeat("@a", instance="i")), Ask(heartbeat("@a"))), STATIC, versions=STATIC_BEATS
    ),
    Case("heartbeat: static, unknown instance", (Ask(heartbeat("@a", instance="j")),), STATIC, versions=STATIC_BEATS),
    Case(
        "heartbeat: static, fenced",
        (Ask(heartbeat("@a", instance="i")), Ask(heartbeat("@b", instance="i")), Ask(heartbeat("@b", 2, instance="i"))),
        (*STATIC, Ask(join(instance="i"), 5, member="b")),
        versions=STATIC_BEATS,
    ),
    # LeaveGroup
    Case("leave: a member", (leaves("@a"), Ask(heartbeat("@a"), 3)), STABLE, versions=LEAVES),
    Case("leave: twice", (leaves("@a"), leaves("@a")), STABLE, versions=LEAVES),
    Case("leave: who has not joined", (leaves("@a"), leaves("@a")), JOINING, versions=LEAVES),
    Case("leave: before assignments", (leaves("@a"),), JOINED, versions=LEAVES),
    Case("leave: no group id", (leaves("@a", group=""),), STABLE, versions=LEAVES),
    Case("leave: an unknown group", (leaves("m", group="$no"),), (FOUND,), versions=LEAVES),
    Case("leave: an unknown member", (leaves(NO_SUCH_MEMBER), leaves("")), STABLE, versions=LEAVES),
    Case("leave: of an empty group", (leaves("@a"),), EMPTY, versions=LEAVES),
    Case(
        "leave: one of two", (leaves("@b"), Ask(heartbeat("@a", 2), 3), Ask(join("@a"), 5)), TWO_STABLE, versions=LEAVES
    ),
    Case(
        "leave: the leader of two",
        (leaves("@a"), Ask(heartbeat("@b", 2), 3), Ask(join("@b"), 5)),
        TWO_STABLE,
        versions=LEAVES,
    ),
    Case(
        "leave: several",
        (leaves_many(("@a", None), ("@b", None), (NO_SUCH_MEMBER, None)), Ask(heartbeat("@a", 2), 3)),
        TWO_STABLE,
        versions=STATIC_LEAVES,
    ),
    Case("leave: nobody", (leaves_many(),), STABLE, versions=STATIC_LEAVES),
    Case("leave: one twice", (leaves_many(("@a", None), ("@a", None)),), STABLE, versions=STATIC_LEAVES),
    Case(
        "leave: by instance",
        (leaves_many(("", "i")), Ask(heartbeat("@a", instance="i"), 3)),
        STATIC,
        versions=STATIC_LEAVES,
    ),
    Case("leave: by instance and id", (leaves_many(("@a", "i")),), STATIC, versions=STATIC_LEAVES),
    Case("leave: by id, a static member", (leaves("@a"),), STATIC, versions=LEAVES),
    Case("leave: an unknown instance", (leaves_many(("", "j"), ("@a", "j")),), STATIC, versions=STATIC_LEAVES),
    Case(
        "leave: fenced",
        (leaves_many(("@a", "i")), leaves_many(("@b", "i"))),
        (*STATIC, Ask(join(instance="i"), 5, member="b")),
        versions=STATIC_LEAVES,
    ),
]
