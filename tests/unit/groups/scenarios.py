"""Scenarios of requests to a group coordinator; Apache Kafka's responses are in `tests/data/group_dialogues.json`.

Groups are limited to three members and sessions may be short, like on the broker that was recorded.
"""

from collections.abc import Callable
from typing import Any

from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from tests.unit.groups.group_requests import (
    BOTH,
    OTHER,
    REVERSED,
    commit,
    delete,
    delete_offset,
    describe,
    fetch,
    heartbeat,
    join_request,
    leave,
    stable_group,
    start_join,
    sync,
)

# Lifecycle


def single_member_lifecycle(run: Any, version: int) -> None:
    """One member joins, syncs, sends a heartbeat, commits and leaves; then the group is deleted. All at one version."""
    ids = stable_group(run, "life", version)
    member, generation = ids["a"], ids["generation"]
    heartbeat(run, "a", "life", member, generation, min(version, 4))
    commit(run, "a", "life", version + 1 if version else 2, member, generation)
    fetch(run, "a", "life", version=9 if version > 8 else 8)
    describe(run, "o", "life", version=min(version, 6))
    delete(run, "o", "life", version=min(version, 2))
    leave(run, "a", "life", min(version, 5), (member, None))
    describe(run, "o", "life", version=min(version, 6))
    delete(run, "o", "life", version=min(version, 2))
    delete(run, "o", "life", version=min(version, 2))
    describe(run, "o", "life", version=min(version, 6))


def second_member_joins(run: Any, version: int) -> None:
    """The first member learns of it from its heartbeat, may still commit, and both get the next generation."""
    ids = stable_group(run, "two", version)
    start_join(run, "b", "two", version)
    heartbeat(run, "a", "two", ids["a"], ids["generation"], 4)
    commit(run, "a", "two", 9, ids["a"], ids["generation"])
    sync(run, "a", "two", ids["a"], ids["generation"], 5)
    run.receive("a")
    describe(run, "o", "two")
    delete_offset(run, "o", "two", "t1", "t2")
    run.send("a", join_request(run, "two", ids["a"]), version)
    first, second = run.receive("a"), run.receive("b")
    describe(run, "o", "two")
    commit(run, "a", "two", 9, ids["a"], first.generation_id)
    heartbeat(run, "a", "two", ids["a"], first.generation_id, 4)
    sync(run, "b", "two", second.member_id, second.generation_id, 5, {second.member_id: b"not the leader"})
    sync(run, "a", "two", first.member_id, first.generation_id, 5, {second.member_id: b"yours"})
    run.receive("a")
    run.receive("b")
    describe(run, "o", "two")
    leave(run, "b", "two", 4, (second.member_id, None))
    heartbeat(run, "a", "two", ids["a"], first.generation_id, 4)
    heartbeat(run, "b", "two", second.member_id, first.generation_id, 4)


def member_rejoins(run: Any, version: int) -> None:
    """An unchanged follower gets the current generation again; the leader or a changed member starts a rebalance."""
    ids = stable_group(run, "again", version, ("a", "b"))
    run.call("b", join_request(run, "again", ids["b"]), version)
    run.send("b", join_request(run, "again", ids["b"], protocols=BOTH), version)
    heartbeat(run, "a", "again", ids["a"], ids["generation"], 4)
    run.send("a", join_request(run, "again", ids["a"]), version)
    run.receive("b")
    generation = run.receive("a").generation_id
    run.call("b", join_request(run, "again", ids["b"], protocols=BOTH), version)
    run.call("a", join_request(run, "again", ids["a"]), version)
    sync(run, "b", "again", ids["b"], generation, 5)
    run.send("a", join_request(run, "again", ids["a"], protocols=BOTH), version)
    run.receive("b")
    run.send("b", join_request(run, "again", ids["b"], protocols=BOTH), version)
    run.receive("a")
    run.receive("b")


