"""Incremental fetch sessions."""

from typing import Any

from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic
from tests.compat.catalog.case import (
    LAST_SESSION,
    UNKNOWN_ID,
    Batch,
    Call,
    Case,
    Fill,
    NewTopic,
    Step,
    described_topic,
    records,
    topic_id,
)
from tests.compat.catalog.sending import fetch_partition, fetch_request

FILLED = (NewTopic("a", 3), Fill(Batch(records(3))), Fill(Batch(records(2)), partition=1))
MORE = Fill(Batch(records(1, first=9)))
SOME = (7, 12, 13, 18)


def opened(*partitions: FetchPartition) -> Call:
    return Call(fetch_request(*partitions, session_id=0, session_epoch=0))


def again(epoch: int, *partitions: FetchPartition, session: int = LAST_SESSION, **more: Any) -> Call:
    if partitions:
        return Call(fetch_request(*partitions, session_id=session, session_epoch=epoch, **more))
    return Call(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=epoch, **more))


def forgotten(*partitions: int) -> list[ForgottenTopic]:
    return [ForgottenTopic(topic="$a", topic_id=topic_id("a"), partitions=list(partitions))]


def at(version: int, call: Call) -> Call:
    return Call(call.request, version)


def deleted(name: str = "a") -> tuple[Step, ...]:
    """Delete the topic and wait until metadata omits it."""
    return Call(DeleteTopicsRequest(topic_names=[f"${name}"], timeout_ms=10_000), 5), described_topic(f"${name}", 0)


TWO = (*FILLED, NewTopic("b", 2), Fill(Batch(records(2)), topic="b"))
INTERLEAVED = fetch_request(fetch_partition(), session_id=0, session_epoch=0)
INTERLEAVED.topics += fetch_request(fetch_partition(), name="$b", topic_uuid=topic_id("b")).topics
INTERLEAVED.topics += fetch_request(fetch_partition(0, 1)).topics
UNKNOWN = fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID, session_id=0, session_epoch=0)
UNKNOWN_TOO = fetch_request(fetch_partition(3), session_id=0, session_epoch=0)
UNKNOWN_TOO.topics += fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID).topics
CREATED_LATER = fetch_request(fetch_partition(), name="$c", topic_uuid=UNKNOWN_ID, session_id=0, session_epoch=0)

