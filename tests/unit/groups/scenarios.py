"""What members, operators and others say to a coordinator; the answers of Apache Kafka to each are kept in `tests/data`.

Groups have at most three members and sessions may be short, as the broker of the recording was started so.
"""

from collections.abc import Callable
from typing import Any

from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

RANGE = (("range", b"\x00\x00\x00\x00\x00\x01\x00\x02t1\xff\xff\xff\xff"),)
BOTH = (*RANGE, ("roundrobin", b"\x00\x00\x00\x00\x00\x01\x00\x02t1\xff\xff\xff\xff"))
REVERSED = tuple(reversed(BOTH))
OTHER = (("sticky", b"other"),)
SESSION_MS = 30_000


def join_request(
    talk: Any,
    group: str,
    member_id: str = "",
    *,
    protocols: Any = RANGE,
    kind: str = "consumer",
    instance: str | None = None,
    session_ms: int = SESSION_MS,
    rebalance_ms: int = 60_000,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=talk.group(group), session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms, member_id=member_id,
        group_instance_id=instance, protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )  # fmt: skip


def start_join(talk: Any, who: str, group: str, version: int, **options: Any) -> str:
    """A new member sends its join, after it was given an id where the version asks for it; the answer is still to be received."""
    member_id = ""
    if version >= 4 and options.get("instance") is None:
        member_id = talk.ask(who, join_request(talk, group, **options), version).member_id
    talk.send(who, join_request(talk, group, member_id, **options), version)
    return member_id


def sync(
    talk: Any,
    who: str,
    group: str,
    member_id: str,
    generation: int,
    version: int,
    assign: dict[str, bytes] | None = None,
    **options: Any,
) -> None:
    if version >= 5:
        options = {"protocol_type": "consumer", "protocol_name": "range", **options}
    assignments = [SyncGroupRequestAssignment(member_id=name, assignment=part) for name, part in (assign or {}).items()]
    talk.send(who, SyncGroupRequest(
        group_id=talk.group(group), generation_id=generation, member_id=member_id, assignments=assignments, **options
    ), version)  # fmt: skip


def beat(
    talk: Any, who: str, group: str, member_id: str, generation: int, version: int, instance: str | None = None
) -> Any:
    return talk.ask(who, HeartbeatRequest(
        group_id=talk.group(group), generation_id=generation, member_id=member_id, group_instance_id=instance
    ), version)  # fmt: skip


def leave(talk: Any, who: str, group: str, version: int, *members: tuple[str, str | None]) -> Any:
    request = LeaveGroupRequest(group_id=talk.group(group))
    if version >= 3:
        request.members = [
            MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members
        ]
    else:
        request.member_id = members[0][0]
    return talk.ask(who, request, version)


def commit(
    talk: Any,
    who: str,
    group: str,
    version: int,
    member_id: str = "",
    generation: int = -1,
    *,
    instance: str | None = None,
    offset: int = 7,
    metadata: str | None = "m",
    topic: str = "t1",
    partition: int = 0,
    retention_ms: int = -1,
) -> Any:
    request = OffsetCommitRequest(
        group_id=talk.group(group), generation_id_or_member_epoch=generation, member_id=member_id, group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=talk.speaker.topic_id(topic), partitions=[
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_leader_epoch=3, committed_metadata=metadata
            )
        ])],
    )  # fmt: skip
    return talk.ask(who, request, version)


def fetch(
    talk: Any, who: str, *groups: str, version: int = 8, topics: tuple[str, ...] | None = ("t1",), stable: bool = False
) -> Any:
    wanted = None if topics is None else [
        OffsetFetchRequestTopics(name=name, topic_id=talk.speaker.topic_id(name), partition_indexes=[0, 1]) for name in topics
    ]  # fmt: skip
    return talk.ask(who, OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=talk.group(group), topics=wanted) for group in groups], require_stable=stable
    ), version)  # fmt: skip


def describe(talk: Any, who: str, *groups: str, version: int = 5) -> Any:
    return talk.ask(who, DescribeGroupsRequest(groups=[talk.group(group) for group in groups]), version)


def delete(talk: Any, who: str, *groups: str, version: int = 2) -> Any:
    return talk.ask(who, DeleteGroupsRequest(groups_names=[talk.group(group) for group in groups]), version)