def protocol_selection(run: Any, version: int) -> None:
    """The protocol preferred by most members, among those that all support."""
    start_join(run, "a", "votes", version, protocols=BOTH)
    first = run.receive("a").member_id
    start_join(run, "b", "votes", version, protocols=REVERSED)
    run.send("a", join_request(run, "votes", first, protocols=BOTH), version)
    run.receive("a")
    second = run.receive("b").member_id
    run.call("c", join_request(run, "votes", protocols=OTHER), version)
    start_join(run, "c", "votes", version, protocols=REVERSED[:1])
    run.send("a", join_request(run, "votes", first, protocols=BOTH), version)
    run.send("b", join_request(run, "votes", second, protocols=REVERSED), version)
    for client in ("a", "b", "c"):
        run.receive(client)


# Rejected requests


def rejected_joins(run: Any, version: int) -> None:
    run.call("a", join_request(run, "refused", protocols=()), version)
    run.call("a", join_request(run, "refused", kind=""), version)
    run.call("a", join_request(run, "refused", session_ms=499), version)
    run.call("a", join_request(run, "refused", session_ms=1_800_001), version)
    run.call("a", join_request(run, "refused", "nobody"), version)
    run.call("a", join_request(run, "absent", "nobody"), version)
    empty = join_request(run, "refused")
    empty.group_id = ""
    run.call("a", empty, version)
    describe(run, "o", "refused", "absent")
    ids = stable_group(run, "refused", version)
    run.call("b", join_request(run, "refused", kind="connect"), version)
    run.call("b", join_request(run, "refused", protocols=OTHER), version)
    run.call("b", join_request(run, "refused", "nobody"), version)
    run.call("a", join_request(run, "refused", ids["a"], protocols=OTHER), version)


def rejected_syncs(run: Any, version: int) -> None:
    sync(run, "a", "absent", "nobody", 1, version)
    run.receive("a")
    start_join(run, "a", "syncs", 7)
    member = run.receive("a").member_id
    for name, generation in ((member, 0), (member, 2), ("nobody", 1), (member, -1)):
        sync(run, "a", "syncs", name, generation, version)
        run.receive("a")
    if version >= 5:
        for options in (
            {"protocol_type": "connect"},
            {"protocol_name": "sticky"},
            {"protocol_type": None},
            {"protocol_name": None},
        ):
            sync(run, "a", "syncs", member, 1, version, None, **options)
            run.receive("a")
    if version >= 3:
        sync(run, "a", "syncs", member, 1, version, None, group_instance_id="static")
        run.receive("a")
    sync(run, "a", "syncs", member, 1, version)
    run.receive("a")
    sync(run, "a", "syncs", member, 1, version, {member: b"late"})
    run.receive("a")
    run.call("a", SyncGroupRequest(group_id="", generation_id=1, member_id=member), version)
    run.call(
        "a", SyncGroupRequest(group_id="", member_id=member, protocol_type="consumer", protocol_name="range"), version
    )


def rejected_heartbeats(run: Any, version: int) -> None:
    heartbeat(run, "a", "absent", "nobody", 1, version)
    ids = stable_group(run, "beats")
    for member, generation in ((ids["a"], 0), (ids["a"], 2), ("nobody", 1), ("", 1), (ids["a"], 1)):
        heartbeat(run, "a", "beats", member, generation, version)
    if version >= 3:
        heartbeat(run, "a", "beats", ids["a"], 1, version, "static")
    run.call("a", HeartbeatRequest(group_id="", generation_id=1, member_id=ids["a"]), version)


def rejected_leaves(run: Any, version: int) -> None:
    leave(run, "a", "absent", version, ("nobody", None))
    ids = stable_group(run, "leaves")
    leave(run, "a", "leaves", version, ("nobody", None))
    leave(run, "a", "leaves", version, ("", None))
    pending = run.call("b", join_request(run, "leaves"), 4).member_id
    leave(run, "b", "leaves", version, (pending, None))
    run.call("b", join_request(run, "leaves", pending), 4)
    if version >= 3:
        leave(run, "a", "leaves", version, (ids["a"], "static"), ("", "static"), ("nobody", "static"))
        leave(run, "a", "leaves", version)
        leave(run, "a", "leaves", version, (ids["a"], None), (ids["a"], None))
    else:
        leave(run, "a", "leaves", version, (ids["a"], None))
    describe(run, "o", "leaves")


