"""Fetch without a session: offsets, limits, isolation levels, unknown partitions."""

from typing import Any

from ottla.base.ids import ZERO_UUID
from ottla.wire.messages.fetch import FetchRequest, ReplicaState
from tests.compat.catalog.case import UNKNOWN_ID, Batch, Call, Case, Fill, NewTopic, records, topic_id
from tests.compat.catalog.sending import fetch_partition, fetch_request

FILLED = (
    NewTopic("a", 2),
    Fill(Batch(records(5))),
    Fill(Batch(records(5, first=5), codec=1)),
    Fill(Batch(records(2, first=10))),
)
THREE = (NewTopic("a", 3), Fill(Batch(records(5))), Fill(Batch(records(4)), partition=2))
BOTH = (*FILLED, NewTopic("b", 1), Fill(Batch(records(2)), topic="b"))
SOME = (4, 7, 12, 13, 18)


def fetch(offset: int = 0, partition: int = 0, **more: int) -> Call:
    return Call(fetch_request(fetch_partition(offset, partition, **more)))


def limited(**more: int) -> Call:
    return Call(fetch_request(fetch_partition(), **more))


TWO_TOPICS = fetch_request(fetch_partition())
TWO_TOPICS.topics += fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID).topics
INTERLEAVED = fetch_request(fetch_partition(10), fetch_partition(0, 9))
INTERLEAVED.topics += fetch_request(fetch_partition(), name="$b", topic_uuid=topic_id("b")).topics
INTERLEAVED.topics += fetch_request(fetch_partition(0, 1), fetch_partition(0, 8)).topics
NAMED_TWICE = fetch_request(fetch_partition(5))
NAMED_TWICE.topics += fetch_request(fetch_partition(0, 1), fetch_partition(10)).topics
UNKNOWN_PARTITION = fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID, isolation_level=9)


def as_follower(version: int) -> FetchRequest:
    fields: dict[str, Any] = (
        {"replica_state": ReplicaState(replica_id=5, replica_epoch=1)} if version >= 15 else {"replica_id": 5}
    )
    return fetch_request(fetch_partition(), **fields)


