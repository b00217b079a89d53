"""roundrobin: all partitions of all topics are assigned in turn to the members that subscribed to them."""

from collections.abc import Sequence

from ottla.client.assignors.base import Assignment, Member, Topics, members_by_topic
from ottla.client.records import TopicPartition


class RoundRobinAssignor:
    """With equal subscriptions, members differ by at most one partition."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, members: Sequence[Member], topics: Topics) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ordered = sorted(members, key=lambda member: member.order)
        turn = 0
        for topic, subscribers in members_by_topic(members, topics).items():
            wanted = {member.member_id for member in subscribers}
            for partition in topics.partitions(topic):
                while ordered[turn % len(ordered)].member_id not in wanted:
                    turn += 1
                assignment[ordered[turn % len(ordered)].member_id].append(partition)
                turn += 1
        return assignment
