"""sticky: balanced, and members keep their partitions.

They are revoked during a rebalance; user data remembers them.
"""

from collections.abc import Sequence
from struct import Struct, error

from ottla.client.assignors.base import NO_GENERATION, Assignment, Member, Topics
from ottla.client.assignors.sticky_plan import plan
from ottla.client.records import TopicPartition

_i32 = Struct(">i")
_i16 = Struct(">h")


class StickyAssignor:
    """Uses the user data format of other clients' sticky assignors."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return encode_user_data(owned, generation) if owned else None

    def assign(self, members: Sequence[Member], topics: Topics) -> Assignment:
        return plan(members, topics, {member.member_id: remembered(member) for member in members})


def remembered(member: Member) -> tuple[tuple[TopicPartition, ...], int]:
    """Return what a member owned and since which generation, from its user data or its subscription."""
    if member.user_data:
        return decode_user_data(member.user_data)
    return member.owned, member.generation


def encode_user_data(owned: Sequence[TopicPartition], generation: int) -> bytes:
    """Encode topics with their partitions, then the generation."""
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(owned):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    parts = [_i32.pack(len(by_topic))]
    for topic, indexes in by_topic.items():
        name = topic.encode()
        parts += [_i16.pack(len(name)), name, _i32.pack(len(indexes)), *map(_i32.pack, indexes)]
    return b"".join([*parts, _i32.pack(generation)])


def decode_user_data(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    """Decode user data. Old members omit the generation; invalid data means no owned partitions."""
    owned: list[TopicPartition] = []
    try:
        (topic_count,), position = _i32.unpack_from(data), 4
        for _ in range(topic_count):
            (size,) = _i16.unpack_from(data, position)
            topic = data[position + 2 : position + 2 + size].decode()
            (count,) = _i32.unpack_from(data, position + 2 + size)
            position += 6 + size
            for _ in range(count):
                owned.append(TopicPartition(topic, *_i32.unpack_from(data, position)))
                position += 4
        generation = _i32.unpack_from(data, position)[0] if len(data) - position >= 4 else NO_GENERATION
    except (error, UnicodeDecodeError):
        return (), NO_GENERATION
    return tuple(owned), generation
