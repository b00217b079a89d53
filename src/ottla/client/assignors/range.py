"""range: each member gets consecutive partitions of every topic, so topics with equal counts are co-partitioned."""

from collections.abc import Sequence

from ottla.client.assignors.base import Assignment, Member, Topics, members_by_topic, racks_matter
from ottla.client.records import TopicPartition


class _Quota:
    """How many partitions of one topic each member may still get."""

    def __init__(self, topic: str, members: Sequence[Member], count: int) -> None:
        self.topic = topic
        self.members = members
        self.left = list(range(count))
        self._base, self._extra = divmod(count, len(members))
        self._taken = dict.fromkeys((member.member_id for member in members), 0)

    def capacity(self, member: Member) -> int:
        return max(self._base + (self._extra > 0) - self._taken[member.member_id], 0)

    def take(self, member: Member, partitions: Sequence[int]) -> list[TopicPartition]:
        before = self._taken[member.member_id]
        self._taken[member.member_id] = before + len(partitions)
        if before <= self._base < before + len(partitions):
            self._extra -= 1
        taken = set(partitions)
        self.left = [index for index in self.left if index not in taken]
        return [TopicPartition(self.topic, index) for index in partitions]


class RangeAssignor:
    """With racks, prefers members near the replicas, for all co-partitioned topics together."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, members: Sequence[Member], topics: Topics) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        together: dict[tuple[tuple[str, ...], int], list[_Quota]] = {}
        quotas = []
        for topic, subscribers in members_by_topic(members, topics).items():
            quota = _Quota(topic, subscribers, topics.counts[topic])
            quotas.append(quota)
            together.setdefault((tuple(member.member_id for member in subscribers), topics.counts[topic]), []).append(
                quota
            )
        for co_partitioned in together.values():
            self._match_racks(co_partitioned, topics, assignment)
            if len(co_partitioned) > 1:
                for quota in co_partitioned:
                    self._match_racks([quota], topics, assignment)
        for quota in quotas:
            for member in quota.members:
                assignment[member.member_id] += quota.take(member, quota.left[: quota.capacity(member)])
        return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}

    @staticmethod
    def _match_racks(quotas: Sequence[_Quota], topics: Topics, assignment: Assignment) -> None:
        members = quotas[0].members
        partitions = [partition for quota in quotas for partition in topics.partitions(quota.topic)]
        if not racks_matter(members, partitions, topics):
            return
        for index in list(quotas[0].left):
            for member in members:
                if all(
                    index in quota.left
                    and quota.capacity(member)
                    and member.rack in topics.racks.get(TopicPartition(quota.topic, index), ())
                    for quota in quotas
                ):
                    for quota in quotas:
                        assignment[member.member_id] += quota.take(member, [index])
                    break