def rejected_commits(run: Any, version: int) -> None:
    commit(run, "a", "absent", version, "nobody", 1)
    commit(run, "a", "absent", version, "", 0)
    describe(run, "o", "absent")
    ids = stable_group(run, "commits")
    member = ids["a"]
    for name, generation in (
        ("", -1),
        ("nobody", -1),
        (member, -1),
        (member, 0),
        (member, 2),
        ("nobody", 1),
        ("", 1),
        (member, 1),
    ):
        commit(run, "a", "commits", version, name, generation)
    if version >= 7:
        commit(run, "a", "commits", version, member, 1, instance="static")
        commit(run, "a", "commits", version, "", -1, instance="static")
    commit(run, "a", "commits", version, member, 1, metadata="x" * 100)
    commit(run, "a", "commits", version, member, 1, metadata="x" * 101)
    commit(run, "a", "commits", version, member, 1, metadata="ž" * 100)
    commit(run, "a", "commits", version, member, 1, metadata=None)
    commit(run, "a", "commits", version, member, 1, offset=-5)
    fetch(run, "a", "commits")
    leave(run, "a", "commits", 3, (member, None))
    commit(run, "a", "commits", version, member, 1)
    commit(run, "a", "commits", version, "", 2)
    commit(run, "a", "commits", version, "anybody", -1, offset=9)
    fetch(run, "a", "commits")


# Offsets without members


def offsets_without_members(run: Any, version: int) -> None:
    """A client stores offsets in a group without members; the first commit creates the group."""
    fetch(run, "a", "simple", "none", topics=("t1", "t2"), version=version)
    fetch(run, "a", "simple", topics=None, version=version)
    commit(run, "a", "simple", version, topic="t1")
    commit(run, "a", "simple", version, topic="t1", partition=1, offset=0, metadata="")
    commit(run, "a", "simple", version, topic="t2", offset=2**62)
    fetch(run, "a", "simple", "none", topics=("t1", "t2"), version=version)
    fetch(run, "a", "simple", topics=None, version=version, stable=True)
    fetch(run, "a", "simple", topics=(), version=version)
    describe(run, "o", "simple", version=6)
    delete_offset(run, "o", "none", "t1")
    delete_offset(run, "o", "simple", "t1")
    fetch(run, "a", "simple", topics=None, version=version)
    delete(run, "o", "simple", "none", "simple")
    fetch(run, "a", "simple", topics=None, version=version)


def commit_with_retention_time(run: Any, version: int) -> None:
    """Old clients set a retention time per commit."""
    commit(run, "a", "kept", version, retention_ms=100_000)
    commit(run, "a", "kept", version, partition=1, retention_ms=0)
    fetch(run, "a", "kept")


def offsets_of_other_protocols(run: Any, version: int) -> None:
    """Offsets of a group with another protocol type cannot be deleted while it has members."""
    ids = stable_group(run, "connect", version, kind="connect", protocols=OTHER)
    commit(run, "a", "connect", 8, ids["a"], 1)
    delete_offset(run, "o", "connect", "t1")
    leave(run, "a", "connect", 3, (ids["a"], None))
    delete_offset(run, "o", "connect", "t1")
    fetch(run, "a", "connect")
    describe(run, "o", "connect")


def unreadable_subscriptions(run: Any, version: int) -> None:
    """A consumer group with unreadable subscriptions counts as subscribed to all topics."""
    stable_group(run, "unreadable", version, protocols=(("range", b"\x00"),))
    delete_offset(run, "o", "unreadable", "t1")


# Static members


