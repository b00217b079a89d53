"""Types of assignment: members, topics and the Assignor protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ottla.client.records import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Member:
    """A group member, from its subscription."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """Partitions it owns, or owned before it revoked them."""
    generation: int = NO_GENERATION
    """Generation in which it got them. If two members claim a partition, the later generation wins."""
    instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Sort key: static members first, by instance id, so that restarts do not change the order."""
        return (True, self.member_id) if self.instance_id is None else (False, self.instance_id)


@dataclass(frozen=True, slots=True)
class Topics:
    """Subscribed topics, as the leader knows them."""

    counts: Mapping[str, int]
    """Partition count of each existing topic."""
    racks: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)
    """Racks of each partition's replicas, where known."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, index) for index in range(self.counts.get(topic, 0))]


Assignment = dict[str, list[TopicPartition]]
"""Partitions by member id; every member is present."""


class Assignor(Protocol):
    """Interface for objects in `partition.assignment.strategy`."""

    name: str
    is_cooperative: bool
    """Whether members keep their partitions during a rebalance."""

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the user data in the subscription of a member that owns, or owned, these partitions."""

    def assign(self, members: Sequence[Member], topics: Topics) -> Assignment: ...


def members_by_topic(members: Sequence[Member], topics: Topics) -> dict[str, list[Member]]:
    """Return the subscribers of each existing topic; topics and members are sorted."""
    found: dict[str, list[Member]] = {
        topic: []
        for topic in sorted({topic for member in members for topic in member.topics})
        if topics.counts.get(topic)
    }
    for member in sorted(members, key=lambda member: member.order):
        for topic in dict.fromkeys(member.topics):
            if topic in found:
                found[topic].append(member)
    return found


def racks_matter(members: Sequence[Member], partitions: Sequence[TopicPartition], topics: Topics) -> bool:
    """Return whether some member is closer to some partitions than to others."""
    member_racks = {member.rack for member in members if member.rack}
    if not member_racks or not topics.racks:
        return False
    near = [member_racks.intersection(topics.racks.get(partition, ())) for partition in partitions]
    return any(near) and any(racks != member_racks for racks in near)
