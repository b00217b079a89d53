"""Consumer of `ottla.client` without a group: reading, positions and errors.

The same tests run against Ottla and, with OTTLA_COMPAT_BOOTSTRAP, against Apache Kafka.
"""

import re
import threading
import time

import pytest

from ottla.client import AsyncConsumer, Consumer, TopicPartition
from ottla.client.errors import ClientError, ConfigError, NoOffsetForPartitionError, OffsetOutOfRangeError, WakeupError
from ottla.client.records import ConsumerRecord, OffsetAndTimestamp

TIME = 1_700_000_000_000


@pytest.fixture
def produce(broker):
    """Send values to a partition, in batches of a given size."""
    from confluent_kafka import Producer

    def send(topic, values, partition=0, *, codec="none", keys=None, headers=None, times=None, batch_size=1_000_000):
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 5, "batch.size": batch_size}
        )
        for index, value in enumerate(values):
            producer.produce(
                topic,
                value,
                keys[index] if keys else None,
                partition,
                headers=headers or [],
                timestamp=times[index] if times else TIME + index,
            )
        assert producer.flush(30) == 0

    return send


@pytest.fixture
def make_consumer(broker):
    """Create consumers of a topic's partitions, from the beginning."""
    made = []

    def read(topic, partitions=1, **configs):
        consumer = Consumer(bootstrap_servers=broker.bootstrap, **{"auto_offset_reset": "earliest", **configs})
        made.append(consumer)
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
        return consumer

    yield read
    for consumer in made:
        consumer.close()


def take(consumer, count, seconds=20):
    """Poll until `count` records are read."""
    found, deadline = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(1)
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_round_trip(make_topic, produce, make_consumer, codec):
    topic = make_topic()
    values = [None if index % 7 == 3 else b"v" * (index % 50) for index in range(300)]
    keys = [None if index % 5 == 0 else b"%d" % index for index in range(300)]
    produce(topic, values, codec=codec, keys=keys, headers=[("h", b"1"), ("n", None)])
    got = take(make_consumer(topic), 300)
    assert [
        (r.topic, r.partition, r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers) for r in got
    ] == [
        (topic, 0, index, TIME + index, 0, keys[index], values[index], (("h", b"1"), ("n", None)))
        for index in range(300)
    ]


def test_batches_have_complete_responses(make_topic, produce, make_consumer):
    """Offsets, timestamps, keys and values of all partitions; the position is after them."""
    topic = make_topic(partitions=3)
    for partition in range(3):
        produce(topic, [b"%d:%d" % (partition, index) for index in range(100)], partition)
    consumer = make_consumer(topic, 3)
    seen = {partition: [] for partition in range(3)}
    while sum(map(len, seen.values())) < 300:
        batch = consumer.poll_batch(10)
        assert batch is not None
        assert batch.topics == (topic,)
        for partition, offset, stamp, value in zip(
            batch.partition.tolist(),
            batch.offsets.tolist(),
            batch.timestamps.tolist(),
            batch.values.tolist(),
            strict=True,
        ):
            seen[partition].append((offset, stamp, value))
    assert seen == {p: [(index, TIME + index, b"%d:%d" % (p, index)) for index in range(100)] for p in range(3)}
    assert [consumer.position(TopicPartition(topic, p)) for p in range(3)] == [100, 100, 100]
    assert consumer.poll_batch(0.1) is None


def test_columns_to_arrow(make_topic, produce, make_consumer):
    pytest.importorskip("pyarrow")
    topic = make_topic()
    produce(topic, [b"a", None, b"ccc"], keys=[b"k", None, b""], headers=[("h", b"1")])
    batch = make_consumer(topic).poll_batch(10)
    table = batch.to_arrow(headers=True).to_pydict()
    assert (table["topic"], table["offset"]) == ([topic] * 3, [0, 1, 2])
    assert (table["key"], table["value"]) == ([b"k", None, b""], [b"a", None, b"ccc"])
    assert table["headers"] == [[{"key": "h", "value": b"1"}]] * 3


def test_iteration_moves_the_position_by_record(make_topic, produce, make_consumer):
    """Position and committed offset never pass a record that was not returned."""
    topic = make_topic()
    produce(topic, [b"%d" % index for index in range(50)])
    consumer = make_consumer(topic)
    partition = TopicPartition(topic, 0)
    for record in consumer:
        assert consumer.position(partition) == record.offset + 1
        if record.offset == 20:
            break
    consumer.seek(partition, 40)
    again = [next(record for record in consumer).offset for _ in range(3)]
    assert again == [40, 41, 42]
    assert [record.offset for record in consumer.poll(5, max_records=2)] == [43, 44]