CASES = [
    Case("open", (opened(fetch_partition(), fetch_partition(0, 1)),), FILLED, versions=range(7, 19)),
    Case(
        "open, no new records",
        (opened(fetch_partition(3), fetch_partition(2, 1)), again(1), again(2)),
        FILLED,
        versions=range(7, 19),
    ),
    Case(
        "open, then advance the offsets",
        (
            opened(fetch_partition(), fetch_partition(0, 1)),
            again(1, fetch_partition(3)),
            again(2, fetch_partition(2, 1)),
        ),
        FILLED,
        versions=range(7, 19),
    ),
    Case("same offset again", (opened(fetch_partition()), again(1)), FILLED, versions=SOME),
    Case(
        "new records appended",
        (opened(fetch_partition(3), fetch_partition(2, 1)), MORE, again(1), again(2, fetch_partition(4))),
        FILLED,
        versions=SOME,
    ),
    Case("add a partition", (opened(fetch_partition(3)), again(1, fetch_partition(0, 1))), FILLED, versions=SOME),
    Case(
        "forget a partition",
        (opened(fetch_partition(), fetch_partition(0, 1)), again(1, forgotten_topics_data=forgotten(0))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "forget a partition outside the session",
        (opened(fetch_partition(3)), again(1, forgotten_topics_data=forgotten(2))),
        FILLED,
        versions=SOME,
    ),
    Case("wrong session epoch", (opened(fetch_partition()), again(5)), FILLED, versions=range(7, 19)),
    Case("same session epoch twice", (opened(fetch_partition(3)), again(1), again(1)), FILLED, versions=SOME),
    Case("unknown session id", (again(1, fetch_partition(), session=77),), FILLED, versions=range(7, 19)),
    Case("close", (opened(fetch_partition()), again(-1, fetch_partition()), again(1)), FILLED, versions=SOME),
    Case(
        "close and reopen",
        (opened(fetch_partition()), again(0, fetch_partition()), again(1, fetch_partition(3))),
        FILLED,
        versions=SOME,
    ),
    Case("unknown partition", (opened(fetch_partition(3), fetch_partition(0, 9)), again(1)), FILLED, versions=SOME),
    Case(
        "empty request", (Call(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=0, session_epoch=0)),), versions=SOME
    ),
    Case("session id without an epoch", (again(-1, fetch_partition(), session=5),), FILLED, versions=SOME),
    Case("session epoch without an id", (again(1, fetch_partition(), session=0),), FILLED, versions=SOME),
    Case(
        "forget all partitions",
        (opened(fetch_partition(3)), again(1, forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "forget all partitions and add one",
        (opened(fetch_partition(3)), again(1, fetch_partition(0, 1), forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "add and forget a partition in one request",
        (opened(fetch_partition(3)), again(1, fetch_partition(0, 1), forgotten_topics_data=forgotten(1)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "update and forget the only partition",
        (opened(fetch_partition(3)), again(1, fetch_partition(), forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "forget a partition and add it again",
        (
            opened(fetch_partition(3)),
            again(1, fetch_partition(2, 1), forgotten_topics_data=forgotten(0)),
            again(2, fetch_partition(3)),
        ),
        FILLED,
        versions=SOME,
    ),
    Case(
        "same partition twice",
        (opened(fetch_partition(0), fetch_partition(3)), again(1, fetch_partition(2), fetch_partition(3)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "topic names, then topic ids",
        (at(12, opened(fetch_partition(3))), at(13, again(1)), at(12, again(1))),
        FILLED,
        versions=(12,),
    ),
    Case(
        "topic ids, then topic names",
        (at(13, opened(fetch_partition(3))), at(12, again(1)), at(13, again(1))),
        FILLED,
        versions=(13,),
    ),
    Case(
        "topic ids, then topic names with a wrong epoch",
        (at(13, opened(fetch_partition(3))), at(12, again(9))),
        FILLED,
        versions=(13,),
    ),
    Case(
        "several API versions",
        (at(7, opened(fetch_partition(3))), at(11, again(1)), at(12, again(2, fetch_partition(0, 1)))),
        FILLED,
        versions=(7,),
    ),
    Case("close with an empty request", (opened(fetch_partition(3)), again(-1), again(1)), FILLED, versions=SOME),
    Case(
        "error is cleared",
        (opened(fetch_partition(99)), again(1), again(2, fetch_partition(3)), again(3)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "error appears",
        (opened(fetch_partition(3)), again(1, fetch_partition(99)), again(2), again(3, fetch_partition(3))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "future leader epoch",
        (
            opened(fetch_partition(3, current_leader_epoch=4)),
            again(1),
            again(2, fetch_partition(3, current_leader_epoch=0)),
        ),
        FILLED,
        versions=(9, 12, 18),
    ),
    Case(
        "diverging last fetched epoch",
        (
            opened(fetch_partition(20, last_fetched_epoch=0)),
            again(1),
            again(2, fetch_partition(3, last_fetched_epoch=0)),
            again(3),
        ),
        FILLED,
        versions=(12, 13, 18),
    ),
    Case(
        "unknown isolation level",
        (opened(fetch_partition(3)), again(1, fetch_partition(2, 1), isolation_level=5), again(2), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "open with an unknown isolation level",
        (Call(fetch_request(fetch_partition(3), session_id=0, session_epoch=0, isolation_level=5)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "read_committed, then read_uncommitted",
        (Call(fetch_request(fetch_partition(), session_id=0, session_epoch=0, isolation_level=1)), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "max_bytes 1 rotates the partitions",
        (
            opened(fetch_partition(), fetch_partition(0, 1)),
            again(1, max_bytes=1),
            again(2, max_bytes=1),
            again(3, max_bytes=1),
        ),
        FILLED,
        versions=SOME,
    ),
    Case(
        "max_bytes 1 rotates the partitions from the first request",
        (
            Call(fetch_request(fetch_partition(), fetch_partition(0, 1), session_id=0, session_epoch=0, max_bytes=1)),
            again(1, max_bytes=1),
            again(2, max_bytes=1),
            again(3, max_bytes=1),
        ),
        FILLED,
        versions=SOME,
    ),
    Case("interleaved topics", (Call(INTERLEAVED), again(1), again(2, fetch_partition(3))), TWO, versions=SOME),
    Case("unknown topic", (Call(UNKNOWN), again(1)), versions=SOME),
    Case(
        "known and unknown topic",
        (Call(UNKNOWN_TOO), again(1), again(2, fetch_partition(0, 1))),
        FILLED,
        versions=SOME,
    ),
    Case("topic created later", (Call(CREATED_LATER), NewTopic("c"), again(1), again(2)), versions=(7, 12)),
    Case(
        "topic deleted",
        (opened(fetch_partition(3), fetch_partition(2, 1)), *deleted(), again(1), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case("one of two topics deleted", (Call(INTERLEAVED), *deleted("b"), again(1), again(2)), TWO, versions=SOME),
    Case(
        "topic deleted and created again",
        (opened(fetch_partition(3)), *deleted(), NewTopic("a"), again(1), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "deleted topic requested again",
        (opened(fetch_partition(3)), *deleted(), again(1, fetch_partition(3))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "session epoch -2",
        (again(-2, fetch_partition(), session=0), again(-2, fetch_partition(), session=7)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "session epoch 0 with an unknown session id",
        (again(0, fetch_partition(), session=99),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "open with forgotten topics",
        (
            Call(fetch_request(fetch_partition(3), session_id=0, session_epoch=0, forgotten_topics_data=forgotten(0))),
            again(1),
        ),
        FILLED,
        versions=SOME,
    ),
    Case(
        "changed partition_max_bytes",
        (
            opened(fetch_partition()),
            again(1, fetch_partition(partition_max_bytes=1)),
            again(2, fetch_partition(partition_max_bytes=-1)),
            again(3),
        ),
        FILLED,
        versions=SOME,
    ),
]
