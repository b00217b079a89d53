"""Consumers skip the offset gaps of compacted partitions."""

import time

import pytest

from ottla.client import Consumer, TopicPartition


@pytest.fixture
def compacted(broker, make_topic):
    """A compacted topic after the cleaner ran."""
    from confluent_kafka import Producer

    topic = make_topic(
        cleanup_policy="compact",
        segment_bytes="1048576",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.0",
        max_compaction_lag_ms="100",
        min_compaction_lag_ms="0",
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(200):
        producer.produce(topic, b"%d" % number, b"%d" % (number % 5), partition=0)
    assert producer.flush(30) == 0
    return topic, producer


def test_offset_gaps_are_skipped(broker, compacted):
    topic, producer = compacted
    partition = TopicPartition(topic, 0)
    deadline = time.monotonic() + 25
    while time.monotonic() < deadline:
        time.sleep(1)
        producer.produce(topic, b"last", b"end", partition=0)
        assert producer.flush(30) == 0
        with Consumer(
            bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=100
        ) as consumer:
            consumer.assign([partition])
            found, end = [], consumer.end_offsets([partition])[partition]
            while consumer.position(partition) < end:
                found += consumer.poll(5)
            assert consumer.lag(partition) == 0
        if len(found) < 100:
            values = {record.key: record.value for record in found}
            assert values == {b"%d" % key: b"%d" % (195 + key) for key in range(5)} | {b"end": b"last"}
            offsets = [record.offset for record in found]
            assert offsets == sorted(set(offsets))
            return
    pytest.skip("the broker did not compact in time")
