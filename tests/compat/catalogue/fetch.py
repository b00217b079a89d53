"""Fetch without a session: places, limits, isolation, and what is not there."""

from ottla.base.ids import ZERO_UUID
from ottla.wire.messages.fetch import FetchRequest
from tests.compat.catalogue.case import UNKNOWN_ID, Ask, Batch, Case, Fill, NewTopic, records
from tests.compat.catalogue.sending import fetch_request, place

FILLED = (NewTopic("a", 2), Fill(Batch(records(5))), Fill(Batch(records(5, first=5), codec=1)), Fill(Batch(records(2, first=10))))
SOME = (4, 7, 12, 13, 18)


def fetch(offset: int = 0, partition: int = 0, **more: int) -> Ask:
    return Ask(fetch_request(place(offset, partition, **more)))


def limited(**more: int) -> Ask:
    return Ask(fetch_request(place(), **more))


TWO_TOPICS = fetch_request(place())
TWO_TOPICS.topics += fetch_request(place(), name="$no", known_as=UNKNOWN_ID).topics

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
    Case("of an unknown topic", (Ask(fetch_request(place(), name="$no", known_as=UNKNOWN_ID)),)),
    Case("of no topic id", (Ask(fetch_request(place(), known_as=ZERO_UUID)),), FILLED, versions=range(13, 19)),
    Case("of two topics, one of them unknown", (Ask(TWO_TOPICS),), FILLED),
    Case("of two partitions", (Ask(fetch_request(place(), place(0, 1))),), FILLED),
    Case("of two partitions, one of them unknown", (Ask(fetch_request(place(5), place(0, 9))),), FILLED),
    Case("of two partitions, one of them out of range", (Ask(fetch_request(place(5), place(44, 1))),), FILLED, versions=SOME),
    Case("of one partition twice", (Ask(fetch_request(place(5), place(10))),), FILLED, versions=SOME),
    Case("of nothing", (Ask(FetchRequest(max_wait_ms=0, min_bytes=1)),)),
    Case("no bytes of the partition", (fetch(partition_max_bytes=0),), FILLED),
    Case("one byte of the partition", (fetch(partition_max_bytes=1),), FILLED, versions=SOME),
    Case("one batch of the partition", (fetch(partition_max_bytes=120),), FILLED, versions=SOME),
    Case("a batch and a half of the partition", (fetch(partition_max_bytes=200),), FILLED, versions=SOME),
    Case("negative bytes of the partition", (fetch(partition_max_bytes=-1),), FILLED, versions=SOME),
    Case("no bytes", (limited(max_bytes=0),), FILLED, versions=SOME),
    Case("one byte", (limited(max_bytes=1),), FILLED),
    Case("negative bytes", (limited(max_bytes=-1),), FILLED, versions=SOME),
    Case("one byte of two partitions", (Ask(fetch_request(place(), place(), place(0, 1), max_bytes=1)),), FILLED, versions=SOME),
    Case("more than there is, and a little time", (limited(min_bytes=1 << 20, max_wait_ms=50),), FILLED, versions=SOME),
    Case("no minimum", (Ask(fetch_request(place(12), min_bytes=0, max_wait_ms=5000)),), FILLED, versions=SOME),
    Case("an error does not wait", (Ask(fetch_request(place(99), min_bytes=1, max_wait_ms=5000)),), FILLED, versions=SOME),
    Case("committed only", (limited(isolation_level=1),), FILLED),
    Case("committed only, from the end", (Ask(fetch_request(place(12), isolation_level=1)),), FILLED, versions=SOME),
    Case("committed only, beyond the end", (Ask(fetch_request(place(13), isolation_level=1)),), FILLED, versions=SOME),
    Case("an unknown isolation level", (limited(isolation_level=9),), FILLED, versions=(4, 18)),
    Case("with the leader's epoch", (fetch(current_leader_epoch=0),), FILLED, versions=range(9, 19)),
    Case("with an epoch to come", (fetch(current_leader_epoch=3),), FILLED, versions=range(9, 19)),
    Case("with a last fetched epoch", (fetch(3, last_fetched_epoch=0),), FILLED, versions=range(12, 19)),
    Case("with a last fetched epoch to come", (fetch(3, last_fetched_epoch=4),), FILLED, versions=range(12, 19)),
    Case("with a last fetched epoch, beyond the end", (fetch(20, last_fetched_epoch=0),), FILLED, versions=(12, 18)),
    Case("as a debugging client", (limited(replica_id=-2),), FILLED, versions=(4, 14)),
]
