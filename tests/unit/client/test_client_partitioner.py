"""Partitioners: Kafka's hash, round robin, custom functions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as expected_hash

from ottla.client.partitioner import CACHED_KEYS_MAX, KeyHashes, RoundRobin, murmur2, partitioner_named


def signed(number):
    return number - (1 << 32) if number >> 31 else number


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_equals_java_client(key, expected):
    assert signed(murmur2(key)) == expected


@settings(deadline=None)
@given(st.binary(max_size=70))
def test_hash_equals_kafka_python(key):
    assert murmur2(key) & 0x7FFFFFFF == expected_hash(key) & 0x7FFFFFFF
    hashes = KeyHashes()
    assert hashes.of(key) == hashes.of(key) == murmur2(key) & 0x7FFFFFFF


def test_hash_cache_is_limited():
    hashes = KeyHashes()
    for number in range(CACHED_KEYS_MAX + 10):
        hashes.of(b"%d" % number)
    assert len(hashes._known) <= CACHED_KEYS_MAX


def test_round_robin_is_per_topic():
    choose = RoundRobin()
    assert [choose("a", b"k", b"v", 3) for _ in range(4)] == [0, 1, 2, 0]
    assert choose("b", None, None, 3) == 0


def test_partitioner_names():
    assert partitioner_named(None) is None
    assert isinstance(partitioner_named("org.apache.kafka.clients.producer.RoundRobinPartitioner"), RoundRobin)
    assert isinstance(partitioner_named(RoundRobin), RoundRobin)
    own = lambda topic, key, value, partitions: 0  # noqa: E731
    assert partitioner_named(own) is own
