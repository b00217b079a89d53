"""Incremental fetch sessions."""

from typing import Any

from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic
from tests.compat.catalog.case import (
    LAST_SESSION,
    UNKNOWN_ID,
    Ask,
    Batch,
    Case,
    Fill,
    NewTopic,
    Step,
    records,
    shown,
    topic_id,
)
from tests.compat.catalog.sending import fetch_request, place

FILLED = (NewTopic("a", 3), Fill(Batch(records(3))), Fill(Batch(records(2)), partition=1))
MORE = Fill(Batch(records(1, first=9)))
SOME = (7, 12, 13, 18)


def opened(*partitions: FetchPartition) -> Ask:
    return Ask(fetch_request(*partitions, session_id=0, session_epoch=0))


def again(epoch: int, *partitions: FetchPartition, session: int = LAST_SESSION, **more: Any) -> Ask:
    if partitions:
        return Ask(fetch_request(*partitions, session_id=session, session_epoch=epoch, **more))
    return Ask(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=epoch, **more))


def forgotten(*partitions: int) -> list[ForgottenTopic]:
    return [ForgottenTopic(topic="$a", topic_id=topic_id("a"), partitions=list(partitions))]


def at(version: int, ask: Ask) -> Ask:
    return Ask(ask.request, version)


def gone(name: str = "a") -> tuple[Step, ...]:
    """The topic is deleted, and no longer shown."""
    return Ask(DeleteTopicsRequest(topic_names=[f"${name}"], timeout_ms=10_000), 5), shown(f"${name}", 0)


TWO = (*FILLED, NewTopic("b", 2), Fill(Batch(records(2)), topic="b"))
IN_TURNS = fetch_request(place(), session_id=0, session_epoch=0)
IN_TURNS.topics += fetch_request(place(), name="$b", known_as=topic_id("b")).topics
IN_TURNS.topics += fetch_request(place(0, 1)).topics
UNKNOWN = fetch_request(place(), name="$no", known_as=UNKNOWN_ID, session_id=0, session_epoch=0)
UNKNOWN_TOO = fetch_request(place(3), session_id=0, session_epoch=0)
UNKNOWN_TOO.topics += fetch_request(place(), name="$no", known_as=UNKNOWN_ID).topics
YET_TO_COME = fetch_request(place(), name="$c", known_as=UNKNOWN_ID, session_id=0, session_epoch=0)

