"""Assignors: one subscriber per partition, balanced, with few changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.assignors import (
    Assignment,
    Assignor,
    CooperativeStickyAssignor,
    Member,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Topics,
    assignors_named,
)
from ottla.client.assignors.sticky import decode_user_data, encode_user_data
from ottla.client.records import TopicPartition

ALL: list[Assignor] = [RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()]
RACKS = ("a", "b", "c")

topic_counts = st.dictionaries(st.sampled_from(["t1", "t2", "t3", "t4"]), st.integers(1, 7), min_size=1)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False) -> tuple[list[Member], Topics]:
    counts = draw(topic_counts)
    some_topics = st.lists(st.sampled_from(["t1", "t2", "t3", "t4"]), unique=True, min_size=1).map(tuple)
    shared = tuple(sorted(counts))
    members = [
        Member(
            f"m{index}",
            shared if equal else draw(some_topics),
            rack=draw(st.sampled_from([None, *RACKS])),
            instance_id=draw(st.sampled_from([None, f"i{9 - index}"])),
        )
        for index in range(draw(st.integers(1, 6)))
    ]
    racks = (
        {
            TopicPartition(topic, index): tuple(draw(st.lists(st.sampled_from(RACKS), unique=True, max_size=2)))
            for topic, count in counts.items()
            for index in range(count)
        }
        if draw(st.booleans())
        else {}
    )
    return members, Topics(counts, racks)


def imbalance(assignment: Assignment) -> int:
    sizes = [len(partitions) for partitions in assignment.values()]
    return max(sizes) - min(sizes)


def rejoined(members: list[Member], assignment: Assignment, generation: int, assignor: Assignor) -> list[Member]:
    """Return the members as they would rejoin with an assignment."""
    return [
        Member(
            m.member_id,
            m.topics,
            tuple(assignment[m.member_id]),
            generation,
            m.instance_id,
            m.rack,
            assignor.user_data(assignment[m.member_id], generation),
        )
        for m in members
    ]


@pytest.mark.parametrize("assignor", ALL, ids=lambda assignor: assignor.name)
@settings(deadline=None)
@given(group=groups())
def test_each_partition_goes_to_one_subscriber(assignor: Assignor, group: tuple[list[Member], Topics]) -> None:
    """Every partition of a subscribed topic gets one of its subscribers, others get none."""
    members, topics = group
    assignment = assignor.assign(members, topics)
    requested = {topic for member in members for topic in member.topics}
    expected = sorted(p for topic in topics.counts if topic in requested for p in topics.partitions(topic))
    assert sorted(partition for partitions in assignment.values() for partition in partitions) == expected
    assert set(assignment) == {member.member_id for member in members}
    for member in members:
        assert {partition.topic for partition in assignment[member.member_id]} <= set(member.topics)
    assert assignor.assign(list(reversed(members)), topics) == assignment


@pytest.mark.parametrize("assignor", ALL[1:], ids=lambda assignor: assignor.name)
@settings(deadline=None)
@given(group=groups(equal=True))
def test_equal_subscriptions_are_balanced(assignor: Assignor, group: tuple[list[Member], Topics]) -> None:
    assert imbalance(assignor.assign(*group)) <= 1


@settings(deadline=None)
@given(group=groups())
def test_sticky_leaves_no_improving_move(group: tuple[list[Member], Topics]) -> None:
    """With different subscriptions, sticky is as balanced as they allow."""
    members, topics = group
    assignment = StickyAssignor().assign(members, topics)
    for member in members:
        for partitions in assignment.values():
            if any(partition.topic in member.topics for partition in partitions):
                assert len(partitions) - len(assignment[member.member_id]) <= 1


@pytest.mark.parametrize("assignor", ALL[2:], ids=lambda assignor: assignor.name)
@settings(deadline=None)
@given(group=groups())
def test_unchanged_group_keeps_its_assignment(assignor: Assignor, group: tuple[list[Member], Topics]) -> None:
    """A rebalance without changes moves nothing."""
    members, topics = group
    first = assignor.assign(members, topics)
    assert assignor.assign(rejoined(members, first, 1, assignor), topics) == first


@pytest.mark.parametrize("assignor", ALL[2:], ids=lambda assignor: assignor.name)
@settings(deadline=None)
@given(group=groups(equal=True))
def test_remaining_members_keep_partitions_when_one_leaves(
    assignor: Assignor, group: tuple[list[Member], Topics]
) -> None:
    members, topics = group
    first = assignor.assign(members, topics)
    rest = rejoined(members, first, 1, assignor)[1:]
    if rest:
        second = assignor.assign(rest, topics)
        for member in rest:
            assert set(first[member.member_id]) <= set(second[member.member_id])


@settings(deadline=None)
@given(group=groups(equal=True))
def test_cooperative_moves_partitions_in_two_rebalances(group: tuple[list[Member], Topics]) -> None:
    """Partitions for a new member are revoked first and assigned in the next rebalance."""
    members, topics = group
    assignor = CooperativeStickyAssignor()
    first = assignor.assign(members, topics)
    joined = [*rejoined(members, first, 1, assignor), Member("new", tuple(sorted(topics.counts)))]
    second = assignor.assign(joined, topics)
    for member in members:
        assert set(second[member.member_id]) <= set(first[member.member_id])
    assert second["new"] == []
    third = assignor.assign(rejoined(joined, second, 2, assignor), topics)
    assert imbalance(third) <= 1
    assert sum(map(len, third.values())) == sum(topics.counts.values())


def test_claim_of_an_older_generation_loses() -> None:
    """A member that missed a rebalance may claim partitions of others."""
    partitions = tuple(TopicPartition("t", index) for index in range(2))
    stale = Member("old", ("t",), partitions, generation=3)
    current = Member("new", ("t",), partitions[1:], generation=5)
    assignment = CooperativeStickyAssignor().assign([stale, current], Topics({"t": 2}))
    assert assignment["old"] == [partitions[0]]


def test_range_co_partitions_topics() -> None:
    """Topics with equal counts are assigned alike; the first members get one more."""
    members = [Member("b", ("x", "y")), Member("a", ("x", "y"))]
    assert RangeAssignor().assign(members, Topics({"x": 3, "y": 3})) == {
        "a": [TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("y", 0), TopicPartition("y", 1)],
        "b": [TopicPartition("x", 2), TopicPartition("y", 2)],
    }


def test_range_prefers_replicas_in_the_same_rack() -> None:
    """Members get partitions with replicas in their rack unless that costs balance."""
    racks = {TopicPartition("x", 0): ("r2",), TopicPartition("x", 1): ("r1",)}
    members = [Member("a", ("x",), rack="r1"), Member("b", ("x",), rack="r2")]
    assert RangeAssignor().assign(members, Topics({"x": 2}, racks)) == {
        "a": [TopicPartition("x", 1)],
        "b": [TopicPartition("x", 0)],
    }


def test_round_robin_skips_members_without_the_topic() -> None:
    members = [Member("a", ("x",)), Member("b", ("x", "y")), Member("c", ("x", "y"))]
    assert RoundRobinAssignor().assign(members, Topics({"x": 1, "y": 3})) == {
        "a": [TopicPartition("x", 0)],
        "b": [TopicPartition("y", 0), TopicPartition("y", 2)],
        "c": [TopicPartition("y", 1)],
    }


def test_sticky_user_data_versions() -> None:
    """Old members omit the generation; invalid user data is ignored."""
    owned = (TopicPartition("a", 0), TopicPartition("a", 5), TopicPartition("bb", 1))
    data = encode_user_data(owned, 7)
    assert decode_user_data(data) == (owned, 7)
    assert decode_user_data(data[:-4]) == (owned, -1)
    assert decode_user_data(b"\0\0\0\1\0") == ((), -1)


def test_assignors_have_java_names() -> None:
    assert [a.name for a in assignors_named(["org.apache.kafka.clients.consumer.StickyAssignor", "range"])] == [
        "sticky",
        "range",
    ]
    with pytest.raises(ValueError, match="unknown assignor 'rang'"):
        assignors_named(["rang"])