def delete_offset(talk: Any, who: str, group: str, *topics: str) -> Any:
    return talk.ask(who, OffsetDeleteRequest(group_id=talk.group(group), topics=[
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1)])
        for topic in topics
    ]), 0)  # fmt: skip


def stable_group(
    talk: Any, group: str, version: int = 7, whos: tuple[str, ...] = ("a",), **options: Any
) -> dict[str, Any]:
    """A group in which everyone joined and synced; who's name to its member id, and "generation"."""
    first = whos[0]
    start_join(talk, first, group, version, **options)
    answers = {first: talk.receive(first)}
    for who in whos[1:]:
        start_join(talk, who, group, version, **options)
    if len(whos) > 1:
        talk.send(first, join_request(talk, group, answers[first].member_id, **options), version)
        answers = {who: talk.receive(who) for who in whos}
    ids = {who: answer.member_id for who, answer in answers.items()}
    generation = answers[first].generation_id
    for who in [*whos[1:], first]:
        assign = {member_id: f"part of {who}".encode() for who, member_id in ids.items()} if who == first else None
        sync(
            talk,
            who,
            group,
            ids[who],
            generation,
            min(version, 5),
            assign,
            protocol_type=options.get("kind", "consumer"),
            protocol_name=answers[first].protocol_name,
        )
    for who in whos:
        talk.receive(who)
    return {**ids, "generation": generation}


# Lives of groups


def life_of_one(talk: Any, version: int) -> None:
    """One member at one version of everything: it joins, syncs, lives, commits, leaves; the group is deleted."""
    ids = stable_group(talk, "life", version)
    member, generation = ids["a"], ids["generation"]
    beat(talk, "a", "life", member, generation, min(version, 4))
    commit(talk, "a", "life", version + 1 if version else 2, member, generation)
    fetch(talk, "a", "life", version=9 if version > 8 else 8)
    describe(talk, "o", "life", version=min(version, 6))
    delete(talk, "o", "life", version=min(version, 2))
    leave(talk, "a", "life", min(version, 5), (member, None))
    describe(talk, "o", "life", version=min(version, 6))
    delete(talk, "o", "life", version=min(version, 2))
    delete(talk, "o", "life", version=min(version, 2))
    describe(talk, "o", "life", version=min(version, 6))


def second_member_comes(talk: Any, version: int) -> None:
    """The first hears of it by its heartbeat, its commits go on, and both get the next generation."""
    ids = stable_group(talk, "two", version)
    start_join(talk, "b", "two", version)
    beat(talk, "a", "two", ids["a"], ids["generation"], 4)
    commit(talk, "a", "two", 9, ids["a"], ids["generation"])
    sync(talk, "a", "two", ids["a"], ids["generation"], 5)
    talk.receive("a")
    describe(talk, "o", "two")
    delete_offset(talk, "o", "two", "t1", "t2")
    talk.send("a", join_request(talk, "two", ids["a"]), version)
    first, second = talk.receive("a"), talk.receive("b")
    describe(talk, "o", "two")
    commit(talk, "a", "two", 9, ids["a"], first.generation_id)
    beat(talk, "a", "two", ids["a"], first.generation_id, 4)
    sync(talk, "b", "two", second.member_id, second.generation_id, 5, {second.member_id: b"not the leader"})
    sync(talk, "a", "two", first.member_id, first.generation_id, 5, {second.member_id: b"yours"})
    talk.receive("a")
    talk.receive("b")
    describe(talk, "o", "two")
    leave(talk, "b", "two", 4, (second.member_id, None))
    beat(talk, "a", "two", ids["a"], first.generation_id, 4)
    beat(talk, "b", "two", second.member_id, first.generation_id, 4)


