"""Produce: valid batches, and requests for unknown topics and partitions."""

from ottla.wire.batches import Record
from tests.compat.catalog.case import UNKNOWN_ID, Batch, Call, Case, NewTopic, SendOnly, records
from tests.compat.catalog.sending import END_OFFSET, READ_BACK, produce, produce_request

ONE = (NewTopic("a"),)
SMALL = (NewTopic("a", 1, {"max.message.bytes": "100"}),)
BROKER_TIME = (NewTopic("a", 1, {"message.timestamp.type": "LogAppendTime"}),)
COMPACTED = (NewTopic("a", 1, {"cleanup.policy": "compact"}),)
GOOD = Batch(records(3))
HEADERS = [Record(0, 1_700_000_000_000, None, None, (("h", b"1"), ("h", b"2"), ("e", b""), ("n", None)))]
SOME = (3, 8, 11, 13)
TWO_TOPICS = produce_request((0, GOOD))
TWO_TOPICS.topic_data += produce_request((0, GOOD), name="$no", topic_uuid=UNKNOWN_ID).topic_data

CASES = [
    Case("one batch, acks all", (produce(GOOD), READ_BACK), ONE),
    Case("one batch, acks 1", (produce(GOOD, acks=1), READ_BACK), ONE),
    Case("acks 0", (SendOnly(produce_request((0, GOOD), acks=0)), READ_BACK), ONE, versions=range(3, 14)),
    Case("acks 2", (produce(GOOD, acks=2), END_OFFSET), ONE),
    Case("acks -2", (produce(GOOD, acks=-2), END_OFFSET), ONE, versions=SOME),
    Case("two requests", (produce(GOOD), produce(Batch(records(2, first=3))), READ_BACK), ONE, versions=SOME),
    *(
        Case(
            f"codec {codec}",
            (produce(Batch(records(5), codec=codec)), READ_BACK),
            ONE,
            versions=SOME if codec < 4 else (7, 13),
        )
        for codec in (1, 2, 3, 4)
    ),
    Case(
        "zstd in a version without zstd", (produce(Batch(records(5), codec=4)), END_OFFSET), ONE, versions=range(3, 7)
    ),
    Case("headers and nulls", (produce(Batch(HEADERS)), READ_BACK), ONE, versions=SOME),
    Case("unknown topic", (produce(GOOD, name="$no", topic_uuid=UNKNOWN_ID),)),
    Case("unknown partition", (produce(GOOD, partition=7),), ONE),
    Case("negative partition", (produce(GOOD, partition=-1),), ONE, versions=SOME),
    Case("two partitions, one unknown", (Call(produce_request((0, GOOD), (5, GOOD))), READ_BACK), ONE),
    Case(
        "two partitions, one invalid",
        (
            Call(
                produce_request((0, GOOD), (1, b"")),
            ),
            READ_BACK,
        ),
        (NewTopic("a", 2),),
    ),
    Case("two partitions", (Call(produce_request((0, GOOD), (1, Batch(records(2))))),), (NewTopic("a", 2),)),
    Case(
        "same partition twice",
        (Call(produce_request((0, GOOD), (0, Batch(records(2, first=5))))), READ_BACK),
        ONE,
        versions=SOME,
    ),
    Case("two topics, one unknown", (Call(TWO_TOPICS), READ_BACK), ONE),
    Case("no topics", (Call(produce_request(topic_data=[])),)),
    Case("no partitions", (Call(produce_request()),), ONE, versions=SOME),
    Case("empty records", (produce(b""), END_OFFSET), ONE),
    Case("zero timeout", (produce(GOOD, timeout_ms=0), READ_BACK), ONE, versions=SOME),
    Case("batch larger than max.message.bytes", (produce(GOOD), END_OFFSET), SMALL),
    Case(
        "batch larger than max.message.bytes, compressed",
        (produce(Batch(records(30), codec=1)), END_OFFSET),
        SMALL,
        versions=SOME,
    ),
    Case("log append time", (produce(GOOD),), BROKER_TIME),
    Case("log append time, compressed", (produce(Batch(records(3), codec=2)),), BROKER_TIME, versions=SOME),
    Case("compacted topic, records with keys", (produce(GOOD), READ_BACK), COMPACTED, versions=SOME),
    Case("compacted topic, no keys", (produce(Batch(records(3, key=None))), END_OFFSET), COMPACTED),
    Case(
        "compacted topic, no keys, compressed",
        (produce(Batch(records(3, key=None), codec=3)), END_OFFSET),
        COMPACTED,
        versions=SOME,
    ),
    Case(
        "topic compression.type gzip",
        (produce(GOOD), READ_BACK),
        (NewTopic("a", 1, {"compression.type": "gzip"}),),
        versions=SOME,
    ),
    Case(
        "topic compression.type uncompressed",
        (produce(Batch(records(3), codec=2)), READ_BACK),
        (NewTopic("a", 1, {"compression.type": "uncompressed"}),),
        versions=SOME,
    ),
    Case(
        "transactional request, non-transactional batch",
        (produce(GOOD, transactional_id="t"), END_OFFSET),
        ONE,
        versions=SOME,
    ),
    Case(
        "acks 0, error closes the connection",
        (SendOnly(produce_request((7, GOOD), acks=0)), Call(produce_request((0, GOOD)))),
        ONE,
        versions=range(3, 14),
    ),
]