def test_seek_during_iteration(make_topic, produce, make_consumer):
    """The iteration continues at the new position."""
    topic = make_topic()
    produce(topic, [b"%d" % index for index in range(30)])
    consumer, seen = make_consumer(topic), []
    for record in consumer:
        seen.append(record.offset)
        if record.offset == 2:
            consumer.seek(TopicPartition(topic, 0), 28)
        if record.offset == 29:
            break
    assert seen == [0, 1, 2, 28, 29]


def test_seek_by_time_and_to_ends(make_topic, produce, make_consumer):
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(topic, [b"%d" % index for index in range(10)], times=[TIME + 1000 * index for index in range(10)])
    consumer = make_consumer(topic)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    found = consumer.offsets_for_times({partition: TIME + 2500})[partition]
    assert isinstance(found, OffsetAndTimestamp)
    assert (found.offset, found.timestamp) == (3, TIME + 3000)
    assert consumer.offsets_for_times({partition: TIME + 10_000}) == {partition: None}
    consumer.seek_to_time(TIME + 6500, partition)
    assert [record.offset for record in take(consumer, 3)] == [7, 8, 9]
    consumer.seek_to_beginning()
    assert consumer.position(partition) == 0
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 10
    consumer.seek_to_time(TIME + 99_999)
    assert consumer.position(partition) == 10


def test_auto_offset_reset(make_topic, produce, broker, make_consumer):
    """earliest, latest, by_duration and none."""
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    now_ms = int(time.time() * 1000)
    produce(topic, [b"old", b"new"], times=[now_ms - 7_200_000, now_ms - 60_000])
    for policy, offset in (("earliest", 0), ("latest", 2), ("by_duration:PT1H", 1)):
        assert make_consumer(topic, auto_offset_reset=policy).position(partition) == offset
    consumer = make_consumer(topic, auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError) as raised:
        consumer.poll(10)
    assert raised.value.partitions == (partition,)
    consumer.seek(partition, 1)
    assert [record.value for record in take(consumer, 1)] == [b"new"]
    with pytest.raises(ConfigError, match=re.escape("auto.offset.reset must be")):
        Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="sometime")


def test_out_of_range_offset_is_reset_or_raised(make_topic, produce, make_consumer):
    """With and without a reset policy."""
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(topic, [b"a", b"b"])
    consumer = make_consumer(topic)
    consumer.seek(partition, 1000)
    assert [record.offset for record in take(consumer, 2)] == [0, 1]
    consumer = make_consumer(topic, auto_offset_reset="none")
    consumer.seek(partition, 1000)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.poll(10)


def test_paused_partitions_return_nothing(make_topic, produce, make_consumer):
    topic = make_topic(partitions=2)
    partitions = [TopicPartition(topic, index) for index in range(2)]
    for index in range(2):
        produce(topic, [b"%d" % n for n in range(10)], index)
    consumer = make_consumer(topic, 2)
    consumer.pause(partitions[0])
    assert consumer.paused == [partitions[0]]
    assert {record.partition for record in take(consumer, 10)} == {1}
    assert consumer.poll(0.3) == []
    consumer.resume(partitions[0])
    assert [(record.partition, record.offset) for record in take(consumer, 10)] == [(0, n) for n in range(10)]


def test_pause_of_a_partly_read_partition(make_topic, produce, make_consumer):
    """No records are lost or duplicated."""
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(topic, [b"%d" % n for n in range(100)])
    consumer = make_consumer(topic)
    first = consumer.poll(10, max_records=10)
    consumer.pause(partition)
    assert consumer.poll(0.3) == []
    consumer.resume(partition)
    rest = take(consumer, 90)
    assert [record.offset for record in first + rest] == list(range(100))


def test_max_poll_records(make_topic, produce, make_consumer):
    topic = make_topic()
    produce(topic, [b"%d" % n for n in range(25)])
    consumer = make_consumer(topic, max_poll_records=10)
    first = consumer.poll(10)
    assert len(first) == 10
    assert [record.offset for record in first + take(consumer, 15)] == list(range(25))


def test_small_fetch_limits_make_progress(make_topic, produce, make_consumer):
    """Limits smaller than a batch."""
    topic = make_topic(partitions=2)
    for partition in range(2):
        produce(topic, [b"x" * 1000 + b"%d" % n for n in range(100)], partition)
    consumer = make_consumer(topic, 2, fetch_max_bytes=1, max_partition_fetch_bytes=1)
    got = take(consumer, 200)
    assert sorted((record.partition, record.offset) for record in got) == [(p, n) for p in range(2) for n in range(100)]