def static_member_restarts(run: Any, version: int) -> None:
    """A static member returns with a new id; its old id is fenced everywhere, without a rebalance."""
    start_join(run, "a", "static", version, instance="one")
    first = run.receive("a")
    start_join(run, "b", "static", version, instance="two")
    run.send("a", join_request(run, "static", first.member_id, instance="one"), version)
    run.receive("a")
    second = run.receive("b")
    generation = second.generation_id
    sync(run, "b", "static", second.member_id, generation, 5, group_instance_id="two")
    sync(
        run,
        "a",
        "static",
        first.member_id,
        generation,
        5,
        {first.member_id: b"1", second.member_id: b"2"},
        group_instance_id="one",
    )
    run.receive("a")
    run.receive("b")
    again = run.call("b", join_request(run, "static", instance="two"), version)
    sync(run, "b", "static", again.member_id, generation, 5, group_instance_id="two")
    run.receive("b")
    heartbeat(run, "a", "static", first.member_id, generation, 4, "one")
    for member in (second.member_id, again.member_id, ""):
        heartbeat(run, "b", "static", member, generation, 4, "two")
    run.call("b", join_request(run, "static", second.member_id, instance="two"), version)
    sync(run, "b", "static", second.member_id, generation, 5, group_instance_id="two")
    run.receive("b")
    commit(run, "b", "static", 8, second.member_id, generation, instance="two")
    commit(run, "b", "static", 8, again.member_id, generation, instance="two")
    leave(run, "b", "static", 4, (second.member_id, "two"))
    leader = run.call("a", join_request(run, "static", instance="one"), version)
    heartbeat(run, "a", "static", leader.member_id, generation, 4, "one")
    describe(run, "o", "static")
    leave(run, "o", "static", 4, ("", "two"), ("", "none"))
    heartbeat(run, "a", "static", leader.member_id, generation, 4, "one")


def static_member_changes_protocols(run: Any, version: int) -> None:
    """A static member that returns with other protocols starts a rebalance if the selected protocol changes."""
    start_join(run, "a", "change", version, instance="one", protocols=BOTH)
    first = run.receive("a")
    sync(run, "a", "change", first.member_id, first.generation_id, 5, {first.member_id: b"1"}, group_instance_id="one")
    run.receive("a")
    run.call("a", join_request(run, "change", instance="one", protocols=REVERSED), version)


def duplicate_static_member_joins(run: Any, version: int) -> None:
    """Two clients with the same instance id: the first to join is fenced."""
    ids = stable_group(run, "twice", version)
    run.send("b", join_request(run, "twice", instance="one"), version)
    run.send("c", join_request(run, "twice", instance="one"), version)
    run.receive("b")
    run.send("a", join_request(run, "twice", ids["a"]), version)
    run.receive("a")
    run.receive("c")
    describe(run, "o", "twice")


def static_member_replaced_before_sync(run: Any, version: int) -> None:
    start_join(run, "a", "between", version, instance="one")
    first = run.receive("a")
    second = run.call("b", join_request(run, "between", instance="one"), version)
    sync(run, "a", "between", first.member_id, first.generation_id, 5, group_instance_id="one")
    run.receive("a")
    sync(run, "b", "between", second.member_id, second.generation_id, 5, group_instance_id="one")
    run.receive("b")


def static_member_misses_rebalance(run: Any, version: int) -> None:
    """It stays a member, with assignments, until its session times out, and may rejoin later."""
    start_join(run, "a", "misses", version, instance="one", rebalance_ms=800)
    first = run.receive("a")
    start_join(run, "b", "misses", version, rebalance_ms=800)
    run.wait(1_500)
    joined = run.receive("b")
    sync(
        run,
        "b",
        "misses",
        joined.member_id,
        joined.generation_id,
        5,
        {first.member_id: b"absent", joined.member_id: b"here"},
    )
    run.receive("b")
    heartbeat(run, "a", "misses", first.member_id, joined.generation_id, 4, "one")
    sync(run, "a", "misses", first.member_id, joined.generation_id, 5, group_instance_id="one")
    run.receive("a")
    leave(run, "b", "misses", 4, (joined.member_id, None))
    describe(run, "o", "misses")
    run.wait(1_500)
    describe(run, "o", "misses")
    run.call("a", join_request(run, "misses", first.member_id, instance="one", rebalance_ms=800), version)