CASES = [
    Case("from the beginning", (fetch(),), FILLED),
    Case("from the middle of a batch", (fetch(3),), FILLED),
    Case("from the middle of a compressed batch", (fetch(7),), FILLED),
    Case("from the end", (fetch(12),), FILLED),
    Case("beyond the end", (fetch(13),), FILLED),
    Case("before the beginning", (fetch(-1),), FILLED, versions=SOME),
    Case("of an empty partition", (fetch(0, 1),), FILLED),
    Case("of an unknown partition", (fetch(0, 7),), FILLED),
    Case("of a negative partition", (fetch(0, -1),), FILLED, versions=SOME),
    Case("of an unknown topic", (Call(fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID)),)),
    Case(
        "of no topic id",
        (Call(fetch_request(fetch_partition(), topic_uuid=ZERO_UUID)),),
        FILLED,
        versions=range(13, 19),
    ),
    Case("of two topics, one of them unknown", (Call(TWO_TOPICS),), FILLED),
    Case("of two partitions", (Call(fetch_request(fetch_partition(), fetch_partition(0, 1))),), FILLED),
    Case(
        "of two partitions, one of them unknown",
        (Call(fetch_request(fetch_partition(5), fetch_partition(0, 9))),),
        FILLED,
    ),
    Case(
        "of two partitions, one of them out of range",
        (Call(fetch_request(fetch_partition(5), fetch_partition(44, 1))),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "of one partition twice", (Call(fetch_request(fetch_partition(5), fetch_partition(10))),), FILLED, versions=SOME
    ),
    Case("of nothing", (Call(FetchRequest(max_wait_ms=0, min_bytes=1)),)),
    Case("no bytes of the partition", (fetch(partition_max_bytes=0),), FILLED),
    Case("one byte of the partition", (fetch(partition_max_bytes=1),), FILLED, versions=SOME),
    Case("one batch of the partition", (fetch(partition_max_bytes=120),), FILLED, versions=SOME),
    Case("a batch and a half of the partition", (fetch(partition_max_bytes=200),), FILLED, versions=SOME),
    Case("negative bytes of the partition", (fetch(partition_max_bytes=-1),), FILLED, versions=SOME),
    Case("no bytes", (limited(max_bytes=0),), FILLED, versions=SOME),
    Case("one byte", (limited(max_bytes=1),), FILLED),
    Case("negative bytes", (limited(max_bytes=-1),), FILLED, versions=SOME),
    Case(
        "negative bytes, from the end",
        (Call(fetch_request(fetch_partition(12), fetch_partition(0, 1), max_bytes=-1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "negative bytes, beyond the end",
        (Call(fetch_request(fetch_partition(13), max_bytes=-1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "negative bytes of two partitions",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=-1)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "negative bytes of one of two",
        (Call(fetch_request(fetch_partition(partition_max_bytes=-9), fetch_partition(0, 2))),),
        THREE,
        versions=SOME,
    ),
    Case(
        "negative bytes of the second of two",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2, partition_max_bytes=-9))),),
        THREE,
        versions=SOME,
    ),
    Case("negative bytes of the partition, from the end", (fetch(12, partition_max_bytes=-1),), FILLED, versions=SOME),
    Case(
        "one byte of two partitions that hold some",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=1)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "a little of two partitions that hold some",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=400)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "all of one partition and a part of a batch of another",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=200)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "a part of a batch of the second of two",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2, partition_max_bytes=70))),),
        THREE,
        versions=SOME,
    ),
    Case(
        "no bytes of either of two",
        (Call(fetch_request(fetch_partition(partition_max_bytes=0), fetch_partition(0, 2, partition_max_bytes=0))),),
        THREE,
        versions=SOME,
    ),
    Case("a negative wait", (Call(fetch_request(fetch_partition(12), max_wait_ms=-1)),), FILLED, versions=SOME),
    Case(
        "a negative minimum",
        (Call(fetch_request(fetch_partition(12), min_bytes=-1, max_wait_ms=5000)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "a minimum above the maximum",
        (Call(fetch_request(fetch_partition(), min_bytes=1000, max_bytes=90, max_wait_ms=5000)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "one byte of two partitions",
        (Call(fetch_request(fetch_partition(), fetch_partition(), fetch_partition(0, 1), max_bytes=1)),),
        FILLED,
        versions=SOME,
    ),
    Case("more than there is, and a little time", (limited(min_bytes=1 << 20, max_wait_ms=50),), FILLED, versions=SOME),
    Case(
        "no minimum", (Call(fetch_request(fetch_partition(12), min_bytes=0, max_wait_ms=5000)),), FILLED, versions=SOME
    ),
    Case(
        "an error does not wait",
        (Call(fetch_request(fetch_partition(99), min_bytes=1, max_wait_ms=5000)),),
        FILLED,
        versions=SOME,
    ),
    Case("committed only", (limited(isolation_level=1),), FILLED),
    Case(
        "committed only, from the end",
        (Call(fetch_request(fetch_partition(12), isolation_level=1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "committed only, beyond the end",
        (Call(fetch_request(fetch_partition(13), isolation_level=1)),),
        FILLED,
        versions=SOME,
    ),
    Case("an unknown isolation level", (limited(isolation_level=9),), FILLED, versions=(4, 6, 7, 12, 13, 18)),
    Case(
        "an unknown isolation level, beside what is not there",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 9), isolation_level=-1)),),
        FILLED,
        versions=SOME,
    ),
    Case("an unknown isolation level for what is not there", (Call(UNKNOWN_PARTITION),), versions=SOME),
    Case(
        "committed only, with an epoch to come",
        (Call(fetch_request(fetch_partition(current_leader_epoch=3), isolation_level=1)),),
        FILLED,
        versions=(9, 12, 18),
    ),
    Case(
        "committed only, of an unknown partition",
        (Call(fetch_request(fetch_partition(0, 9), isolation_level=1)),),
        FILLED,
        versions=SOME,
    ),
    Case("with the leader's epoch", (fetch(current_leader_epoch=0),), FILLED, versions=range(9, 19)),
    Case("with an epoch to come", (fetch(current_leader_epoch=3),), FILLED, versions=range(9, 19)),
    Case("with a last fetched epoch", (fetch(3, last_fetched_epoch=0),), FILLED, versions=range(12, 19)),
    Case("with a last fetched epoch to come", (fetch(3, last_fetched_epoch=4),), FILLED, versions=range(12, 19)),
    Case("with a last fetched epoch, beyond the end", (fetch(20, last_fetched_epoch=0),), FILLED, versions=(12, 18)),
    Case("with a last fetched epoch, at the end", (fetch(12, last_fetched_epoch=0),), FILLED, versions=(12, 18)),
    Case(
        "with a last fetched epoch, of an empty partition",
        (fetch(0, 1, last_fetched_epoch=0),),
        FILLED,
        versions=(12, 18),
    ),
    Case(
        "with a last fetched epoch, beyond the end of an empty partition",
        (fetch(4, 1, last_fetched_epoch=0),),
        FILLED,
        versions=(12, 18),
    ),
    Case(
        "with a last fetched epoch, before the beginning", (fetch(-3, last_fetched_epoch=0),), FILLED, versions=(12, 18)
    ),
    Case(
        "a last fetched epoch that diverges does not wait",
        (
            Call(
                fetch_request(
                    fetch_partition(20, last_fetched_epoch=0),
                    fetch_partition(0, 1),
                    max_wait_ms=5000,
                    isolation_level=1,
                )
            ),
        ),
        FILLED,
        versions=(12, 18),
    ),
    Case(
        "with negative epochs", (fetch(10, current_leader_epoch=-7, last_fetched_epoch=-5),), FILLED, versions=(12, 18)
    ),
    Case(
        "with an epoch to come, and a last fetched one",
        (fetch(20, current_leader_epoch=2, last_fetched_epoch=0),),
        FILLED,
        versions=(12, 18),
    ),
    Case("with an epoch to come, beyond the end", (fetch(20, current_leader_epoch=2),), FILLED, versions=(9, 18)),
    Case("topics in turns", (Call(INTERLEAVED),), BOTH, versions=SOME),
    Case("one topic twice", (Call(NAMED_TWICE),), FILLED, versions=SOME),
    Case("as a follower that is none", (Call(as_follower),), FILLED, versions=range(4, 19)),
    Case("as a debugging client", (limited(replica_id=-2),), FILLED, versions=(4, 14)),
]
