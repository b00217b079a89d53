"""Incremental fetch sessions."""

from typing import Any

from ottla.wire.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic
from tests.compat.catalogue.case import LAST_SESSION, Ask, Batch, Case, Fill, NewTopic, records, topic_id
from tests.compat.catalogue.sending import fetch_request, place

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


CASES = [
    Case("opened", (opened(place(), place(0, 1)),), FILLED, versions=range(7, 19)),
    Case("opened, nothing new", (opened(place(3), place(2, 1)), again(1), again(2)), FILLED, versions=range(7, 19)),
    Case("opened, then moved on", (opened(place(), place(0, 1)), again(1, place(3)), again(2, place(2, 1))), FILLED, versions=range(7, 19)),
    Case("asked again without moving", (opened(place()), again(1)), FILLED, versions=SOME),
    Case("something new comes", (opened(place(3), place(2, 1)), MORE, again(1), again(2, place(4))), FILLED, versions=SOME),
    Case("a partition is added", (opened(place(3)), again(1, place(0, 1))), FILLED, versions=SOME),
    Case("a partition is forgotten", (opened(place(), place(0, 1)), again(1, forgotten_topics_data=forgotten(0))), FILLED, versions=SOME),
    Case("one that is not there is forgotten", (opened(place(3)), again(1, forgotten_topics_data=forgotten(2))), FILLED, versions=SOME),
    Case("a wrong epoch", (opened(place()), again(5)), FILLED, versions=range(7, 19)),
    Case("an epoch twice", (opened(place(3)), again(1), again(1)), FILLED, versions=SOME),
    Case("an unknown session", (again(1, place(), session=77),), FILLED, versions=range(7, 19)),
    Case("closed", (opened(place()), again(-1, place()), again(1)), FILLED, versions=SOME),
    Case("closed and opened anew", (opened(place()), again(0, place()), again(1, place(3))), FILLED, versions=SOME),
    Case("of an unknown partition", (opened(place(3), place(0, 9)), again(1)), FILLED, versions=SOME),
    Case("of nothing", (Ask(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=0, session_epoch=0)),), versions=SOME),
    Case("an id without an epoch", (again(-1, place(), session=5),), FILLED, versions=SOME),
    Case("an epoch without an id", (again(1, place(), session=0),), FILLED, versions=SOME),
]
