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


def at(version: int, ask: Call) -> Call:
    return Call(ask.request, version)


def deleted(name: str = "a") -> tuple[Step, ...]:
    """Delete the topic and wait until metadata omits it."""
    return Call(DeleteTopicsRequest(topic_names=[f"${name}"], timeout_ms=10_000), 5), described_topic(f"${name}", 0)


TWO = (*FILLED, NewTopic("b", 2), Fill(Batch(records(2)), topic="b"))
IN_TURNS = fetch_request(fetch_partition(), session_id=0, session_epoch=0)
IN_TURNS.topics += fetch_request(fetch_partition(), name="$b", topic_uuid=topic_id("b")).topics
IN_TURNS.topics += fetch_request(fetch_partition(0, 1)).topics
UNKNOWN = fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID, session_id=0, session_epoch=0)
UNKNOWN_TOO = fetch_request(fetch_partition(3), session_id=0, session_epoch=0)
UNKNOWN_TOO.topics += fetch_request(fetch_partition(), name="$no", topic_uuid=UNKNOWN_ID).topics
YET_TO_COME = fetch_request(fetch_partition(), name="$c", topic_uuid=UNKNOWN_ID, session_id=0, session_epoch=0)

CASES = [
    Case("opened", (opened(fetch_partition(), fetch_partition(0, 1)),), FILLED, versions=range(7, 19)),
    Case(
        "opened, nothing new",
        (opened(fetch_partition(3), fetch_partition(2, 1)), again(1), again(2)),
        FILLED,
        versions=range(7, 19),
    ),
    Case(
        "opened, then moved on",
        (
            opened(fetch_partition(), fetch_partition(0, 1)),
            again(1, fetch_partition(3)),
            again(2, fetch_partition(2, 1)),
        ),
        FILLED,
        versions=range(7, 19),
    ),
    Case("asked again without moving", (opened(fetch_partition()), again(1)), FILLED, versions=SOME),
    Case(
        "something new comes",
        (opened(fetch_partition(3), fetch_partition(2, 1)), MORE, again(1), again(2, fetch_partition(4))),
        FILLED,
        versions=SOME,
    ),
    Case("a partition is added", (opened(fetch_partition(3)), again(1, fetch_partition(0, 1))), FILLED, versions=SOME),
    Case(
        "a partition is forgotten",
        (opened(fetch_partition(), fetch_partition(0, 1)), again(1, forgotten_topics_data=forgotten(0))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "one that is not there is forgotten",
        (opened(fetch_partition(3)), again(1, forgotten_topics_data=forgotten(2))),
        FILLED,
        versions=SOME,
    ),
    Case("a wrong epoch", (opened(fetch_partition()), again(5)), FILLED, versions=range(7, 19)),
    Case("an epoch twice", (opened(fetch_partition(3)), again(1), again(1)), FILLED, versions=SOME),
    Case("an unknown session", (again(1, fetch_partition(), session=77),), FILLED, versions=range(7, 19)),
    Case("closed", (opened(fetch_partition()), again(-1, fetch_partition()), again(1)), FILLED, versions=SOME),
    Case(
        "closed and opened anew",
        (opened(fetch_partition()), again(0, fetch_partition()), again(1, fetch_partition(3))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "of an unknown partition", (opened(fetch_partition(3), fetch_partition(0, 9)), again(1)), FILLED, versions=SOME
    ),
    Case("of nothing", (Call(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=0, session_epoch=0)),), versions=SOME),
    Case("an id without an epoch", (again(-1, fetch_partition(), session=5),), FILLED, versions=SOME),
    Case("an epoch without an id", (again(1, fetch_partition(), session=0),), FILLED, versions=SOME),
    Case(
        "all are forgotten",
        (opened(fetch_partition(3)), again(1, forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "all are forgotten, one is added",
        (opened(fetch_partition(3)), again(1, fetch_partition(0, 1), forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "added and forgotten at once",
        (opened(fetch_partition(3)), again(1, fetch_partition(0, 1), forgotten_topics_data=forgotten(1)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "the only one is named and forgotten",
        (opened(fetch_partition(3)), again(1, fetch_partition(), forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "forgotten and added again",
        (
            opened(fetch_partition(3)),
            again(1, fetch_partition(2, 1), forgotten_topics_data=forgotten(0)),
            again(2, fetch_partition(3)),
        ),
        FILLED,
        versions=SOME,
    ),
    Case(
        "one partition twice",
        (opened(fetch_partition(0), fetch_partition(3)), again(1, fetch_partition(2), fetch_partition(3)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "by names, then by ids",
        (at(12, opened(fetch_partition(3))), at(13, again(1)), at(12, again(1))),
        FILLED,
        versions=(12,),
    ),
    Case(
        "by ids, then by names",
        (at(13, opened(fetch_partition(3))), at(12, again(1)), at(13, again(1))),
        FILLED,
        versions=(13,),
    ),
    Case(
        "by ids, then by names at a wrong epoch",
        (at(13, opened(fetch_partition(3))), at(12, again(9))),
        FILLED,
        versions=(13,),
    ),
    Case(
        "at several versions",
        (at(7, opened(fetch_partition(3))), at(11, again(1)), at(12, again(2, fetch_partition(0, 1)))),
        FILLED,
        versions=(7,),
    ),
    Case("closed by a request for nothing", (opened(fetch_partition(3)), again(-1), again(1)), FILLED, versions=SOME),
    Case(
        "an error goes away",
        (opened(fetch_partition(99)), again(1), again(2, fetch_partition(3)), again(3)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "an error comes",
        (opened(fetch_partition(3)), again(1, fetch_partition(99)), again(2), again(3, fetch_partition(3))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "an epoch to come",
        (
            opened(fetch_partition(3, current_leader_epoch=4)),
            again(1),
            again(2, fetch_partition(3, current_leader_epoch=0)),
        ),
        FILLED,
        versions=(9, 12, 18),
    ),
    Case(
        "a last fetched epoch that diverges",
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
        "an unknown isolation level",
        (opened(fetch_partition(3)), again(1, fetch_partition(2, 1), isolation_level=5), again(2), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "opened at an unknown isolation level",
        (Call(fetch_request(fetch_partition(3), session_id=0, session_epoch=0, isolation_level=5)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "committed only, then all",
        (Call(fetch_request(fetch_partition(), session_id=0, session_epoch=0, isolation_level=1)), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "each has its turn",
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
        "each has its turn from the start",
        (
            Call(fetch_request(fetch_partition(), fetch_partition(0, 1), session_id=0, session_epoch=0, max_bytes=1)),
            again(1, max_bytes=1),
            again(2, max_bytes=1),
            again(3, max_bytes=1),
        ),
        FILLED,
        versions=SOME,
    ),
    Case("topics in turns", (Call(IN_TURNS), again(1), again(2, fetch_partition(3))), TWO, versions=SOME),
    Case("of an unknown topic", (Call(UNKNOWN), again(1)), versions=SOME),
    Case(
        "of an unknown topic, too",
        (Call(UNKNOWN_TOO), again(1), again(2, fetch_partition(0, 1))),
        FILLED,
        versions=SOME,
    ),
    Case("of a topic that is made later", (Call(YET_TO_COME), NewTopic("c"), again(1), again(2)), versions=(7, 12)),
    Case(
        "the topic is deleted",
        (opened(fetch_partition(3), fetch_partition(2, 1)), *deleted(), again(1), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case("the topic is deleted, another not", (Call(IN_TURNS), *deleted("b"), again(1), again(2)), TWO, versions=SOME),
    Case(
        "the topic is deleted and made again",
        (opened(fetch_partition(3)), *deleted(), NewTopic("a"), again(1), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "a deleted topic is named again",
        (opened(fetch_partition(3)), *deleted(), again(1, fetch_partition(3))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "an epoch below all",
        (again(-2, fetch_partition(), session=0), again(-2, fetch_partition(), session=7)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "an epoch of nought for a session that is not there",
        (again(0, fetch_partition(), session=99),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "something is forgotten by one that opens",
        (
            Call(fetch_request(fetch_partition(3), session_id=0, session_epoch=0, forgotten_topics_data=forgotten(0))),
            again(1),
        ),
        FILLED,
        versions=SOME,
    ),
    Case(
        "other limits",
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
