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
    Case("first offset", (fetch(),), FILLED),
    Case("offset inside a batch", (fetch(3),), FILLED),
    Case("offset inside a compressed batch", (fetch(7),), FILLED),
    Case("log end offset", (fetch(12),), FILLED),
    Case("offset after the log end", (fetch(13),), FILLED),
    Case("negative offset", (fetch(-1),), FILLED, versions=SOME),
    Case("empty partition", (fetch(0, 1),), FILLED),
    Case("unknown partition", (fetch(0, 7),), FILLED),
    Case("negative partition", (fetch(0, -1),), FILLED, versions=SOME),
    Case("unknown topic", (Call(fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID)),)),
    Case(
        "zero topic id",
        (Call(fetch_request(fetch_partition(), topic_uuid=ZERO_UUID)),),
        FILLED,
        versions=range(13, 19),
    ),
    Case("two topics, one unknown", (Call(TWO_TOPICS),), FILLED),
    Case("two partitions", (Call(fetch_request(fetch_partition(), fetch_partition(0, 1))),), FILLED),
    Case(
        "two partitions, one unknown",
        (Call(fetch_request(fetch_partition(5), fetch_partition(0, 9))),),
        FILLED,
    ),
    Case(
        "two partitions, one out of range",
        (Call(fetch_request(fetch_partition(5), fetch_partition(44, 1))),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "same partition twice", (Call(fetch_request(fetch_partition(5), fetch_partition(10))),), FILLED, versions=SOME
    ),
    Case("empty request", (Call(FetchRequest(max_wait_ms=0, min_bytes=1)),)),
    Case("partition_max_bytes 0", (fetch(partition_max_bytes=0),), FILLED),
    Case("partition_max_bytes 1", (fetch(partition_max_bytes=1),), FILLED, versions=SOME),
    Case("partition_max_bytes of one batch", (fetch(partition_max_bytes=120),), FILLED, versions=SOME),
    Case("partition_max_bytes of a batch and a half", (fetch(partition_max_bytes=200),), FILLED, versions=SOME),
    Case("negative partition_max_bytes", (fetch(partition_max_bytes=-1),), FILLED, versions=SOME),
    Case("max_bytes 0", (limited(max_bytes=0),), FILLED, versions=SOME),
    Case("max_bytes 1", (limited(max_bytes=1),), FILLED),
    Case("negative max_bytes", (limited(max_bytes=-1),), FILLED, versions=SOME),
    Case(
        "negative max_bytes, log end offset",
        (Call(fetch_request(fetch_partition(12), fetch_partition(0, 1), max_bytes=-1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "negative max_bytes, offset after the log end",
        (Call(fetch_request(fetch_partition(13), max_bytes=-1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "negative max_bytes, two partitions",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=-1)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "two partitions, negative partition_max_bytes of the first",
        (Call(fetch_request(fetch_partition(partition_max_bytes=-9), fetch_partition(0, 2))),),
        THREE,
        versions=SOME,
    ),
    Case(
        "two partitions, negative partition_max_bytes of the second",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2, partition_max_bytes=-9))),),
        THREE,
        versions=SOME,
    ),
    Case("negative partition_max_bytes, log end offset", (fetch(12, partition_max_bytes=-1),), FILLED, versions=SOME),
    Case(
        "max_bytes 1, two partitions with records",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=1)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "max_bytes 400, two partitions with records",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=400)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "max_bytes ends inside a batch of the second partition",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2), max_bytes=200)),),
        THREE,
        versions=SOME,
    ),
    Case(
        "two partitions, partition_max_bytes of the second inside a batch",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 2, partition_max_bytes=70))),),
        THREE,
        versions=SOME,
    ),
    Case(
        "two partitions, partition_max_bytes 0 of both",
        (Call(fetch_request(fetch_partition(partition_max_bytes=0), fetch_partition(0, 2, partition_max_bytes=0))),),
        THREE,
        versions=SOME,
    ),
    Case("negative max_wait_ms", (Call(fetch_request(fetch_partition(12), max_wait_ms=-1)),), FILLED, versions=SOME),
    Case(
        "negative min_bytes",
        (Call(fetch_request(fetch_partition(12), min_bytes=-1, max_wait_ms=5000)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "min_bytes above max_bytes",
        (Call(fetch_request(fetch_partition(), min_bytes=1000, max_bytes=90, max_wait_ms=5000)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "max_bytes 1, same partition twice and an empty one",
        (Call(fetch_request(fetch_partition(), fetch_partition(), fetch_partition(0, 1), max_bytes=1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "min_bytes above the available bytes, short wait",
        (limited(min_bytes=1 << 20, max_wait_ms=50),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "min_bytes 0", (Call(fetch_request(fetch_partition(12), min_bytes=0, max_wait_ms=5000)),), FILLED, versions=SOME
    ),
    Case(
        "error is returned without waiting",
        (Call(fetch_request(fetch_partition(99), min_bytes=1, max_wait_ms=5000)),),
        FILLED,
        versions=SOME,
    ),
    Case("read_committed", (limited(isolation_level=1),), FILLED),
    Case(
        "read_committed, log end offset",
        (Call(fetch_request(fetch_partition(12), isolation_level=1)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "read_committed, offset after the log end",
        (Call(fetch_request(fetch_partition(13), isolation_level=1)),),
        FILLED,
        versions=SOME,
    ),
    Case("unknown isolation level", (limited(isolation_level=9),), FILLED, versions=(4, 6, 7, 12, 13, 18)),
    Case(
        "unknown isolation level, known and unknown partition",
        (Call(fetch_request(fetch_partition(), fetch_partition(0, 9), isolation_level=-1)),),
        FILLED,
        versions=SOME,
    ),
    Case("unknown isolation level, unknown topic", (Call(UNKNOWN_PARTITION),), versions=SOME),
    Case(
        "read_committed, future leader epoch",
        (Call(fetch_request(fetch_partition(current_leader_epoch=3), isolation_level=1)),),
        FILLED,
        versions=(9, 12, 18),
    ),
    Case(
        "read_committed, unknown partition",
        (Call(fetch_request(fetch_partition(0, 9), isolation_level=1)),),
        FILLED,
        versions=SOME,
    ),
    Case("current leader epoch", (fetch(current_leader_epoch=0),), FILLED, versions=range(9, 19)),
    Case("future leader epoch", (fetch(current_leader_epoch=3),), FILLED, versions=range(9, 19)),
    Case("last fetched epoch", (fetch(3, last_fetched_epoch=0),), FILLED, versions=range(12, 19)),
    Case("future last fetched epoch", (fetch(3, last_fetched_epoch=4),), FILLED, versions=range(12, 19)),
    Case("last fetched epoch, offset after the log end", (fetch(20, last_fetched_epoch=0),), FILLED, versions=(12, 18)),
    Case("last fetched epoch, log end offset", (fetch(12, last_fetched_epoch=0),), FILLED, versions=(12, 18)),
    Case(
        "last fetched epoch, empty partition",
        (fetch(0, 1, last_fetched_epoch=0),),
        FILLED,
        versions=(12, 18),
    ),
    Case(
        "last fetched epoch, offset after the end of an empty partition",
        (fetch(4, 1, last_fetched_epoch=0),),
        FILLED,
        versions=(12, 18),
    ),
    Case("last fetched epoch, negative offset", (fetch(-3, last_fetched_epoch=0),), FILLED, versions=(12, 18)),
    Case(
        "diverging last fetched epoch is returned without waiting",
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
    Case("negative epochs", (fetch(10, current_leader_epoch=-7, last_fetched_epoch=-5),), FILLED, versions=(12, 18)),
    Case(
        "future leader epoch and last fetched epoch",
        (fetch(20, current_leader_epoch=2, last_fetched_epoch=0),),
        FILLED,
        versions=(12, 18),
    ),
    Case(
        "future leader epoch, offset after the log end", (fetch(20, current_leader_epoch=2),), FILLED, versions=(9, 18)
    ),
    Case("interleaved topics", (Call(INTERLEAVED),), BOTH, versions=SOME),
    Case("same topic twice", (Call(NAMED_TWICE),), FILLED, versions=SOME),
    Case("follower outside the replica set", (Call(as_follower),), FILLED, versions=range(4, 19)),
    Case("debugging consumer", (limited(replica_id=-2),), FILLED, versions=(4, 14)),
]
