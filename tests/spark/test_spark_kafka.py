"""Reading from Apache Kafka: transactions, compaction, and lag shown by Kafka's tool.

`OTTLA_SPARK_KAFKA=host:port` uses a running broker.
"""

import os
import time

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from bench.peers import ApacheKafka, PeerUnavailable, kafka_tool
from tests.spark.readers import marked, micro_batch, read, stream_reader, values

FAST = {"kafka.default.api.timeout.ms": "10000", "fetchOffset.numRetries": "0"}


@pytest.fixture(scope="module")
def kafka():
    given = os.environ.get("OTTLA_SPARK_KAFKA")
    if given:
        yield given
        return
    try:
        with ApacheKafka() as process:
            yield process.bootstrap
    except PeerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def topic(kafka, topic_names):
    from ottla.client import Admin

    name = topic_names()
    with Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(name, 1, 1)
        yield name
        admin.delete_topics([name])


@pytest.fixture
def transact(kafka, topic_names):
    """Write values in a transaction and commit, abort or leave it open. Return the producer."""
    from confluent_kafka import Producer

    def write(topic, values, end, codec="none"):
        producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic_names(), "compression.type": codec})
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


def options_of(kafka, topic, **more):
    return {"kafka.bootstrap.servers": kafka, "subscribe": topic, **FAST, **more}


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_aborted_transactions_and_markers_are_skipped(kafka, topic, transact, codec):
    transact(topic, [b"a1", b"a2"], "commit", codec)
    transact(topic, [b"b1", b"b2", b"b3"], "abort", codec)
    transact(topic, [b"c1"], "commit", codec)
    assert values(read(options_of(kafka, topic, isolationLevel="read_committed"))) == [b"a1", b"a2", b"c1"]
    assert values(read(options_of(kafka, topic, **{"kafka.isolation.level": "read_committed"}))) == [
        b"a1",
        b"a2",
        b"c1",
    ]
    assert values(read(options_of(kafka, topic))) == [b"a1", b"a2", b"b1", b"b2", b"b3", b"c1"]


def test_tasks_that_start_or_end_inside_transaction(kafka, topic, transact):
    """Each offset is read by a separate task, including markers."""
    transact(topic, [b"a1", b"a2", b"a3"], "abort")
    transact(topic, [b"b1", b"b2"], "commit")
    options = options_of(kafka, topic, isolationLevel="read_committed", maxRecordsPerPartition="1")
    assert values(read(options)) == [b"b1", b"b2"]


def test_open_transaction_blocks_stream(kafka, topic, transact):
    transact(topic, [b"a"], "commit")
    open_one = transact(topic, [b"b"], "leave open")
    transact(topic, [b"c"], "commit")
    reader = stream_reader(options_of(kafka, topic, isolationLevel="read_committed", startingOffsets="earliest"))
    end, found = micro_batch(reader, reader.initialOffset())
    assert found == [b"a"]
    open_one.commit_transaction(30)
    deadline = time.monotonic() + 30
    while reader.latestOffset(end, ReadAllAvailable()) == end:  # markers are written shortly after the response
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert micro_batch(reader, end)[1] == [b"b", b"c"]
    reader.stop()


def test_stream_reaches_end_after_markers(kafka, topic, transact):
    transact(topic, [b"a"], "abort")
    reader = stream_reader(options_of(kafka, topic, isolationLevel="read_committed", startingOffsets="earliest"))
    assert micro_batch(reader, reader.initialOffset()) == (marked({topic: {"0": 2}}), [])
    reader.stop()


def test_compacted_partition_with_offset_gaps(kafka, topic_names):
    from confluent_kafka import Producer

    from ottla.client import Admin

    name = topic_names()
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.001",
        "segment.ms": "100",
        "max.compaction.lag.ms": "100",
        "min.compaction.lag.ms": "0",
    }
    with Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(name, 1, 1, configs)
        producer = Producer({"bootstrap.servers": kafka})
        for index in range(300):
            producer.produce(name, b"%d" % index, key=b"%d" % (index % 3), partition=0)
            if index % 50 == 49:
                producer.flush(30)
                time.sleep(
                    0.15
                )  # wait until the next record starts a new segment, since the active segment is never compacted
        deadline = time.monotonic() + 60
        while len(rows := read(options_of(kafka, name))) == 300:
            assert time.monotonic() < deadline, "the partition was not compacted"
            time.sleep(1)
        admin.delete_topics([name])
    offsets = [row["offset"] for row in rows]
    assert offsets == sorted(offsets)
    assert [row["value"] for row in rows] == [b"%d" % offset for offset in offsets]
    assert offsets[-1] == 299


def test_kafka_tool_shows_lag_of_query(kafka, topic, transact, spark, topic_names, tmp_path):
    import ottla.spark

    transact(topic, [b"a", b"b"], "commit")
    group = topic_names()
    frame = (
        spark.readStream.format("ottla")
        .options(**options_of(kafka, topic, startingOffsets="earliest", groupId=group))
        .load()
    )
    started = (
        frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )
    ottla.spark.track(started).awaitTermination(120)
    try:
        result = kafka_tool(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            "--bootstrap-server",
            kafka,
            "--describe",
            "--group",
            group,
        )
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    row = next(line.split() for line in result.stdout.splitlines() if topic in line)
    assert row[:6] == [group, topic, "0", "3", "3", "0"]