def joins_again(talk: Any, version: int) -> None:
    """A follower that did not change gets the generation again; the leader, or a changed member, begins a new one."""
    ids = stable_group(talk, "again", version, ("a", "b"))
    talk.ask("b", join_request(talk, "again", ids["b"]), version)
    talk.send("b", join_request(talk, "again", ids["b"], protocols=BOTH), version)
    beat(talk, "a", "again", ids["a"], ids["generation"], 4)
    talk.send("a", join_request(talk, "again", ids["a"]), version)
    talk.receive("b")
    generation = talk.receive("a").generation_id
    talk.ask("b", join_request(talk, "again", ids["b"], protocols=BOTH), version)
    talk.ask("a", join_request(talk, "again", ids["a"]), version)
    sync(talk, "b", "again", ids["b"], generation, 5)
    talk.send("a", join_request(talk, "again", ids["a"], protocols=BOTH), version)
    talk.receive("b")
    talk.send("b", join_request(talk, "again", ids["b"], protocols=BOTH), version)
    talk.receive("a")
    talk.receive("b")


def protocol_votes(talk: Any, version: int) -> None:
    """The protocol that most prefer of those that all support."""
    start_join(talk, "a", "votes", version, protocols=BOTH)
    first = talk.receive("a").member_id
    start_join(talk, "b", "votes", version, protocols=REVERSED)
    talk.send("a", join_request(talk, "votes", first, protocols=BOTH), version)
    talk.receive("a")
    second = talk.receive("b").member_id
    talk.ask("c", join_request(talk, "votes", protocols=OTHER), version)
    start_join(talk, "c", "votes", version, protocols=REVERSED[:1])
    talk.send("a", join_request(talk, "votes", first, protocols=BOTH), version)
    talk.send("b", join_request(talk, "votes", second, protocols=REVERSED), version)
    for who in ("a", "b", "c"):
        talk.receive(who)


# Refusals


def refused_joins(talk: Any, version: int) -> None:
    talk.ask("a", join_request(talk, "refused", protocols=()), version)
    talk.ask("a", join_request(talk, "refused", kind=""), version)
    talk.ask("a", join_request(talk, "refused", session_ms=499), version)
    talk.ask("a", join_request(talk, "refused", session_ms=1_800_001), version)
    talk.ask("a", join_request(talk, "refused", "nobody"), version)
    talk.ask("a", join_request(talk, "absent", "nobody"), version)
    empty = join_request(talk, "refused")
    empty.group_id = ""
    talk.ask("a", empty, version)
    describe(talk, "o", "refused", "absent")
    ids = stable_group(talk, "refused", version)
    talk.ask("b", join_request(talk, "refused", kind="connect"), version)
    talk.ask("b", join_request(talk, "refused", protocols=OTHER), version)
    talk.ask("b", join_request(talk, "refused", "nobody"), version)
    talk.ask("a", join_request(talk, "refused", ids["a"], protocols=OTHER), version)


def refused_syncs(talk: Any, version: int) -> None:
    sync(talk, "a", "absent", "nobody", 1, version)
    talk.receive("a")
    start_join(talk, "a", "syncs", 7)
    member = talk.receive("a").member_id
    for name, generation in ((member, 0), (member, 2), ("nobody", 1), (member, -1)):
        sync(talk, "a", "syncs", name, generation, version)
        talk.receive("a")
    if version >= 5:
        for options in (
            {"protocol_type": "connect"},
            {"protocol_name": "sticky"},
            {"protocol_type": None},
            {"protocol_name": None},
        ):
            sync(talk, "a", "syncs", member, 1, version, None, **options)
            talk.receive("a")
    if version >= 3:
        sync(talk, "a", "syncs", member, 1, version, None, group_instance_id="static")
        talk.receive("a")
    sync(talk, "a", "syncs", member, 1, version)
    talk.receive("a")
    sync(talk, "a", "syncs", member, 1, version, {member: b"late"})
    talk.receive("a")
    talk.ask("a", SyncGroupRequest(group_id="", generation_id=1, member_id=member), version)
    talk.ask(
        "a", SyncGroupRequest(group_id="", member_id=member, protocol_type="consumer", protocol_name="range"), version
    )


def refused_heartbeats(talk: Any, version: int) -> None:
    beat(talk, "a", "absent", "nobody", 1, version)
    ids = stable_group(talk, "beats")
    for member, generation in ((ids["a"], 0), (ids["a"], 2), ("nobody", 1), ("", 1), (ids["a"], 1)):
        beat(talk, "a", "beats", member, generation, version)
    if version >= 3:
        beat(talk, "a", "beats", ids["a"], 1, version, "static")
    talk.ask("a", HeartbeatRequest(group_id="", generation_id=1, member_id=ids["a"]), version)


