"""The accumulator: encoding, memory and partitions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client import RecordMetadata, RecordTooLargeError
from ottla.client.accumulator import RECORD_OVERHEAD_MAX, TABLE_SIZE
from ottla.wire.batches import RECORDS_AT, decode_records, has_valid_checksum, read_header
from tests.unit.client.producer_harness import ProducerHarness

FIELD = st.none() | st.binary(max_size=40) | st.just(b"x" * (TABLE_SIZE + 5))
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
TIMES = st.integers(0, 1 << 42)


@settings(deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD, TIMES, HEADERS), min_size=1, max_size=20))
def test_records_round_trip(records):
    """For all sizes and timestamps, `decode_records` reads what `try_send` encoded."""
    harness = ProducerHarness(batch_size=1 << 20, max_request_size=1 << 20)
    for key, value, timestamp, headers in records:
        assert harness.send(value, key, 0, timestamp, headers) is not None
    (pending,) = harness.sender.poll(10_000, lambda node: True)
    ((_, batch),) = pending.batches
    batch.seal()
    assert has_valid_checksum(batch.buffer)
    found = [
        (record.key, record.value, record.timestamp, list(record.headers)) for record in decode_records(batch.buffer)
    ]
    assert found == [(key, value, timestamp, headers or []) for key, value, timestamp, headers in records]
    header = read_header(batch.buffer)
    assert header.max_timestamp == max(timestamp for _, _, timestamp, _ in records)
    assert (header.producer_id, header.base_sequence, header.last_offset_delta) == (7, 0, len(records) - 1)


def test_batch_holds_more_records_than_two_byte_deltas():
    """Offset deltas of three bytes."""
    harness = ProducerHarness(batch_size=1 << 20, max_request_size=1 << 21)
    for number in range(TABLE_SIZE + 100):
        harness.send(b"%d" % number, partition=0)
    (pending,) = harness.poll() or harness.sender.poll(10, lambda node: True)
    batch = pending.batches[0][1]
    batch.seal()
    assert [record.value for record in decode_records(batch.buffer)] == [
        b"%d" % number for number in range(TABLE_SIZE + 100)
    ]


def test_full_batch_is_closed_and_its_memory_counted():
    harness = ProducerHarness(batch_size=200)
    for _ in range(3):
        harness.send(b"x" * 80, partition=0)
    assert [len(queue.batches) for queue in harness.accumulator.routes["t"].queues] == [3]
    assert harness.accumulator.memory_used == 600
    assert harness.wakes == 3


def test_large_record_gets_its_own_batch():
    harness = ProducerHarness(batch_size=100)
    harness.send(b"x" * 1000, partition=0)
    assert harness.accumulator.memory_used == RECORDS_AT + RECORD_OVERHEAD_MAX + 1000
    assert len(harness.poll()) == 1


def test_memory_is_limited_and_released():
    harness = ProducerHarness(batch_size=400, buffer_memory=1000)
    futures = [harness.send(b"x" * 300, partition=0) for _ in range(2)]
    assert harness.send(b"x" * 300, partition=0) is None
    woken = []
    harness.accumulator.call_when_memory_free(lambda: woken.append("memory"))
    ready = harness.poll()
    harness.respond(ready[0], base_offset=5)
    assert woken == ["memory"]
    assert harness.send(b"x" * 300, partition=0) is not None
    assert futures[0].peek() == (RecordMetadata("t", 0, 5, 1_700_000_000_000, -1, 300), None)


def test_unsendable_records_raise():
    harness = ProducerHarness(max_request_size=1000, buffer_memory=500, batch_size=100)
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size, 1000"):
        harness.send(b"x" * 1000)
    with pytest.raises(RecordTooLargeError, match=r"buffer\.memory, 500"):
        harness.send(b"x" * 600)
    with pytest.raises(ValueError, match="partition must be >= 0, got -1"):
        harness.send(b"x", partition=-1)
    assert harness.send(b"x", partition=1) is None
    with pytest.raises(ValueError, match="milliseconds since 1970"):
        harness.send(b"x", timestamp=-5)
    assert harness.accumulator.try_send("unknown", b"x", None, None, None, None) is None


def test_records_without_key_stick_to_a_partition_until_a_batch_is_full():
    harness = ProducerHarness(partitions=4, batch_size=200)
    choices = iter((2, 0, 3))
    harness.accumulator._rng = type("Rng", (), {"below": lambda self, limit: next(choices)})()
    harness.accumulator.routes["t"].sticky = 1
    for _ in range(3):
        harness.send(b"x" * 80)
    counts = [sum(batch.count for batch in queue.batches) for queue in harness.accumulator.routes["t"].queues]
    assert counts == [1, 1, 1, 0]
    harness.send(b"x", key=b"21")
    expected = (-973932308 & 0x7FFFFFFF) % 4
    assert harness.accumulator.routes["t"].queues[expected].open is not None


def test_custom_partitioner_and_ignored_keys():
    harness = ProducerHarness(partitions=3, partitioner_class=lambda topic, key, value, partitions: partitions - 1)
    harness.send(b"x", key=b"k")
    assert harness.accumulator.routes["t"].queues[2].open is not None
    harness = ProducerHarness(partitions=3, partitioner_class=lambda topic, key, value, partitions: partitions)
    with pytest.raises(ValueError, match="returned 3, but the topic has 3 partitions"):
        harness.send(b"x")
    harness = ProducerHarness(partitions=3, partitioner_ignore_keys=True)
    for number in range(10):
        harness.send(b"x", key=b"%d" % number)
    assert [bool(queue.open) for queue in harness.accumulator.routes["t"].queues] == [True, False, False]


def test_added_partitions_are_used():
    from tests.unit.client.producer_harness import metadata

    harness = ProducerHarness(partitions=1)
    harness.cluster.update(metadata(3))
    harness.accumulator.update_topic(harness.cluster.topic("t"))
    assert harness.send(b"x", partition=2) is not None


def test_compression_ratio_enlarges_batches():
    harness = ProducerHarness(batch_size=1000, compression_type="gzip")
    harness.accumulator.update_compression_ratio("t", 1000, 100)
    assert harness.accumulator.routes["t"].ratio == pytest.approx(0.995)
    for _ in range(300):
        harness.accumulator.update_compression_ratio("t", 1000, 100)
    assert harness.accumulator.routes["t"].ratio == pytest.approx(0.1)
    harness.accumulator.update_compression_ratio("t", 1000, 800)
    assert harness.accumulator.routes["t"].ratio == pytest.approx(0.8)
