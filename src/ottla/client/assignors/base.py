"""The words of assignment: members, topics, and what an assignor has to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ottla.client.records import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group, as its subscription describes it."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """What it has at this moment, or had before it gave all back."""
    generation: int = NO_GENERATION
    """Of the group when it got them: of two who claim a partition the later one has it."""
    instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Static members first, by their lasting names, so that a restart changes nothing."""
        return (True, self.member_id) if self.instance_id is None else (False, self.instance_id)


@dataclass(frozen=True, slots=True)
class Topics:
    """What the leader knows of the topics that are subscribed to."""

    counts: Mapping[str, int]
    """How many partitions each topic has. Topics that do not exist are not in it."""
    racks: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)
    """Where the replicas of a partition are, as far as brokers say it."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, index) for index in range(self.counts.get(topic, 0))]


Assignment = dict[str, list[TopicPartition]]
"""Partitions by member id; every member is in it."""


class Assignor(Protocol):
    """Anything with these may be named in `partition.assignment.strategy`."""

    name: str
    is_cooperative: bool
    """Whether members may keep what they have while the group rebalances."""

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """What goes with the subscription of a member that has, or had, these partitions."""

    def assign(self, members: Sequence[Member], topics: Topics) -> Assignment: ...


def members_by_topic(members: Sequence[Member], topics: Topics) -> dict[str, list[Member]]:
    """Who subscribed to each topic that exists, topics and members in order."""
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
    """Whether some member is nearer to some partition than to others."""
    member_racks = {member.rack for member in members if member.rack}
    if not member_racks or not topics.racks:
        return False
    near = [member_racks.intersection(topics.racks.get(partition, ())) for partition in partitions]
    return any(near) and any(racks != member_racks for racks in near)
