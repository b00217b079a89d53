"""Metadata: one topic, all topics, no topics, unknown topics."""

import struct

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.catalog.case import UNKNOWN_ID, Call, Case, NewTopic, RawFrame, topic_id
from tests.compat.raw import header_bytes

ALL = range(14)


def requested(*names: str, create: bool = False, **more: bool) -> Call:
    return Call(
        MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=create, **more
        )
    )


def by_id(*ids: Uuid, name: str | None = None) -> Call:
    topics = [MetadataRequestTopic(topic_id=value, name=name) for value in ids]
    return Call(MetadataRequest(topics=topics, allow_auto_topic_creation=False))


CASES = [
    Case("one topic", (requested("$a", create=True),), (NewTopic("a", 3),)),
    Case("two topics", (requested("$b", "$a", create=True),), (NewTopic("a", 1), NewTopic("b", 2))),
    Case("same topic twice", (requested("$a", "$a", create=True),), (NewTopic("a", 1),)),
    Case("no topics", (requested(create=True),), versions=range(1, 14)),
    Case(
        "all topics, null array",
        (Call(MetadataRequest(topics=None)),),
        (NewTopic("a", 1), NewTopic("b", 1)),
        versions=range(1, 14),
    ),
    Case("all topics, empty array", (requested(create=True),), (NewTopic("a", 1),), versions=(0,)),
    Case("unknown topic, auto-creation off", (requested("$no"), requested("$no")), versions=range(4, 14)),
    Case("known and unknown topic", (requested("$a", "$no"),), (NewTopic("a", 1),), versions=range(4, 14)),
    Case("unknown topic, auto-creation on", (requested("$new", create=True),)),
    Case("invalid topic name", (requested("a/b", create=True),), versions=ALL),
    Case("invalid topic name, auto-creation off", (requested("a b"),), versions=range(4, 14)),
    Case("empty topic name", (requested("", create=True),), versions=ALL),
    Case("topic name of two dots", (requested("..", create=True),), versions=(0, 4, 9, 12, 13)),
    Case("topic name of 250 characters", (requested("x" * 250, create=True),), versions=(1, 8, 13)),
    Case(
        "topic authorized operations",
        (requested("$a", include_topic_authorized_operations=True),),
        (NewTopic("a", 1),),
        versions=range(8, 14),
    ),
    Case(
        "cluster authorized operations",
        (requested("$a", include_cluster_authorized_operations=True),),
        (NewTopic("a", 1),),
        versions=range(8, 11),
    ),
    Case("by id", (by_id(topic_id("a")),), (NewTopic("a", 2),), versions=(12, 13)),
    Case("by id, version without lookup by id", (by_id(topic_id("a")),), (NewTopic("a", 2),), versions=(10, 11)),
    Case("by id and name", (by_id(topic_id("a"), name="$b"),), (NewTopic("a", 1), NewTopic("b", 1)), versions=(12, 13)),
    Case("unknown topic id", (by_id(UNKNOWN_ID),), versions=(12, 13)),
    Case("two topic ids, one unknown", (by_id(topic_id("a"), UNKNOWN_ID),), (NewTopic("a", 1),), versions=(12, 13)),
    Case(
        "negative topic count",
        (RawFrame(header_bytes(3, 1) + struct.pack(">i", -2), MetadataRequest, 1),),
        versions=(1,),
    ),
    Case(
        "trailing bytes",
        (RawFrame(header_bytes(3, 1) + struct.pack(">i", 0) + b"more", MetadataRequest, 1),),
        versions=(1,),
    ),
    Case(
        "topic name not UTF-8",
        (RawFrame(header_bytes(3, 1) + struct.pack(">ih", 1, 3) + b"a\xff\xfe", MetadataRequest, 1),),
        versions=(1,),
    ),
    Case("no id and no name", (by_id(ZERO_UUID),), versions=(10, 11, 12, 13)),
]
