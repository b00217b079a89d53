"""read_committed: no aborted records, nothing after an open transaction, no markers."""

import time

import pytest

from ottla.client import Consumer, TopicPartition

ADD_PARTITIONS_TO_TXN = 24


@pytest.fixture(autouse=True)
def require_transactions(api_keys):
    if ADD_PARTITIONS_TO_TXN not in api_keys:
        pytest.skip("the broker has no transactions")


@pytest.fixture
def transact(broker, new_name):
    """Write values in a transaction and end it as requested. Returns the producer."""
    from confluent_kafka import Producer

    def write(topic, values, end, codec="none"):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": new_name(), "compression.type": codec}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0
        if end == "commit":
            producer.commit_transaction(30)
        elif end == "abort":
            producer.abort_transaction(30)
        return producer

    return write


def read(broker, topic, isolation, count):
    with Consumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        isolation_level=isolation,
        fetch_max_wait_ms=100,
    ) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        found, deadline = [], time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            found += consumer.poll(1)
        found += consumer.poll(0.3)
        return (
            [record.value for record in found],
            consumer.position(partition),
            consumer.end_offsets([partition])[partition],
        )


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_aborted_records_are_filtered(broker, make_topic, transact, codec):
    topic = make_topic()
    transact(topic, [b"a1", b"a2"], "commit", codec)
    transact(topic, [b"b1", b"b2", b"b3"], "abort", codec)
    transact(topic, [b"c1"], "commit", codec)
    assert read(broker, topic, "read_committed", 3) == ([b"a1", b"a2", b"c1"], 9, 9)
    assert read(broker, topic, "read_uncommitted", 6) == ([b"a1", b"a2", b"b1", b"b2", b"b3", b"c1"], 9, 9)


def test_open_transaction_limits_read_committed(broker, make_topic, transact):
    """Readers stop at its start and continue when it ends."""
    topic = make_topic()
    transact(topic, [b"a"], "commit")
    open_one = transact(topic, [b"b"], "leave open")
    transact(topic, [b"c"], "commit")
    assert read(broker, topic, "read_committed", 1) == ([b"a"], 2, 2)
    assert read(broker, topic, "read_uncommitted", 3) == ([b"a", b"b", b"c"], 5, 5)
    open_one.abort_transaction(30)
    assert read(broker, topic, "read_committed", 2) == ([b"a", b"c"], 6, 6)


def test_trailing_markers_are_skipped(broker, make_topic, transact):
    """A partition that ends with an aborted transaction is read to its end, with lag 0."""
    topic = make_topic()
    transact(topic, [b"a"], "abort")
    assert read(broker, topic, "read_committed", 0)[1:] == (2, 2)
