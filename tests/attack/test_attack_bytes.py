"""Mutated traffic of real clients, sent to a broker that other clients use.

`OTTLA_ATTACK_SECONDS` sets the duration, `OTTLA_ATTACK_SEED` the seed, which is printed.
"""

import collections
import contextlib
import os
import random
import socket
import struct
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from tests.attack.recorder import Recorder
from tests.fuzz.mutations import mutate

SECONDS = float(os.environ.get("OTTLA_ATTACK_SECONDS", "6"))
SEED = int(os.environ.get("OTTLA_ATTACK_SEED", "1"))
MB = 1 << 20
RUNS_MAX = 5
WAITING_MAX = 3


@pytest.fixture
def attacked(start_target):
    """A broker, and a recorder whose address it advertises."""
    recorder = Recorder()
    advertised = f"PLAINTEXT://127.0.0.1:{recorder.port}"
    target = start_target(
        advertised_listeners=advertised, socket_request_max_bytes="10000000", auto_create_topics_enable="false"
    )
    recorder.start(target.address)
    yield target, recorder
    recorder.close()


def use(bootstrap):
    """Send requests of most types that clients use."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("used", 2), NewTopic("gone", 1)]).values():
        future.result(10)
    admin.create_partitions([NewPartitions("used", 3)])["used"].result(10)
    admin.delete_topics(["gone"])["gone"].result(10)
    admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "used")])
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, "linger.ms": 5}
        )
        for number in range(20):
            producer.produce("used", b"value %d" % number * 30, b"key", headers=[("h", b"x")])
        assert producer.flush(10) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("used", number, 0) for number in range(3)])
    seen = 0
    while seen < 100:
        message = consumer.poll(10)
        assert message is not None
        seen += message.error() is None
    consumer.close()
    other = KafkaProducer(bootstrap_servers=bootstrap, acks=1)
    other.send("used", b"value").get(10)
    other.close()
    reader = KafkaConsumer(bootstrap_servers=bootstrap)
    reader.assign([KafkaPythonPartition("used", 0)])
    reader.seek_to_beginning()
    reader.poll(5000)
    reader.close()


def attack(address, requests, source):
    """Send some recorded requests, most of them mutated, at once or in pieces, on one connection; close or reset it."""
    chosen = source.randrange(len(requests))
    stream = b"".join(mutate(request, source) for request in requests[chosen : chosen + source.randint(1, RUNS_MAX)])
    with socket.create_connection(address) as connection, contextlib.suppress(ConnectionError):
        while stream:
            size = source.choice((len(stream), len(stream), source.randint(1, len(stream)), min(len(stream), 3)))
            connection.sendall(stream[:size])
            stream = stream[size:]
        connection.settimeout(source.choice((0, 0.001, 0.02)))
        with contextlib.suppress(TimeoutError, BlockingIOError):
            while connection.recv(1 << 16):
                continue
        if source.random() < 0.5:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_mutated_traffic_of_real_clients(attacked, witness_of):
    target, recorder = attacked
    use(f"127.0.0.1:{recorder.port}")
    requests = recorder.requests()
    types = collections.Counter(int.from_bytes(request[:2], "big") for request in requests)
    assert {0, 1, 2, 3, 18, 19, 20, 22, 32, 37} <= types.keys(), types
    # A few of each type: most recorded requests are fetches.
    by_type = {
        key: [request for request in requests if request[:2] == key.to_bytes(2, "big")][:40] for key in sorted(types)
    }
    requests = [request for group in by_type.values() for request in group]
    source = random.Random(SEED)
    source.shuffle(requests)
    attack_many(target, requests, source, 0.2 * SECONDS)  # loads modules and codecs, which takes memory once
    before = target.resident_bytes()
    with witness_of(target) as witness:
        attacks = attack_many(target, requests, source, SECONDS)
    grown = target.resident_bytes() - before
    p99_ms = sorted(witness.waits)[witness.count * 99 // 100] * 1000
    print(f"seed {SEED}: {attacks} attacks; {witness.count} records; p99 {p99_ms:.1f} ms; grown {grown >> 20} MB")
    assert grown < 60 * MB
    assert target.errors() == []
    # A mutated fetch may wait for days; with more bytes after it, its connection is not read, and stays open.
    target.wait_for('ottla_connections{listener="PLAINTEXT"}', WAITING_MAX, at_most=True)
    assert target.metrics()['ottla_connections_closed_total{reason="failed"}'] == 0
    assert target.metrics()["ottla_request_buffer_bytes"] <= WAITING_MAX * MB


def attack_many(target, requests, source, seconds):
    deadline, count = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        attack(target.address, requests, source)
        count += 1
    return count