def refused_leaves(talk: Any, version: int) -> None:
    leave(talk, "a", "absent", version, ("nobody", None))
    ids = stable_group(talk, "leaves")
    leave(talk, "a", "leaves", version, ("nobody", None))
    leave(talk, "a", "leaves", version, ("", None))
    pending = talk.ask("b", join_request(talk, "leaves"), 4).member_id
    leave(talk, "b", "leaves", version, (pending, None))
    talk.ask("b", join_request(talk, "leaves", pending), 4)
    if version >= 3:
        leave(talk, "a", "leaves", version, (ids["a"], "static"), ("", "static"), ("nobody", "static"))
        leave(talk, "a", "leaves", version)
        leave(talk, "a", "leaves", version, (ids["a"], None), (ids["a"], None))
    else:
        leave(talk, "a", "leaves", version, (ids["a"], None))
    describe(talk, "o", "leaves")


def refused_commits(talk: Any, version: int) -> None:
    commit(talk, "a", "absent", version, "nobody", 1)
    commit(talk, "a", "absent", version, "", 0)
    describe(talk, "o", "absent")
    ids = stable_group(talk, "commits")
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
        commit(talk, "a", "commits", version, name, generation)
    if version >= 7:
        commit(talk, "a", "commits", version, member, 1, instance="static")
        commit(talk, "a", "commits", version, "", -1, instance="static")
    commit(talk, "a", "commits", version, member, 1, metadata="x" * 100)
    commit(talk, "a", "commits", version, member, 1, metadata="x" * 101)
    commit(talk, "a", "commits", version, member, 1, metadata="ž" * 100)
    commit(talk, "a", "commits", version, member, 1, metadata=None)
    commit(talk, "a", "commits", version, member, 1, offset=-5)
    fetch(talk, "a", "commits")
    leave(talk, "a", "commits", 3, (member, None))
    commit(talk, "a", "commits", version, member, 1)
    commit(talk, "a", "commits", version, "", 2)
    commit(talk, "a", "commits", version, "anybody", -1, offset=9)
    fetch(talk, "a", "commits")


# Offsets without members


def simple_offsets(talk: Any, version: int) -> None:
    """Someone keeps offsets in a group without members, which appears with the first of them."""
    fetch(talk, "a", "simple", "none", topics=("t1", "t2"), version=version)
    fetch(talk, "a", "simple", topics=None, version=version)
    commit(talk, "a", "simple", version, topic="t1")
    commit(talk, "a", "simple", version, topic="t1", partition=1, offset=0, metadata="")
    commit(talk, "a", "simple", version, topic="t2", offset=2**62)
    fetch(talk, "a", "simple", "none", topics=("t1", "t2"), version=version)
    fetch(talk, "a", "simple", topics=None, version=version, stable=True)
    fetch(talk, "a", "simple", topics=(), version=version)
    describe(talk, "o", "simple", version=6)
    delete_offset(talk, "o", "none", "t1")
    delete_offset(talk, "o", "simple", "t1")
    fetch(talk, "a", "simple", topics=None, version=version)
    delete(talk, "o", "simple", "none", "simple")
    fetch(talk, "a", "simple", topics=None, version=version)


def kept_for_a_time(talk: Any, version: int) -> None:
    """Old clients say how long an offset is to be kept."""
    commit(talk, "a", "kept", version, retention_ms=100_000)
    commit(talk, "a", "kept", version, partition=1, retention_ms=0)
    fetch(talk, "a", "kept")


def offsets_of_other_protocols(talk: Any, version: int) -> None:
    """Offsets of a group that does not consume cannot be deleted while it has members."""
    ids = stable_group(talk, "connect", version, kind="connect", protocols=OTHER)
    commit(talk, "a", "connect", 8, ids["a"], 1)
    delete_offset(talk, "o", "connect", "t1")
    leave(talk, "a", "connect", 3, (ids["a"], None))
    delete_offset(talk, "o", "connect", "t1")
    fetch(talk, "a", "connect")
    describe(talk, "o", "connect")


def unreadable_subscriptions(talk: Any, version: int) -> None:
    """A consumer group whose subscriptions cannot be read counts as subscribed to everything."""
    stable_group(talk, "unreadable", version, protocols=(("range", b"\x00"),))
    delete_offset(talk, "o", "unreadable", "t1")


