"""What real clients say, spoilt byte by byte, thrown at a node that others use meanwhile.

`OTTLA_ATTACK_SECONDS=600` makes it last; the seed is printed, and `OTTLA_ATTACK_SEED` sets it.
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
def attacked(start_victim):
    """A node, and a recorder that it sends its clients to."""
    recorder = Recorder()
    advertised = f"PLAINTEXT://127.0.0.1:{recorder.port}"
    victim = start_victim(
        advertised_listeners=advertised, socket_request_max_bytes="10000000", auto_create_topics_enable="false"
    )
    recorder.start(victim.address)
    yield victim, recorder
    recorder.close()


def use(bootstrap):
    """A little of everything that clients do."""
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
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False})
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
    """One connection: some recorded requests in a row, most of them spoilt, whole or in pieces; then it ends in one way or another."""
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


def test_spoilt_traffic_of_real_clients(attacked, witness_of):
    victim, recorder = attacked
    use(f"127.0.0.1:{recorder.port}")
    requests = recorder.requests()
    kinds = collections.Counter(int.from_bytes(request[:2], "big") for request in requests)
    assert {0, 1, 2, 3, 18, 19, 20, 22, 32, 37} <= kinds.keys(), kinds
    # Few of each kind: otherwise it would be all fetches.
    by_kind = {
        key: [request for request in requests if request[:2] == key.to_bytes(2, "big")][:40] for key in sorted(kinds)
    }
    requests = [request for kind in by_kind.values() for request in kind]
    source = random.Random(SEED)
    source.shuffle(requests)
    attack_many(victim, requests, source, 0.2 * SECONDS)  # what is loaded once is loaded now
    before = victim.resident_bytes()
    with witness_of(victim) as witness:
        attacks = attack_many(victim, requests, source, SECONDS)
    grown = victim.resident_bytes() - before
    p99_ms = sorted(witness.waits)[witness.count * 99 // 100] * 1000
    print(f"seed {SEED}: {attacks} attacks; {witness.count} records; p99 {p99_ms:.1f} ms; grown {grown >> 20} MB")
    assert grown < 60 * MB
    assert victim.errors() == []
    # A fetch may have been spoilt into one that waits for days; with more bytes behind it, nobody reads that its client has gone.
    victim.wait_for('ottla_connections{listener="PLAINTEXT"}', WAITING_MAX, at_most=True)
    assert victim.metrics()['ottla_connections_closed_total{reason="failed"}'] == 0
    assert victim.metrics()["ottla_request_buffer_bytes"] <= WAITING_MAX * MB


def attack_many(victim, requests, source, seconds):
    deadline, count = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        attack(victim.address, requests, source)
        count += 1
    return count
