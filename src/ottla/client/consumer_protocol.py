"""Kafka's consumer protocol: subscriptions and assignments that all clients read.

The data starts with a version, and later versions start with the fields of earlier ones.
"""

from collections.abc import Sequence
from struct import Struct

from ottla.client.assignors import Member
from ottla.client.positions import by_topic
from ottla.client.records import TopicPartition
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.consumer_protocol import TopicPartition as WirePartitions
from ottla.wire.schema import decode, encode

VERSION = 3
_version = Struct(">h")


def encode_subscription(
    topics: Sequence[str], owned: Sequence[TopicPartition], generation: int, rack: str | None, user_data: bytes | None
) -> bytes:
    partitions = [WirePartitions(topic=topic, partitions=indexes) for topic, indexes in by_topic(owned).items()]
    message = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=partitions,
        generation_id=generation,
        rack_id=rack or None,
    )
    return _version.pack(VERSION) + encode(message, VERSION)


def decode_subscription(data: bytes, member_id: str, instance_id: str | None) -> Member:
    """Return the member described by a subscription of any version."""
    version: int = _version.unpack_from(data)[0]
    found, _ = decode(ConsumerProtocolSubscription, min(max(version, 0), VERSION), data, 2)
    owned = tuple(TopicPartition(each.topic, index) for each in found.owned_partitions for index in each.partitions)
    return Member(
        member_id, tuple(found.topics), owned, found.generation_id, instance_id, found.rack_id or None, found.user_data
    )


def encode_assignment(partitions: Sequence[TopicPartition], user_data: bytes | None = None) -> bytes:
    entry = ConsumerProtocolAssignment.TopicPartition
    assigned = [entry(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()]
    return _version.pack(VERSION) + encode(
        ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=user_data), VERSION
    )


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Return the assigned partitions. A member that the leader left out gets empty data: no partitions."""
    if not data:
        return ()
    version: int = _version.unpack_from(data)[0]
    found, _ = decode(ConsumerProtocolAssignment, min(max(version, 0), VERSION), data, 2)
    return tuple(
        sorted(TopicPartition(each.topic, index) for each in found.assigned_partitions for index in each.partitions)
    )
