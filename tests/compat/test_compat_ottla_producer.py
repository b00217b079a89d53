"""Producer of `ottla.client`: what other clients read, and errors.

The same tests run against Ottla and, with OTTLA_COMPAT_BOOTSTRAP, against Apache Kafka.
"""

import asyncio
import os
import socket
import threading
import time

import pytest

from bench.peers import ApacheKafka, OttlaProcess, free_port
from ottla.client import (
    Admin,
    AsyncProducer,
    BootstrapError,
    BrokerError,
    BufferExhaustedError,
    ClientClosedError,
    ClientTimeoutError,
    Producer,
    RecordMetadata,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
)
from tests.compat.faulty_proxy import FaultyProxy

TIME = 1_700_000_000_000


@pytest.fixture
def make_producer(broker):
    made = []

    def make(**configs):
        made.append(Producer(**{"bootstrap_servers": broker.bootstrap, **configs}))
        return made[-1]

    yield make
    for producer in made:
        producer.close(10)


def read(bootstrap, topic, partition=0, count=None):
    """Read a partition with confluent-kafka: offset, timestamp, key, value, headers."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    if count is None:
        count = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)[1]
    consumer.assign([TopicPartition(topic, partition, 0)])
    found, deadline = [], time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(found), 0.5):
            assert message.error() is None, message.error()
            found.append((message.offset(), message.timestamp()[1], message.key(), message.value(), message.headers()))
    consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_other_clients_read_sent_records(broker, make_topic, make_producer, codec):
    topic = make_topic()
    producer = make_producer(compression_type=codec, linger_ms=50)
    sent = [(b"k%d" % index if index % 2 else None, b"v%d" % index * index, TIME + index) for index in range(200)]
    futures = [producer.send(topic, value, key, timestamp=when) for key, value, when in sent]
    results = [future.result(30) for future in futures]
    assert results == [
        RecordMetadata(topic, 0, index, when, -1 if key is None else len(key), len(value))
        for index, (key, value, when) in enumerate(sent)
    ]
    assert read(broker.bootstrap, topic) == [
        (index, when, key, value, None) for index, (key, value, when) in enumerate(sent)
    ]


def test_headers_nulls_and_text_round_trip(broker, make_topic, make_producer):
    topic = make_topic()
    producer = make_producer()
    producer.send(topic, "text", "key", timestamp=TIME, headers=[("a", b"1"), ("a", None)])
    producer.send(topic, None, bytearray(b"tombstone"), timestamp=TIME, headers={"b": "two"})
    producer.flush(30)
    assert read(broker.bootstrap, topic) == [
        (0, TIME, b"key", b"text", [("a", b"1"), ("a", None)]),
        (1, TIME, b"tombstone", None, [("b", b"two")]),
    ]
    with pytest.raises(TypeError, match="give the producer a value_serializer"):
        producer.send(topic, {"a": 1})


def test_serializers_and_interceptors(broker, make_topic, make_producer):
    import dataclasses
    import json

    class StampInterceptor:
        outcomes = []

        def on_send(self, record):
            return dataclasses.replace(record, headers=[("stamped", b"yes")])

        def on_acknowledgement(self, metadata, error):
            self.outcomes.append((metadata.offset if metadata else None, error))

    topic = make_topic()
    settings = {"value_serializer": lambda value: json.dumps(value).encode(), "key_serializer": str.encode}
    producer = make_producer(interceptor_classes=[StampInterceptor()], **settings)
    producer.send(topic, {"a": 1}, "k", timestamp=TIME).result(30)
    assert read(broker.bootstrap, topic) == [(0, TIME, b"k", b'{"a": 1}', [("stamped", b"yes")])]
    assert StampInterceptor.outcomes == [(0, None)]


def test_key_partitions_equal_java_client(broker, make_topic, make_producer):
    """librdkafka's name for Java's partitioner is murmur2_random."""
    from confluent_kafka import Producer as Theirs

    topics = [make_topic(partitions=7) for _ in range(2)]
    keys = [b"key-%d" % index for index in range(60)] + [b"", b"a", b"ab", b"abc"]
    theirs, ours = Theirs({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"}), make_producer()
    for key in keys:
        theirs.produce(topics[0], b"v", key)
        ours.send(topics[1], b"v", key)
    theirs.flush(30)
    ours.flush(30)
    found = [
        [sorted(record[2] for record in read(broker.bootstrap, topic, index)) for index in range(7)] for topic in topics
    ]
    # librdkafka treats an empty key as none
    assert [sorted({*part} - {b""}) for part in found[0]] == [sorted({*part} - {b""}) for part in found[1]]


def test_records_without_key_use_all_partitions(broker, make_topic, make_producer):
    topic = make_topic(partitions=3)
    producer = make_producer(batch_size=500, linger_ms=0)
    for index in range(2000):
        producer.send(topic, b"%d" % index * 3)
    producer.flush(30)
    counts = [len(read(broker.bootstrap, topic, index)) for index in range(3)]
    assert sum(counts) == 2000
    assert min(counts) > 300
    rounds = make_producer(partitioner_class="RoundRobinPartitioner")
    results = [rounds.send(topic, b"x").result(30).partition for _ in range(4)]
    assert results == [0, 1, 2, 0]


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_all_acks_settings_deliver(broker, make_topic, make_producer, acks):
    topic = make_topic()
    producer = make_producer(acks=acks)
    results = [producer.send(topic, b"%d" % index).result(30).offset for index in range(3)]
    assert results == ([-1, -1, -1] if acks == 0 else [0, 1, 2])
    deadline = time.monotonic() + 10
    while len(read(broker.bootstrap, topic)) < 3:
        assert time.monotonic() < deadline
    assert [record[3] for record in read(broker.bootstrap, topic)] == [b"0", b"1", b"2"]


def test_producer_is_thread_safe(broker, make_topic, make_producer):
    """Each thread's records are in order, without duplicates."""
    topic = make_topic()
    producer = make_producer(batch_size=2000)
    futures = {}

    def work(name):
        futures[name] = [producer.send(topic, b"%d-%d" % (name, index)) for index in range(500)]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(30)
    values = [record[3] for record in read(broker.bootstrap, topic)]
    for name in range(4):
        expected = [b"%d-%d" % (name, index) for index in range(500)]
        assert [value for value in values if value.startswith(b"%d-" % name)] == expected
        assert [values[future.result().offset] for future in futures[name]] == expected
    assert len(values) == 2000