# Static members


def static_restart(talk: Any, version: int) -> None:
    """A static member comes back under a new id; the old one is fenced everywhere, and nobody rebalances."""
    start_join(talk, "a", "static", version, instance="one")
    first = talk.receive("a")
    start_join(talk, "b", "static", version, instance="two")
    talk.send("a", join_request(talk, "static", first.member_id, instance="one"), version)
    talk.receive("a")
    second = talk.receive("b")
    generation = second.generation_id
    sync(talk, "b", "static", second.member_id, generation, 5, group_instance_id="two")
    sync(
        talk,
        "a",
        "static",
        first.member_id,
        generation,
        5,
        {first.member_id: b"1", second.member_id: b"2"},
        group_instance_id="one",
    )
    talk.receive("a")
    talk.receive("b")
    again = talk.ask("b", join_request(talk, "static", instance="two"), version)
    sync(talk, "b", "static", again.member_id, generation, 5, group_instance_id="two")
    talk.receive("b")
    beat(talk, "a", "static", first.member_id, generation, 4, "one")
    for member in (second.member_id, again.member_id, ""):
        beat(talk, "b", "static", member, generation, 4, "two")
    talk.ask("b", join_request(talk, "static", second.member_id, instance="two"), version)
    sync(talk, "b", "static", second.member_id, generation, 5, group_instance_id="two")
    talk.receive("b")
    commit(talk, "b", "static", 8, second.member_id, generation, instance="two")
    commit(talk, "b", "static", 8, again.member_id, generation, instance="two")
    leave(talk, "b", "static", 4, (second.member_id, "two"))
    leader = talk.ask("a", join_request(talk, "static", instance="one"), version)
    beat(talk, "a", "static", leader.member_id, generation, 4, "one")
    describe(talk, "o", "static")
    leave(talk, "o", "static", 4, ("", "two"), ("", "none"))
    beat(talk, "a", "static", leader.member_id, generation, 4, "one")


def static_change_of_protocol(talk: Any, version: int) -> None:
    """A static member that comes back with other protocols begins a rebalance if the choice changes."""
    start_join(talk, "a", "change", version, instance="one", protocols=BOTH)
    first = talk.receive("a")
    sync(talk, "a", "change", first.member_id, first.generation_id, 5, {first.member_id: b"1"}, group_instance_id="one")
    talk.receive("a")
    talk.ask("a", join_request(talk, "change", instance="one", protocols=REVERSED), version)


def static_twice_while_waiting(talk: Any, version: int) -> None:
    """Two that use one instance id: the one that joined first is told that it is fenced."""
    ids = stable_group(talk, "twice", version)
    talk.send("b", join_request(talk, "twice", instance="one"), version)
    talk.send("c", join_request(talk, "twice", instance="one"), version)
    talk.receive("b")
    talk.send("a", join_request(talk, "twice", ids["a"]), version)
    talk.receive("a")
    talk.receive("c")
    describe(talk, "o", "twice")


def static_replaced_before_sync(talk: Any, version: int) -> None:
    start_join(talk, "a", "between", version, instance="one")
    first = talk.receive("a")
    second = talk.ask("b", join_request(talk, "between", instance="one"), version)
    sync(talk, "a", "between", first.member_id, first.generation_id, 5, group_instance_id="one")
    talk.receive("a")
    sync(talk, "b", "between", second.member_id, second.generation_id, 5, group_instance_id="one")
    talk.receive("b")


def static_member_misses_a_rebalance(talk: Any, version: int) -> None:
    """It stays a member until its session ends, and the leader goes on to assign to it; it may join again later."""
    start_join(talk, "a", "misses", version, instance="one", rebalance_ms=800)
    first = talk.receive("a")
    start_join(talk, "b", "misses", version, rebalance_ms=800)
    talk.wait(1_500)
    joined = talk.receive("b")
    sync(
        talk,
        "b",
        "misses",
        joined.member_id,
        joined.generation_id,
        5,
        {first.member_id: b"absent", joined.member_id: b"here"},
    )
    talk.receive("b")
    beat(talk, "a", "misses", first.member_id, joined.generation_id, 4, "one")
    sync(talk, "a", "misses", first.member_id, joined.generation_id, 5, group_instance_id="one")
    talk.receive("a")
    leave(talk, "b", "misses", 4, (joined.member_id, None))
    describe(talk, "o", "misses")
    talk.wait(1_500)
    describe(talk, "o", "misses")
    talk.ask("a", join_request(talk, "misses", first.member_id, instance="one", rebalance_ms=800), version)


