"""Each client reads back what it wrote: all fields, codecs and sizes, in partition order."""

import time
from collections import Counter

import pytest

from tests.compat.clients.base import BIG, CODECS, Acks, Client, Codec
from tests.compat.conftest import Broker, MakeTopic
from tests.compat.record import START_MS, Read, Sent, by_partition, contents_corpus, noise

PARTITIONS = 3


def expected(client: Client, records: list[Sent]) -> dict[int, list[Sent]]:
    found: dict[int, list[Sent]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return found


def without_time(records: list[Read]) -> list[Sent]:
    return [Sent(record.partition, record.key, record.value, record.headers) for record in records]


def read_all(client: Client, broker: Broker, topic: str, counts: dict[int, int]) -> dict[int, list[Read]]:
    return by_partition(client.consume(broker.bootstrap, topic, dict.fromkeys(counts, 0), counts))


@pytest.mark.parametrize("codec", CODECS)
def test_all_fields_round_trip(broker: Broker, client: Client, make_topic: MakeTopic, codec: Codec) -> None:
    """Null, empty and duplicate keys, values and headers; timestamps; contiguous offsets from 0."""
    topic = make_topic(PARTITIONS)
    records = [record for record in contents_corpus(PARTITIONS) if client.can_send(record)]
    expected_records = expected(client, records)
    before = int(time.time() * 1000)
    offsets = client.produce(broker.bootstrap, topic, records, codec=codec)
    after = int(time.time() * 1000)
    found = read_all(client, broker, topic, {partition: len(sent) for partition, sent in expected_records.items()})

    assert {partition: [record.offset for record in read] for partition, read in found.items()} == {
        partition: list(range(len(sent))) for partition, sent in expected_records.items()
    }
    if (
        client.name == "kcat"
    ):  # kcat cannot set timestamps, print their type, or print line breaks in headers unambiguously
        assert {partition: without_time(read) for partition, read in found.items()} == {
            partition: [Sent(r.partition, r.key, r.value, r.headers) for r in sent]
            for partition, sent in expected_records.items()
        }
        assert all(before <= record.timestamp_ms <= after for read in found.values() for record in read)
        return
    assert {partition: [record.contents() for record in read] for partition, read in found.items()} == expected_records
    assert not any(record.append_time for read in found.values() for record in read)
    next_offset: Counter[int] = Counter()
    for record, offset in zip(records, offsets, strict=True):
        assert offset == next_offset[record.partition]
        next_offset[record.partition] += 1


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_sizes_from_one_byte_to_ten_megabytes(
    broker: Broker, client: Client, make_topic: MakeTopic, codec: Codec
) -> None:
    topic = make_topic(1, max_message_bytes=str(BIG))
    sizes = [1, 10, 1000, 16_384, 100_000, 1_000_000, 3_000_001, 10_000_000, 2]
    records = [Sent(0, b"size-%d" % size, noise(size, size)) for size in sizes]
    client.produce(broker.bootstrap, topic, records, codec=codec)
    found = read_all(client, broker, topic, {0: len(sizes)})[0]
    assert [(record.key, len(record.value or b"")) for record in found] == [(b"size-%d" % size, size) for size in sizes]
    assert without_time(found) == records


def test_log_append_time_replaces_timestamps(broker: Broker, client: Client, make_topic: MakeTopic) -> None:
    """A topic with LogAppendTime uses the broker's clock."""
    topic = make_topic(1, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    client.produce(
        broker.bootstrap,
        topic,
        [Sent(0, b"k%d" % i, b"v", (), None if client.name == "kcat" else START_MS) for i in range(10)],
    )
    after = int(time.time() * 1000)
    found = read_all(client, broker, topic, {0: 10})[0]
    assert [record.key for record in found] == [b"k%d" % i for i in range(10)]
    assert all(before <= record.timestamp_ms <= after for record in found)
    assert all(record.append_time in (True, None) for record in found)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_all_acks_settings_deliver(broker: Broker, client: Client, make_topic: MakeTopic, acks: Acks) -> None:
    """Records are readable with every setting of acks; with acks=0, eventually."""
    topic = make_topic(2)
    records = [Sent(i % 2, b"key", b"value %d" % i) for i in range(20)]
    client.produce(broker.bootstrap, topic, records, acks=acks)
    found = read_all(client, broker, topic, {0: 10, 1: 10})
    assert {p: [record.value for record in read] for p, read in found.items()} == {
        p: [b"value %d" % i for i in range(p, 20, 2)] for p in range(2)
    }


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_idempotent_producer_keeps_order(broker: Broker, client: Client, make_topic: MakeTopic, codec: Codec) -> None:
    """With several batches in flight, each record is there once, in send order."""
    topic = make_topic(PARTITIONS)
    records = [Sent(i % PARTITIONS, b"key", b"value %06d " % i + noise(1000, i)) for i in range(300)]
    if client.name == "kcat":  # it needs one process per run of records with equal partition, key and headers
        records.sort(key=lambda record: record.partition)
    client.produce(broker.bootstrap, topic, records, idempotent=True, codec=codec)
    found = read_all(client, broker, topic, dict.fromkeys(range(PARTITIONS), 100))
    assert {p: without_time(read) for p, read in found.items()} == expected(client, records)
    assert client.offsets(broker.bootstrap, topic, range(PARTITIONS), "latest") == dict.fromkeys(range(PARTITIONS), 100)