# Limits and time


def group_size_limit(run: Any, version: int) -> None:
    """A fourth member is rejected."""
    ids = stable_group(run, "many", version, ("a", "b", "c"))
    run.call("d", join_request(run, "many"), version)
    run.call("d", join_request(run, "many", instance="static"), version)
    run.send("a", join_request(run, "many", ids["a"]), version)
    run.call("d", join_request(run, "many"), version)
    describe(run, "o", "many")


def session_timeout(run: Any, version: int) -> None:
    """A member without heartbeats is removed, which empties the group."""
    ids = stable_group(run, "silent", version, session_ms=600)
    heartbeat(run, "a", "silent", ids["a"], 1, 4)
    run.wait(1500)
    heartbeat(run, "a", "silent", ids["a"], 1, 4)
    describe(run, "o", "silent")


def rebalance_timeout(run: Any, version: int) -> None:
    """A member that does not rejoin in time is not in the next generation."""
    ids = stable_group(run, "late", version, rebalance_ms=700)
    start_join(run, "b", "late", version, rebalance_ms=700)
    run.wait(1500)
    joined = run.receive("b")
    heartbeat(run, "a", "late", ids["a"], joined.generation_id, 4)
    sync(run, "b", "late", joined.member_id, joined.generation_id, 5, {joined.member_id: b"all"})
    run.receive("b")


def sync_timeout(run: Any, version: int) -> None:
    """A member that joined and does not sync within its rebalance timeout is removed."""
    start_join(run, "a", "nosync", version, rebalance_ms=700)
    joined = run.receive("a")
    heartbeat(run, "a", "nosync", joined.member_id, joined.generation_id, 4)
    run.wait(1500)
    heartbeat(run, "a", "nosync", joined.member_id, joined.generation_id, 4)
    describe(run, "o", "nosync")


def pending_member_timeout(run: Any, version: int) -> None:
    """A member id that is not used within the session timeout becomes unknown."""
    member = run.call("a", join_request(run, "pending", session_ms=600), version).member_id
    describe(run, "o", "pending")
    run.wait(1500)
    run.call("a", join_request(run, "pending", member, session_ms=600), version)
    late = run.call("a", join_request(run, "pending", session_ms=600), version).member_id
    run.call("a", join_request(run, "pending", late, session_ms=600, instance="static"), version)
    delete(run, "o", "pending")
    run.call("a", join_request(run, "pending", late, session_ms=600), version)


SCENARIOS: dict[Callable[[Any, int], None], tuple[int, ...]] = {
    single_member_lifecycle: tuple(range(10)),
    second_member_joins: (5, 9),
    member_rejoins: (4, 6, 7, 9),
    protocol_selection: (0, 5, 9),
    rejected_joins: (0, 3, 4, 6, 7, 9),
    rejected_syncs: (0, 2, 3, 4, 5),
    rejected_heartbeats: (0, 2, 3, 4),
    rejected_leaves: (0, 2, 3, 4, 5),
    rejected_commits: (2, 6, 7, 8, 9, 10),
    offsets_without_members: (8, 9, 10),
    commit_with_retention_time: (2, 4),
    offsets_of_other_protocols: (7,),
    unreadable_subscriptions: (7,),
    static_member_restarts: (5, 6, 7, 8, 9),
    static_member_changes_protocols: (5, 9),
    duplicate_static_member_joins: (5, 6, 9),
    static_member_replaced_before_sync: (5, 9),
    static_member_misses_rebalance: (5, 9),
    group_size_limit: (5, 9),
    session_timeout: (5,),
    rebalance_timeout: (5,),
    sync_timeout: (5,),
    pending_member_timeout: (5, 9),
}
"""Scenarios, with the API versions to run each at."""
