"""Columns are sent like records: same partitions, order and outcomes."""

from random import Random
from typing import Any

import numpy as np
import pytest

from ottla.client import Consumer, Producer, RecordTooLargeError
from ottla.client.column_producer import murmur2_column
from ottla.client.partitioner import murmur2
from ottla.client.producer_async import AsyncProducer
from ottla.testing import Broker
from ottla.wire.columns import BinaryColumn, HeaderColumns


def binary(strings: list[bytes | None]) -> BinaryColumn:
    offsets = np.concatenate([[0], np.cumsum([len(each or b"") for each in strings])]).astype(np.int64)
    nulls = np.array([each is None for each in strings], np.bool_)
    return BinaryColumn(
        offsets, np.frombuffer(b"".join(each or b"" for each in strings), np.uint8), nulls if nulls.any() else None
    )


VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Hashes computed by Kafka's Java client."""


def test_hashes_equal_java_clients() -> None:
    assert murmur2_column(binary(list(VECTORS))).view(np.int32).tolist() == list(VECTORS.values())


def test_column_hashes_equal_single_key_hashes() -> None:
    rng = Random(1)
    keys: list[bytes | None] = [rng.randbytes(length) for length in [*range(40), 100, 1001]]
    rng.shuffle(keys)
    complete = binary(keys)
    assert murmur2_column(complete).tolist() == [murmur2(key or b"") for key in keys]
    some = BinaryColumn(complete.offsets[3:], complete.data, None)
    assert murmur2_column(some).tolist() == [murmur2(key or b"") for key in keys[3:]]


@pytest.fixture(scope="module")
def broker() -> Any:
    with Broker() as running:
        yield running


def read(broker: Broker, topic: str, count: int) -> list[Any]:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, partition) for partition in range(len(consumer.partitions_for(topic)))])
        found: list[Any] = []
        while len(found) < count:
            found += consumer.poll(10)
        return sorted(found, key=lambda record: (record.partition, record.offset))


def test_columns_use_the_partitions_of_records(broker: Broker) -> None:
    """By key hash or given partition, in order."""
    broker.create_topic("both", 4)
    keys: list[bytes | None] = [b"key-%d" % (index % 37) if index % 5 else None for index in range(3000)]
    partitions = np.where(np.arange(3000) % 5 == 0, 2, -1).astype(np.int32)
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=5000) as producer:
        sent = producer.send_columns(
            "both",
            binary([b"%d" % index for index in range(3000)]),
            binary(keys),
            partitions=partitions,
            timestamps=np.arange(3000) + 10**12,
        )
        assert sum(sent.result(30).values()) == 3000
        for index, key in enumerate(keys):
            producer.send(
                "both", b"%d" % index, key=key, partition=2 if key is None else None, timestamp=10**12 + index
            )
    records = read(broker, "both", 6000)
    for partition in range(4):
        here = [(record.key, record.value, record.timestamp) for record in records if record.partition == partition]
        assert here[: len(here) // 2] == here[len(here) // 2 :]
    assert len(records) == 6000


def test_rows_without_key_switch_partition_per_batch(broker: Broker) -> None:
    broker.create_topic("spread", 3)
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=1000) as producer:
        counts = producer.send_columns("spread", binary([b"x" * 90] * 900)).result(30)
    assert sorted(counts) == [0, 1, 2]
    assert max(counts.values()) - min(counts.values()) <= 12


def test_headers_tombstones_and_codecs_round_trip(broker: Broker) -> None:
    broker.create_topic("headed", 1)
    headers = HeaderColumns(np.array([0, 2, 2, 3]), binary([b"a", b"b", b"c"]), binary([b"1", None, b""]))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec) as producer:
            producer.send_columns("headed", binary([b"v", None, b""]), headers=headers).result(30)
    records = [(record.value, record.headers) for record in read(broker, "headed", 15)]
    assert records == 5 * [(b"v", (("a", b"1"), ("b", None))), (None, ()), (b"", (("c", b""),))]


def test_too_large_batches_are_split(broker: Broker) -> None:
    """The future and flush wait for all parts."""
    broker.create_topic("small", 1, configs={"max.message.bytes": "2000"})
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=100_000) as producer:
        sent = producer.send_columns("small", binary([b"%0500d" % index for index in range(100)]))
        producer.flush(30)
        assert sent.done()
        assert sent.result(0) == {0: 100}
    assert [int(record.value) for record in read(broker, "small", 100)] == list(range(100))


def test_memory_is_limited(broker: Broker) -> None:
    """More than buffer.memory is sent as memory is released."""
    broker.create_topic("memory", 1)
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=10_000, buffer_memory=50_000) as producer:
        assert producer.send_columns("memory", binary([b"x" * 1000] * 2000)).result(30) == {0: 2000}
        assert producer.metrics()["buffer-available-bytes"] == 50_000


def test_invalid_columns_raise(broker: Broker) -> None:
    broker.create_topic("rejected", 2)
    with Producer(bootstrap_servers=broker.bootstrap, max_request_size=5000, max_block_ms=300) as producer:
        with pytest.raises(RecordTooLargeError, match=r"of topic 'rejected' is larger than max\.request\.size, 5000"):
            producer.send_columns("rejected", binary([b"x" * 6000]))
        with pytest.raises(Exception, match="partition 9 of topic 'rejected'"):
            producer.send_columns("rejected", binary([b"x"]), partitions=np.array([9], np.int32))
        with pytest.raises(ValueError, match="must be >= 0, got -2"):
            producer.send_columns("rejected", binary([b"x"]), partitions=np.array([-2], np.int32))
        with pytest.raises(ValueError, match="have 1 and 2 rows"):
            producer.send_columns("rejected", binary([b"x"]), binary([b"x", b"y"]))
        with pytest.raises(ValueError, match="milliseconds since 1970"):
            producer.send_columns("rejected", binary([b"x"]), timestamps=np.array([-5]))
        assert producer.send_columns("rejected", binary([])).result(1) == {}


async def test_async_send_columns(broker: Broker) -> None:
    broker.create_topic("looped", 2)
    async with AsyncProducer(bootstrap_servers=broker.bootstrap, batch_size=2000, buffer_memory=20_000) as producer:
        sent = await producer.send_columns(
            "looped", binary([b"x" * 100] * 1000), binary([b"%d" % index for index in range(1000)])
        )
        assert sum((await sent).values()) == 1000