def test_done_callbacks(make_topic, make_producer):
    topic, called = make_topic(), threading.Event()
    results = []
    future = make_producer().send(topic, b"x")
    future.add_done_callback(lambda done: (results.append(done.result().offset), called.set()))
    assert called.wait(30)
    assert results == [0]
    assert future.exception() is None


def test_unknown_topic_raises(broker, make_producer, new_name, api_keys):
    """An invalid name fails at once; a missing topic is waited for."""
    producer = make_producer(max_block_ms=500)
    with pytest.raises(BrokerError, match="INVALID_TOPIC_EXCEPTION"):
        producer.send("bad/name", b"x")
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        topic = new_name()
        admin.create_topic(topic, 2, 1)
        with pytest.raises(UnknownTopicOrPartitionError, match="partitions 0 to 1"):
            producer.send(topic, b"x", partition=2)
        producer.send(topic, b"x", partition=1).result(30)


def test_added_partition_is_found(broker, make_topic, make_producer):
    """Sending to an unknown partition updates the metadata."""
    topic = make_topic()
    producer = make_producer(max_block_ms=10_000)
    producer.send(topic, b"x").result(30)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_partitions({topic: 3})
    assert producer.send(topic, b"x", partition=2).result(30).partition == 2


def test_oversized_records_raise(make_topic, make_producer):
    topic = make_topic(max_message_bytes="2000")
    producer = make_producer(linger_ms=20)
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size, 1048576"):
        producer.send(topic, b"x" * (1 << 20))
    with pytest.raises(RecordTooLargeError, match="MESSAGE_TOO_LARGE"):
        producer.send(topic, b"x" * 3000).result(30)
    assert producer.send(topic, b"x").result(30).offset == 0


def test_too_large_batch_is_split(broker, make_topic, make_producer):
    topic = make_topic(max_message_bytes="2000")
    producer = make_producer(linger_ms=50)
    futures = [producer.send(topic, b"%03d" % index * 100) for index in range(40)]
    assert [future.result(30).offset for future in futures] == list(range(40))
    assert [record[3] for record in read(broker.bootstrap, topic)] == [b"%03d" % index * 100 for index in range(40)]
    assert producer.metrics()["batch-split-total"] >= 1


def test_record_rejected_by_the_topic(make_topic, make_producer):
    """The other records' errors say that another record was invalid."""
    topic = make_topic(cleanup_policy="compact")
    producer = make_producer(linger_ms=50)
    good, bad = producer.send(topic, b"x", b"key"), producer.send(topic, b"x")
    with pytest.raises(BrokerError, match="INVALID_RECORD"):
        bad.result(30)
    with pytest.raises(BrokerError, match="another record"):
        good.result(30)
    assert producer.send(topic, b"x", b"key").result(30).offset == 0


def test_unreachable_bootstrap_raises():
    """The error names the address and the fix."""
    port = free_port()
    with (
        Producer(bootstrap_servers=f"127.0.0.1:{port}", max_block_ms=400) as producer,
        pytest.raises(BootstrapError) as caught,
    ):
        producer.send("any", b"x")
    assert f"127.0.0.1:{port} is unreachable" in str(caught.value)
    assert "bootstrap.servers" in str(caught.value)