CASES = [
    Case("opened", (opened(place(), place(0, 1)),), FILLED, versions=range(7, 19)),
    Case("opened, nothing new", (opened(place(3), place(2, 1)), again(1), again(2)), FILLED, versions=range(7, 19)),
    Case(
        "opened, then moved on",
        (opened(place(), place(0, 1)), again(1, place(3)), again(2, place(2, 1))),
        FILLED,
        versions=range(7, 19),
    ),
    Case("asked again without moving", (opened(place()), again(1)), FILLED, versions=SOME),
    Case(
        "something new comes",
        (opened(place(3), place(2, 1)), MORE, again(1), again(2, place(4))),
        FILLED,
        versions=SOME,
    ),
    Case("a partition is added", (opened(place(3)), again(1, place(0, 1))), FILLED, versions=SOME),
    Case(
        "a partition is forgotten",
        (opened(place(), place(0, 1)), again(1, forgotten_topics_data=forgotten(0))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "one that is not there is forgotten",
        (opened(place(3)), again(1, forgotten_topics_data=forgotten(2))),
        FILLED,
        versions=SOME,
    ),
    Case("a wrong epoch", (opened(place()), again(5)), FILLED, versions=range(7, 19)),
    Case("an epoch twice", (opened(place(3)), again(1), again(1)), FILLED, versions=SOME),
    Case("an unknown session", (again(1, place(), session=77),), FILLED, versions=range(7, 19)),
    Case("closed", (opened(place()), again(-1, place()), again(1)), FILLED, versions=SOME),
    Case("closed and opened anew", (opened(place()), again(0, place()), again(1, place(3))), FILLED, versions=SOME),
    Case("of an unknown partition", (opened(place(3), place(0, 9)), again(1)), FILLED, versions=SOME),
    Case("of nothing", (Ask(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=0, session_epoch=0)),), versions=SOME),
    Case("an id without an epoch", (again(-1, place(), session=5),), FILLED, versions=SOME),
    Case("an epoch without an id", (again(1, place(), session=0),), FILLED, versions=SOME),
    Case(
        "all are forgotten",
        (opened(place(3)), again(1, forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "all are forgotten, one is added",
        (opened(place(3)), again(1, place(0, 1), forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "added and forgotten at once",
        (opened(place(3)), again(1, place(0, 1), forgotten_topics_data=forgotten(1)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "the only one is named and forgotten",
        (opened(place(3)), again(1, place(), forgotten_topics_data=forgotten(0)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "forgotten and added again",
        (opened(place(3)), again(1, place(2, 1), forgotten_topics_data=forgotten(0)), again(2, place(3))),
        FILLED,
        versions=SOME,
    ),
    Case(
        "one partition twice",
        (opened(place(0), place(3)), again(1, place(2), place(3)), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "by names, then by ids", (at(12, opened(place(3))), at(13, again(1)), at(12, again(1))), FILLED, versions=(12,)
    ),
    Case(
        "by ids, then by names", (at(13, opened(place(3))), at(12, again(1)), at(13, again(1))), FILLED, versions=(13,)
    ),
    Case(
        "by ids, then by names at a wrong epoch", (at(13, opened(place(3))), at(12, again(9))), FILLED, versions=(13,)
    ),
    Case(
        "at several versions",
        (at(7, opened(place(3))), at(11, again(1)), at(12, again(2, place(0, 1)))),
        FILLED,
        versions=(7,),
    ),
    Case("closed by a request for nothing", (opened(place(3)), again(-1), again(1)), FILLED, versions=SOME),
    Case("an error goes away", (opened(place(99)), again(1), again(2, place(3)), again(3)), FILLED, versions=SOME),
    Case(
        "an error comes", (opened(place(3)), again(1, place(99)), again(2), again(3, place(3))), FILLED, versions=SOME
    ),
    Case(
        "an epoch to come",
        (opened(place(3, current_leader_epoch=4)), again(1), again(2, place(3, current_leader_epoch=0))),
        FILLED,
        versions=(9, 12, 18),
    ),
    Case(
        "a last fetched epoch that diverges",
        (opened(place(20, last_fetched_epoch=0)), again(1), again(2, place(3, last_fetched_epoch=0)), again(3)),
        FILLED,
        versions=(12, 13, 18),
    ),
    Case(
        "an unknown isolation level",
        (opened(place(3)), again(1, place(2, 1), isolation_level=5), again(2), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "opened at an unknown isolation level",
        (Ask(fetch_request(place(3), session_id=0, session_epoch=0, isolation_level=5)),),
        FILLED,
        versions=SOME,
    ),
    Case(
        "committed only, then all",
        (Ask(fetch_request(place(), session_id=0, session_epoch=0, isolation_level=1)), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "each has its turn",
        (opened(place(), place(0, 1)), again(1, max_bytes=1), again(2, max_bytes=1), again(3, max_bytes=1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "each has its turn from the start",
        (
            Ask(fetch_request(place(), place(0, 1), session_id=0, session_epoch=0, max_bytes=1)),
            again(1, max_bytes=1),
            again(2, max_bytes=1),
            again(3, max_bytes=1),
        ),
        FILLED,
        versions=SOME,
    ),
    Case("topics in turns", (Ask(IN_TURNS), again(1), again(2, place(3))), TWO, versions=SOME),
    Case("of an unknown topic", (Ask(UNKNOWN), again(1)), versions=SOME),
    Case("of an unknown topic, too", (Ask(UNKNOWN_TOO), again(1), again(2, place(0, 1))), FILLED, versions=SOME),
    Case("of a topic that is made later", (Ask(YET_TO_COME), NewTopic("c"), again(1), again(2)), versions=(7, 12)),
    Case("the topic is deleted", (opened(place(3), place(2, 1)), *gone(), again(1), again(2)), FILLED, versions=SOME),
    Case("the topic is deleted, another not", (Ask(IN_TURNS), *gone("b"), again(1), again(2)), TWO, versions=SOME),
    Case(
        "the topic is deleted and made again",
        (opened(place(3)), *gone(), NewTopic("a"), again(1), again(2)),
        FILLED,
        versions=SOME,
    ),
    Case("a deleted topic is named again", (opened(place(3)), *gone(), again(1, place(3))), FILLED, versions=SOME),
    Case("an epoch below all", (again(-2, place(), session=0), again(-2, place(), session=7)), FILLED, versions=SOME),
    Case("an epoch of nought for a session that is not there", (again(0, place(), session=99),), FILLED, versions=SOME),
    Case(
        "something is forgotten by one that opens",
        (Ask(fetch_request(place(3), session_id=0, session_epoch=0, forgotten_topics_data=forgotten(0))), again(1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "other limits",
        (opened(place()), again(1, place(partition_max_bytes=1)), again(2, place(partition_max_bytes=-1)), again(3)),
        FILLED,
        versions=SOME,
    ),
]
