"""Metadata: of one topic, of all, of none, of those that are not there."""

import struct

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.catalog.case import UNKNOWN_ID, Ask, Case, Frame, NewTopic, topic_id
from tests.compat.raw import header_bytes

ALL = range(14)


def asked(*names: str, create: bool = False, **more: bool) -> Ask:
    return Ask(
        MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=create, **more
        )
    )


def by_id(*ids: Uuid, name: str | None = None) -> Ask:
    topics = [MetadataRequestTopic(topic_id=value, name=name) for value in ids]
    return Ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))


CASES = [
    Case("one topic", (asked("$a", create=True),), (NewTopic("a", 3),)),
    Case("two topics", (asked("$b", "$a", create=True),), (NewTopic("a", 1), NewTopic("b", 2))),
    Case("a topic twice", (asked("$a", "$a", create=True),), (NewTopic("a", 1),)),
    Case("no topics", (asked(create=True),), versions=range(1, 14)),
    Case(
        "all topics, by null",
        (Ask(MetadataRequest(topics=None)),),
        (NewTopic("a", 1), NewTopic("b", 1)),
        versions=range(1, 14),
    ),
    Case("all topics, by an empty list", (asked(create=True),), (NewTopic("a", 1),), versions=(0,)),
    Case("unknown topic, not to be created", (asked("$no"), asked("$no")), versions=range(4, 14)),
    Case("unknown topic among known ones", (asked("$a", "$no"),), (NewTopic("a", 1),), versions=range(4, 14)),
    Case("unknown topic, to be created", (asked("$new", create=True),)),
    Case("invalid name", (asked("a/b", create=True),), versions=ALL),
    Case("invalid name, not to be created", (asked("a b"),), versions=range(4, 14)),
    Case("empty name", (asked("", create=True),), versions=ALL),
    Case("name of dots", (asked("..", create=True),), versions=(0, 4, 9, 12, 13)),
    Case("name of 250 characters", (asked("x" * 250, create=True),), versions=(1, 8, 13)),
    Case(
        "what may be done with a topic",
        (asked("$a", include_topic_authorized_operations=True),),
        (NewTopic("a", 1),),
        versions=range(8, 14),
    ),
    Case(
        "what may be done with the cluster",
        (asked("$a", include_cluster_authorized_operations=True),),
        (NewTopic("a", 1),),
        versions=range(8, 11),
    ),
    Case("by id", (by_id(topic_id("a")),), (NewTopic("a", 2),), versions=(12, 13)),
    Case("by id before ids were for asking", (by_id(topic_id("a")),), (NewTopic("a", 2),), versions=(10, 11)),
    Case("by id and name", (by_id(topic_id("a"), name="$b"),), (NewTopic("a", 1), NewTopic("b", 1)), versions=(12, 13)),
    Case("by an id that no topic has", (by_id(UNKNOWN_ID),), versions=(12, 13)),
    Case(
        "by two ids, one of them unknown", (by_id(topic_id("a"), UNKNOWN_ID),), (NewTopic("a", 1),), versions=(12, 13)
    ),
    Case(
        "a negative number of topics means all",
        (Frame(header_bytes(3, 1) + struct.pack(">i", -2), MetadataRequest, 1),),
        versions=(1,),
    ),
    Case(
        "trailing bytes",
        (Frame(header_bytes(3, 1) + struct.pack(">i", 0) + b"more", MetadataRequest, 1),),
        versions=(1,),
    ),
    Case(
        "a name that is no UTF-8",
        (Frame(header_bytes(3, 1) + struct.pack(">ih", 1, 3) + b"a\xff\xfe", MetadataRequest, 1),),
        versions=(1,),
    ),
    Case("neither id nor name", (by_id(ZERO_UUID),), versions=(10, 11, 12, 13)),
]
