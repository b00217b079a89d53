"""Records into batches: their bytes, their memory, their partitions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client import RecordMetadata, RecordTooLargeError
from ottla.client.accumulator import RECORD_OVERHEAD_MAX, TABLE_SIZE
from ottla.wire.batches import RECORDS_AT, decode_records, has_valid_checksum, read_header
from tests.unit.client.producer_harness import Bench

FIELD = st.none() | st.binary(max_size=40) | st.just(b"x" * (TABLE_SIZE + 5))
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
TIMES = st.integers(0, 1 << 42)


@settings(deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD, TIMES, HEADERS), min_size=1, max_size=20))
def test_what_is_sent_is_what_is_read(records):
    """Whatever the sizes and times: the straight line encodes as the wire's own reader expects."""
    bench = Bench(batch_size=1 << 20, max_request_size=1 << 20)
    for key, value, timestamp, headers in records:
        assert bench.send(value, key, 0, timestamp, headers) is not None
    (pending,) = bench.sender.poll(10_000, lambda node: True)
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


def test_many_small_records_in_one_batch():
    """Offset deltas that take three bytes."""
    bench = Bench(batch_size=1 << 20, max_request_size=1 << 21)
    for number in range(TABLE_SIZE + 100):
        bench.send(b"%d" % number, partition=0)
    (pending,) = bench.poll() or bench.sender.poll(10, lambda node: True)
    batch = pending.batches[0][1]
    batch.seal()
    assert [record.value for record in decode_records(batch.buffer)] == [
        b"%d" % number for number in range(TABLE_SIZE + 100)
    ]


def test_a_full_batch_is_closed_and_counted():
    bench = Bench(batch_size=200)
    for _ in range(3):
        bench.send(b"x" * 80, partition=0)
    assert [len(queue.batches) for queue in bench.accumulator.routes["t"].queues] == [3]
    assert bench.accumulator.memory_used == 600
    assert bench.wakes == 3


def test_a_large_record_has_a_batch_of_its_own():
    bench = Bench(batch_size=100)
    bench.send(b"x" * 1000, partition=0)
    assert bench.accumulator.memory_used == RECORDS_AT + RECORD_OVERHEAD_MAX + 1000
    assert len(bench.poll()) == 1


def test_memory_is_bounded_and_comes_back():
    bench = Bench(batch_size=400, buffer_memory=1000)
    futures = [bench.send(b"x" * 300, partition=0) for _ in range(2)]
    assert bench.send(b"x" * 300, partition=0) is None
    told = []
    bench.accumulator.call_when_memory_free(lambda: told.append("room"))
    ready = bench.poll()
    bench.answer(ready[0], base_offset=5)
    assert told == ["room"]
    assert bench.send(b"x" * 300, partition=0) is not None
    assert futures[0].peek() == (RecordMetadata("t", 0, 5, 1_700_000_000_000, -1, 300), None)


def test_records_that_cannot_be_sent():
    bench = Bench(max_request_size=1000, buffer_memory=500, batch_size=100)
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size, 1000"):
        bench.send(b"x" * 1000)
    with pytest.raises(RecordTooLargeError, match=r"buffer\.memory, 500"):
        bench.send(b"x" * 600)
    with pytest.raises(ValueError, match="partition must be >= 0, got -1"):
        bench.send(b"x", partition=-1)
    assert bench.send(b"x", partition=1) is None
    with pytest.raises(ValueError, match="milliseconds since 1970"):
        bench.send(b"x", timestamp=-5)
    assert bench.accumulator.try_send("unknown", b"x", None, None, None, None) is None


def test_keys_decide_and_others_stick_until_a_batch_is_full():
    bench = Bench(partitions=4, batch_size=200)
    choices = iter((2, 0, 3))
    bench.accumulator._rng = type("Rng", (), {"below": lambda self, limit: next(choices)})()
    bench.accumulator.routes["t"].sticky = 1
    for _ in range(3):
        bench.send(b"x" * 80)
    counts = [sum(batch.count for batch in queue.batches) for queue in bench.accumulator.routes["t"].queues]
    assert counts == [1, 1, 1, 0]
    bench.send(b"x", key=b"21")
    expected = (-973932308 & 0x7FFFFFFF) % 4
    assert bench.accumulator.routes["t"].queues[expected].open is not None


def test_own_partitioners_and_ignored_keys():
    bench = Bench(partitions=3, partitioner_class=lambda topic, key, value, partitions: partitions - 1)
    bench.send(b"x", key=b"k")
    assert bench.accumulator.routes["t"].queues[2].open is not None
    bench = Bench(partitions=3, partitioner_class=lambda topic, key, value, partitions: partitions)
    with pytest.raises(ValueError, match="returned 3, but the topic has 3 partitions"):
        bench.send(b"x")
    bench = Bench(partitions=3, partitioner_ignore_keys=True)
    for number in range(10):
        bench.send(b"x", key=b"%d" % number)
    assert [bool(queue.open) for queue in bench.accumulator.routes["t"].queues] == [True, False, False]


def test_partitions_that_are_added_are_used():
    from tests.unit.client.producer_harness import metadata

    bench = Bench(partitions=1)
    bench.cluster.update(metadata(3))
    bench.accumulator.update_topic(bench.cluster.topic("t"))
    assert bench.send(b"x", partition=2) is not None


def test_compression_makes_batches_hold_more():
    bench = Bench(batch_size=1000, compression_type="gzip")
    bench.accumulator.update_compression_ratio("t", 1000, 100)
    assert bench.accumulator.routes["t"].ratio == pytest.approx(0.995)
    for _ in range(300):
        bench.accumulator.update_compression_ratio("t", 1000, 100)
    assert bench.accumulator.routes["t"].ratio == pytest.approx(0.1)
    bench.accumulator.update_compression_ratio("t", 1000, 800)
    assert bench.accumulator.routes["t"].ratio == pytest.approx(0.8)
