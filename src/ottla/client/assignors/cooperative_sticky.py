"""cooperative-sticky: like sticky, but members keep reading what stays theirs.

Partitions that move are revoked first and assigned in a second rebalance.
"""

from collections.abc import Sequence
from struct import Struct

from ottla.client.assignors.base import NO_GENERATION, Assignment, Member, Topics
from ottla.client.assignors.sticky_plan import plan
from ottla.client.records import TopicPartition

_i32 = Struct(">i")


class CooperativeStickyAssignor:
    """Leaves a partition unassigned while another member owns it. That member revokes it and rejoins."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return _i32.pack(generation)

    def assign(self, members: Sequence[Member], topics: Topics) -> Assignment:
        owned = {member.member_id: (member.owned, _generation(member)) for member in members}
        assignment = plan(members, topics, owned)
        owners: dict[TopicPartition, list[str]] = {}
        for member in members:
            for partition in member.owned:
                owners.setdefault(partition, []).append(member.member_id)
        for member_id, partitions in assignment.items():
            partitions[:] = [
                partition for partition in partitions if all(owner == member_id for owner in owners.get(partition, ()))
            ]
        return assignment


def _generation(member: Member) -> int:
    """Return the generation. Subscriptions of old versions have it in their user data."""
    if member.generation != NO_GENERATION or member.user_data is None or len(member.user_data) < 4:
        return member.generation
    generation: int = _i32.unpack_from(member.user_data)[0]
    return generation