def test_buffered_responses_are_limited(make_topic, produce, make_consumer):
    """At most two responses per broker are buffered for a slow reader."""
    topic = make_topic(partitions=2)
    for partition in range(2):
        produce(topic, [b"x" * 10_000] * 400, partition, batch_size=50_000)
    consumer = make_consumer(topic, 2, fetch_max_bytes=500_000, max_partition_fetch_bytes=250_000)
    count, most = 0, 0.0
    while count < 800:
        count += len(consumer.poll(5, max_records=20))
        most = max(most, consumer.metrics()["buffered-bytes"])
    assert count == 800
    assert 0 < most <= 2 * 500_000


def test_missing_topic_is_read_once_created(broker, new_name, produce):
    """A topic assigned before its creation; metadata requests are limited meanwhile."""
    from tests.compat.conftest import create_topic

    topic = new_name()
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=broker.bootstrap, allow_auto_create_topics=False) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        assert consumer.poll(1) == []
        assert consumer._engine.core.cluster.updates < 20
        create_topic(broker.bootstrap, topic, 1, {})
        produce(topic, [b"there"])
        assert [record.value for record in take(consumer, 1)] == [b"there"]


def test_poll_returns_when_records_arrive(make_topic, produce, make_consumer):
    """A waiting poll returns immediately."""
    topic = make_topic()
    consumer = make_consumer(topic)
    assert consumer.poll(0.2) == []
    later = threading.Timer(0.3, lambda: produce(topic, [b"now"]))
    later.start()
    began = time.monotonic()
    assert [record.value for record in consumer.poll(10)] == [b"now"]
    assert time.monotonic() - began < 5
    later.join()
    assert consumer.lag(TopicPartition(topic, 0)) == 0


def test_deserializers_and_interceptors(make_topic, produce, make_consumer):
    """Nulls stay null; interceptors run before records are returned."""

    class UpperInterceptor:
        def on_consume(self, records):
            return [record._replace(value=record.value and record.value.upper()) for record in records]

    topic = make_topic()
    produce(topic, [b"a", None], keys=[b"1", b"2"])
    consumer = make_consumer(
        topic, key_deserializer=int, value_deserializer=bytes.decode, interceptor_classes=[UpperInterceptor()]
    )
    assert [(record.key, record.value) for record in take(consumer, 2)] == [(1, "A"), (2, None)]


def test_wakeup_interrupts_a_poll(make_topic, make_consumer):
    consumer = make_consumer(make_topic())
    threading.Timer(0.2, consumer.wakeup).start()
    with pytest.raises(WakeupError):
        consumer.poll(30)
    assert consumer.poll(0.1) == []


def test_assign_keeps_positions(make_topic, produce, make_consumer):
    """Partitions assigned before keep their position."""
    topic = make_topic(partitions=2)
    for index in range(2):
        produce(topic, [b"%d" % n for n in range(5)], index)
    consumer = make_consumer(topic, 1)
    assert len(take(consumer, 5)) == 5
    consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    assert [(record.partition, record.offset) for record in take(consumer, 5)] == [(1, n) for n in range(5)]


def test_invalid_calls_raise(make_topic, broker, make_consumer):
    topic = make_topic()
    consumer = make_consumer(topic)
    with pytest.raises(ValueError, match="not assigned"):
        consumer.seek(TopicPartition(topic, 7), 0)
    with pytest.raises(ConfigError, match=r"group\.id"):
        consumer.subscribe([topic])
    with pytest.raises(ConfigError, match=r"group\.id"):
        consumer.commit()
    with pytest.raises(ConfigError, match="Did you mean fetch_min_bytes"):
        Consumer(bootstrap_servers=broker.bootstrap, fetch_min_byte=1)
    consumer.close()
    with pytest.raises(ClientError, match="closed"):
        consumer.poll(0)


async def test_async_consumer(make_topic, produce, broker):
    topic = make_topic()
    produce(topic, [b"%d" % n for n in range(1000)])
    partition = TopicPartition(topic, 0)
    async with AsyncConsumer({"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([partition])
        seen = []
        async for record in consumer:
            assert isinstance(record, ConsumerRecord)
            seen.append(record.offset)
            if record.offset == 599:
                break
        assert await consumer.position(partition) == 600
        async for batch in consumer.batches():
            seen += batch.offsets.tolist()
            if len(seen) == 1000:
                break
        assert seen == list(range(1000))
        assert consumer.metrics()["records-consumed-total"] >= 1000
        assert [info.partition for info in await consumer.partitions_for(topic)] == [0]
