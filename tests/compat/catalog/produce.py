"""Produce: good batches, and requests that name what is not there."""

from ottla.wire.batches import Record
from tests.compat.catalog.case import UNKNOWN_ID, Ask, Batch, Case, NewTopic, Tell, records
from tests.compat.catalog.sending import END, HELD, produce, produce_request

ONE = (NewTopic("a"),)
SMALL = (NewTopic("a", 1, {"max.message.bytes": "100"}),)
BROKER_TIME = (NewTopic("a", 1, {"message.timestamp.type": "LogAppendTime"}),)
COMPACTED = (NewTopic("a", 1, {"cleanup.policy": "compact"}),)
GOOD = Batch(records(3))
HEADERS = [Record(0, 1_700_000_000_000, None, None, (("h", b"1"), ("h", b"2"), ("e", b""), ("n", None)))]
SOME = (3, 8, 11, 13)
TWO_TOPICS = produce_request((0, GOOD))
TWO_TOPICS.topic_data += produce_request((0, GOOD), name="$no", known_as=UNKNOWN_ID).topic_data

CASES = [
    Case("one batch, acks all", (produce(GOOD), HELD), ONE),
    Case("one batch, acks 1", (produce(GOOD, acks=1), HELD), ONE),
    Case("no answer", (Tell(produce_request((0, GOOD), acks=0)), HELD), ONE, versions=range(3, 14)),
    Case("acks 2", (produce(GOOD, acks=2), END), ONE),
    Case("acks -2", (produce(GOOD, acks=-2), END), ONE, versions=SOME),
    Case("twice", (produce(GOOD), produce(Batch(records(2, first=3))), HELD), ONE, versions=SOME),
    *(
        Case(
            f"codec {codec}",
            (produce(Batch(records(5), codec=codec)), HELD),
            ONE,
            versions=SOME if codec < 4 else (7, 13),
        )
        for codec in (1, 2, 3, 4)
    ),
    Case("zstd before it was known", (produce(Batch(records(5), codec=4)), END), ONE, versions=range(3, 7)),
    Case("headers and nulls", (produce(Batch(HEADERS)), HELD), ONE, versions=SOME),
    Case("unknown topic", (produce(GOOD, name="$no", known_as=UNKNOWN_ID),)),
    Case("unknown partition", (produce(GOOD, partition=7),), ONE),
    Case("negative partition", (produce(GOOD, partition=-1),), ONE, versions=SOME),
    Case("two partitions, one of them unknown", (Ask(produce_request((0, GOOD), (5, GOOD))), HELD), ONE),
    Case(
        "two partitions, one of them wrong",
        (
            Ask(
                produce_request((0, GOOD), (1, b"")),
            ),
            HELD,
        ),
        (NewTopic("a", 2),),
    ),
    Case("two partitions", (Ask(produce_request((0, GOOD), (1, Batch(records(2))))),), (NewTopic("a", 2),)),
    Case(
        "one partition twice",
        (Ask(produce_request((0, GOOD), (0, Batch(records(2, first=5))))), HELD),
        ONE,
        versions=SOME,
    ),
    Case("two topics, one of them unknown", (Ask(TWO_TOPICS), HELD), ONE),
    Case("no topics", (Ask(produce_request(topic_data=[])),)),
    Case("no partitions", (Ask(produce_request()),), ONE, versions=SOME),
    Case("empty records", (produce(b""), END), ONE),
    Case("no time to wait", (produce(GOOD, timeout_ms=0), HELD), ONE, versions=SOME),
    Case("larger than the topic takes", (produce(GOOD), END), SMALL),
    Case("larger than the topic takes, compressed", (produce(Batch(records(30), codec=1)), END), SMALL, versions=SOME),
    Case("the broker's time", (produce(GOOD),), BROKER_TIME),
    Case("the broker's time, compressed", (produce(Batch(records(3), codec=2)),), BROKER_TIME, versions=SOME),
    Case("a key where it is needed", (produce(GOOD), HELD), COMPACTED, versions=SOME),
    Case("no key where it is needed", (produce(Batch(records(3, key=None))), END), COMPACTED),
    Case(
        "no key where it is needed, compressed",
        (produce(Batch(records(3, key=None), codec=3)), END),
        COMPACTED,
        versions=SOME,
    ),
    Case(
        "the topic's own codec", (produce(GOOD), HELD), (NewTopic("a", 1, {"compression.type": "gzip"}),), versions=SOME
    ),
    Case(
        "the topic's codec is none",
        (produce(Batch(records(3), codec=2)), HELD),
        (NewTopic("a", 1, {"compression.type": "uncompressed"}),),
        versions=SOME,
    ),
    Case("transactional request, plain batch", (produce(GOOD, transactional_id="t"), END), ONE, versions=SOME),
    Case(
        "no answer, and an error closes the connection",
        (Tell(produce_request((7, GOOD), acks=0)), Ask(produce_request((0, GOOD)))),
        ONE,
        versions=range(3, 14),
    ),
]