def test_unresponsive_bootstrap_server_times_out():
    with socket.create_server(("127.0.0.1", 0)) as unresponsive:
        port = unresponsive.getsockname()[1]
        settings = {"max_block_ms": 700, "socket_connection_setup_timeout_ms": 200}
        with (
            Producer(bootstrap_servers=f"127.0.0.1:{port}", **settings) as producer,
            pytest.raises((BootstrapError, ClientTimeoutError)) as caught,
        ):
            producer.send("any", b"x")
    assert f"127.0.0.1:{port} did not respond" in str(caught.value)


def test_close(make_topic, make_producer):
    topic = make_topic()
    producer = make_producer(linger_ms=60_000, delivery_timeout_ms=120_000)
    future = producer.send(topic, b"x")
    producer.close()
    assert future.result().offset == 0
    with pytest.raises(ClientClosedError):
        producer.send(topic, b"x")
    producer.close()


def test_async_producer(broker, make_topic):
    topic = make_topic()

    async def work():
        async with AsyncProducer(bootstrap_servers=broker.bootstrap, linger_ms=1) as producer:
            futures = [await producer.send(topic, b"%d" % index) for index in range(500)]
            results = await asyncio.gather(*futures)
            assert [each.offset for each in results] == list(range(500))
            assert (await producer.send_and_wait(topic, b"last")).offset == 500
            assert len(await producer.partitions_for(topic)) == 1
            with pytest.raises(asyncio.InvalidStateError):
                (await producer.send(topic, b"more")).result()
        with pytest.raises(ClientClosedError):
            await producer.send(topic, b"x")

    asyncio.run(work())
    assert len(read(broker.bootstrap, topic)) == 502


# Faults, with the test's own broker


@pytest.fixture
def proxied_broker():
    """A broker behind a proxy."""
    kind = ApacheKafka if os.environ.get("OTTLA_COMPAT_BOOTSTRAP") else OttlaProcess
    proxy = FaultyProxy()
    port = free_port()
    with kind(port=port, settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}) as broker:
        proxy.target_port = port
        try:
            yield proxy, broker
        finally:
            proxy.close()


def test_lost_connections_cause_no_loss_or_duplicates(proxied_broker):
    """Responses are lost after the append and connections break; the producer continues."""
    proxy, broker = proxied_broker
    with Producer(
        bootstrap_servers=f"127.0.0.1:{proxy.port}", batch_size=500, linger_ms=1, retry_backoff_ms=10
    ) as producer:
        producer.send("numbers", b"0").result(30)
        futures = []
        for round_number in range(5):
            proxy.drops_answers = round_number % 2 == 0
            futures += [producer.send("numbers", b"%d" % (round_number * 300 + index + 1)) for index in range(300)]
            time.sleep(0.05)
            proxy.disconnect_all()
            proxy.drops_answers = False
        producer.flush(60)
        assert [future.result().offset for future in futures if future.result().offset >= 0] == [
            index + 1 for index, future in enumerate(futures) if future.result().offset >= 0
        ]
        assert producer.metrics()["record-retry-total"] > 0
    assert [record[3] for record in read(broker.bootstrap, "numbers", count=1501)] == [
        b"%d" % index for index in range(1501)
    ]


def test_broker_restart(broker):
    """The broker is killed and restarted: the log has all records once, in order."""
    kind = ApacheKafka if broker.process is None else OttlaProcess
    with kind() as mine, Producer(bootstrap_servers=mine.bootstrap, batch_size=300, linger_ms=1) as producer:
        futures = [producer.send("numbers", b"%d" % index) for index in range(200)]
        futures[0].result(30)
        mine.kill()
        futures += [producer.send("numbers", b"%d" % index) for index in range(200, 400)]
        mine.start()
        producer.flush(60)
        assert all(future.exception() is None for future in futures)
        assert [record[3] for record in read(mine.bootstrap, "numbers", count=400)] == [
            b"%d" % index for index in range(400)
        ]


def test_records_for_a_dead_broker_expire(broker):
    """Undeliverable records fail in time, and memory stays limited."""
    kind = ApacheKafka if broker.process is None else OttlaProcess
    settings = {"delivery_timeout_ms": 6000, "request_timeout_ms": 3000, "buffer_memory": 40_000, "max_block_ms": 3000}
    with kind() as mine, Producer(bootstrap_servers=mine.bootstrap, **settings) as producer:
        producer.send("numbers", b"x").result(30)
        mine.kill()
        future = producer.send("numbers", b"y")
        sent = (producer.send("numbers", b"z" * 1000) for _ in range(1000))
        with pytest.raises(BufferExhaustedError, match=r"buffer\.memory \(40000 bytes\) stayed full for 3000 ms"):
            list(sent)
        with pytest.raises(ClientTimeoutError, match=r"not delivered within 6 s"):
            future.result(30)
        producer.close(0.5)