# Limits and time


def too_many(talk: Any, version: int) -> None:
    """Three members are all that fit."""
    ids = stable_group(talk, "many", version, ("a", "b", "c"))
    talk.ask("d", join_request(talk, "many"), version)
    talk.ask("d", join_request(talk, "many", instance="static"), version)
    talk.send("a", join_request(talk, "many", ids["a"]), version)
    talk.ask("d", join_request(talk, "many"), version)
    describe(talk, "o", "many")


def session_runs_out(talk: Any, version: int) -> None:
    """A silent member is removed, and with it the group is empty."""
    ids = stable_group(talk, "silent", version, session_ms=600)
    beat(talk, "a", "silent", ids["a"], 1, 4)
    talk.wait(1500)
    beat(talk, "a", "silent", ids["a"], 1, 4)
    describe(talk, "o", "silent")


def rebalance_times_out(talk: Any, version: int) -> None:
    """Who does not join again in time is left behind by the next generation."""
    ids = stable_group(talk, "late", version, rebalance_ms=700)
    start_join(talk, "b", "late", version, rebalance_ms=700)
    talk.wait(1500)
    joined = talk.receive("b")
    beat(talk, "a", "late", ids["a"], joined.generation_id, 4)
    sync(talk, "b", "late", joined.member_id, joined.generation_id, 5, {joined.member_id: b"all"})
    talk.receive("b")


def nobody_syncs(talk: Any, version: int) -> None:
    """A member that joined and does not sync within its rebalance timeout is removed."""
    start_join(talk, "a", "nosync", version, rebalance_ms=700)
    joined = talk.receive("a")
    beat(talk, "a", "nosync", joined.member_id, joined.generation_id, 4)
    talk.wait(1500)
    beat(talk, "a", "nosync", joined.member_id, joined.generation_id, 4)
    describe(talk, "o", "nosync")


def pending_member_runs_out(talk: Any, version: int) -> None:
    """An id that was given out and not used in time is not known any more."""
    member = talk.ask("a", join_request(talk, "pending", session_ms=600), version).member_id
    describe(talk, "o", "pending")
    talk.wait(1500)
    talk.ask("a", join_request(talk, "pending", member, session_ms=600), version)
    late = talk.ask("a", join_request(talk, "pending", session_ms=600), version).member_id
    talk.ask("a", join_request(talk, "pending", late, session_ms=600, instance="static"), version)
    delete(talk, "o", "pending")
    talk.ask("a", join_request(talk, "pending", late, session_ms=600), version)


DIALOGUES: dict[Callable[[Any, int], None], tuple[int, ...]] = {
    life_of_one: tuple(range(10)),
    second_member_comes: (5, 9),
    joins_again: (4, 6, 7, 9),
    protocol_votes: (0, 5, 9),
    refused_joins: (0, 3, 4, 6, 7, 9),
    refused_syncs: (0, 2, 3, 4, 5),
    refused_heartbeats: (0, 2, 3, 4),
    refused_leaves: (0, 2, 3, 4, 5),
    refused_commits: (2, 6, 7, 8, 9, 10),
    simple_offsets: (8, 9, 10),
    kept_for_a_time: (2, 4),
    offsets_of_other_protocols: (7,),
    unreadable_subscriptions: (7,),
    static_restart: (5, 6, 7, 8, 9),
    static_change_of_protocol: (5, 9),
    static_twice_while_waiting: (5, 6, 9),
    static_replaced_before_sync: (5, 9),
    static_member_misses_a_rebalance: (5, 9),
    too_many: (5, 9),
    session_runs_out: (5,),
    rebalance_times_out: (5,),
    nobody_syncs: (5,),
    pending_member_runs_out: (5, 9),
}
"""Each with the versions, of the API that it is about, to hold it at."""
