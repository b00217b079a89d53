"""The sender as a state machine: when batches leave, and what becomes of them."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.client import (
    BrokerError,
    ClientTimeoutError,
    DisconnectedError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordTooLargeError,
)
from tests.unit.client.producer_harness import Bench, metadata, sequences

NOT_LEADER, OUT_OF_ORDER, TOO_LARGE, DUPLICATE = 6, 45, 10, 46


def outcome(future):
    metadata, error = future.peek()
    return metadata.offset if metadata is not None else error


def test_a_batch_lingers():
    bench = Bench(linger_ms=20)
    bench.send(b"a")
    assert bench.poll() == []
    assert bench.sender.next_ms == 20
    bench.now_ms = 20
    assert sequences(bench.poll()) == [(0, 0, [b"a"])]


@pytest.mark.parametrize("reason", ["full", "flush", "close", "starved"])
def test_reasons_not_to_linger(reason):
    bench = Bench(linger_ms=1000, batch_size=100)
    bench.send(b"a" * (200 if reason == "full" else 1))
    bench.sender.is_flushing = reason == "flush"
    bench.sender.is_closing = reason == "close"
    bench.accumulator.is_out_of_memory = reason == "starved"
    assert len(bench.poll()) == 1


def test_batches_for_one_broker_share_a_request():
    bench = Bench(partitions=4)
    for partition in range(4):
        bench.send_batch(b"%d" % partition, partition=partition)
    ready = bench.poll()
    assert [(pending.node, [queue.partition for queue, _ in pending.batches]) for pending in ready] == [
        (1, [0, 2]),
        (2, [1, 3]),
    ]


def test_a_request_has_a_largest_size():
    bench = Bench(partitions=4, max_request_size=1200)
    for partition in (0, 2):
        bench.send_batch(b"x" * 300, partition=partition)
    assert [len(pending.batches) for pending in bench.poll()] == [1, 1]


def test_in_flight_is_bounded():
    bench = Bench(max_in_flight_requests_per_connection=2)
    for number in range(4):
        bench.send_batch(b"%d" % number)
    first, _ = bench.poll()
    bench.answer(first)
    assert sequences(bench.poll()) == [(0, 2, [b"2"])]


def test_offsets_of_acknowledged_records():
    bench = Bench()
    futures = bench.send_batch(b"a", b"b")
    (pending,) = bench.poll()
    assert [future.done() for future in futures] == [False, False]
    bench.answer(pending, base_offset=40)
    assert [outcome(future) for future in futures] == [40, 41]
    assert bench.accumulator.memory_used == 0
    assert bench.accumulator.incomplete == {}
    assert bench.poll() == []
    assert bench.accumulator.active == {}


def test_a_failed_batch_and_those_behind_it_are_sent_again_in_order():
    bench = Bench()
    futures = [bench.send_batch(b"%d" % number)[0] for number in range(3)]
    first, second, third = bench.poll()
    bench.answer(first, NOT_LEADER)
    bench.answer(third, OUT_OF_ORDER)
    assert bench.poll() == []  # one is still under way
    bench.answer(second, OUT_OF_ORDER)
    for number in range(3):
        (pending,) = bench.poll()[:1]
        assert sequences([pending])[0] == (0, number, [b"%d" % number])
        bench.answer(pending, base_offset=number)
    assert [outcome(future) for future in futures] == [0, 1, 2]
    assert bench.sender.identity == (7, 0)


def test_lost_connections_keep_sequences():
    """Whether they were appended is unknown: under their own sequences the broker can tell."""
    bench = Bench()
    futures = [bench.send_batch(b"%d" % number)[0] for number in range(2)]
    for pending in bench.poll():
        bench.sender.on_request_failed(pending, DisconnectedError("gone"), bench.now_ms)
    assert bench.sender.needs_metadata
    (again,) = bench.poll()[:1]
    assert sequences([again]) == [(0, 0, [b"0"])]
    bench.answer(again, DUPLICATE)
    (again,) = bench.poll()
    assert sequences([again]) == [(0, 1, [b"1"])]
    bench.answer(again, base_offset=1)
    assert [outcome(future) for future in futures] == [-1, 1]


def test_a_broker_that_has_forgotten_gets_the_next_epoch():
    """Out of order though nothing before it is missing: begin anew at sequence 0."""
    bench = Bench()
    bench.send_batch(b"0")
    (first,) = bench.poll()
    bench.answer(first)
    futures = [bench.send_batch(b"%d" % number)[0] for number in (1, 2)]
    second, third = bench.poll()
    bench.answer(second, OUT_OF_ORDER)
    bench.answer(third, OUT_OF_ORDER)
    for number, sequence in ((1, 0), (2, 1)):
        (pending,) = bench.poll()[:1]
        assert sequences([pending]) == [(1, sequence, [b"%d" % number])]
        bench.answer(pending, base_offset=number)
    assert [outcome(future) for future in futures] == [1, 2]
    assert bench.sender.identity == (7, 1)


def test_other_partitions_take_the_new_epoch_when_nothing_of_theirs_is_under_way():
    bench = Bench(partitions=3)
    bench.send_batch(b"a", partition=0)
    bench.send_batch(b"b", partition=2)
    (first,) = bench.poll()
    bench.answer(first)
    bench.send_batch(b"c", partition=0)
    (second,) = bench.poll()
    bench.send_batch(b"d", partition=2)
    (third,) = bench.poll()
    bench.answer(second, ErrorCode.UNKNOWN_PRODUCER_ID)
    bench.send_batch(b"e", partition=2)
    assert sequences(bench.poll()) == [(1, 0, [b"c"]), (0, 2, [b"e"])]
    bench.answer(third)


def test_a_refused_batch_that_none_has_followed_leaves_no_gap():
    bench = Bench()
    (future,) = bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.answer(pending, ErrorCode.INVALID_TIMESTAMP, message="too old")
    error = outcome(future)
    assert isinstance(error, BrokerError)
    assert error.name == "INVALID_TIMESTAMP"
    assert "partition 0 of topic 't'" in str(error)
    bench.send_batch(b"b")
    assert sequences(bench.poll()) == [(0, 0, [b"b"])]


def test_a_refused_batch_that_others_have_followed_begins_an_epoch():
    bench = Bench()
    (refused,), (later,) = bench.send_batch(b"a"), bench.send_batch(b"b")
    first, second = bench.poll()
    bench.answer(first, ErrorCode.INVALID_RECORD)
    bench.answer(second, OUT_OF_ORDER)
    assert isinstance(outcome(refused), BrokerError)
    (again,) = bench.poll()
    assert sequences([again]) == [(1, 0, [b"b"])]
    bench.answer(again, base_offset=3)
    assert outcome(later) == 3


def test_bad_records_are_named():
    bench = Bench()
    good, bad = bench.send_batch(b"a", b"b")
    (pending,) = bench.poll()
    bench.answer(pending, ErrorCode.INVALID_RECORD, record_errors={1: "no key"})
    assert "another record" in str(outcome(good))
    assert "no key" in str(outcome(bad))


def test_batches_expire_where_nobody_leads():
    bench = Bench(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    bench.cluster.update(metadata(1, leader=-1))
    (future,) = bench.send_batch(b"a")
    assert bench.poll() == []
    assert bench.sender.needs_metadata
    assert bench.sender.next_ms == 31_000
    bench.now_ms = 31_000
    assert bench.poll() == []
    assert isinstance(outcome(future), ClientTimeoutError)
    assert "not delivered within 31 s" in str(outcome(future))
    assert bench.accumulator.memory_used == 0


def test_a_batch_that_expires_under_way_begins_an_epoch():
    bench = Bench(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    (future,) = bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.now_ms = 31_000
    bench.poll()
    assert isinstance(outcome(future), ClientTimeoutError)
    bench.sender.on_request_failed(pending, DisconnectedError("gone"), bench.now_ms)
    bench.send_batch(b"b")
    assert sequences(bench.poll()) == [(1, 0, [b"b"])]


def test_retries_are_counted():
    bench = Bench(retries=2)
    (future,) = bench.send_batch(b"a")
    for _ in range(3):
        (pending,) = bench.poll()
        assert not future.done()
        bench.answer(pending, NOT_LEADER)
    assert outcome(future).name == "NOT_LEADER_OR_FOLLOWER"
    assert bench.sender.counts["retries"] == 2
    assert bench.sender.counts["errors"] == 1


def test_retries_wait():
    bench = Bench(retry_backoff_ms=100)
    bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.answer(pending, NOT_LEADER)
    assert bench.poll() == []
    assert bench.sender.next_ms == 80  # 100 less a fifth, as this Rng has it
    bench.now_ms = 80
    assert len(bench.poll()) == 1


def test_a_batch_that_is_too_large_is_split():
    """The parts have its sequences, and the futures find their parts."""
    bench = Bench()
    futures = bench.send_batch(b"a" * 50, b"b" * 50, b"c" * 50, b"d" * 50)
    (later,) = bench.send_batch(b"e")
    first, second = bench.poll()
    bench.answer(first, TOO_LARGE)
    bench.answer(second, OUT_OF_ORDER)
    sent = []
    offset = 10
    while ready := bench.poll()[:1]:
        ((_, batch),) = ready[0].batches
        sent += sequences(ready)
        bench.answer(ready[0], base_offset=offset)
        offset += batch.count
    assert sent == [(0, 0, [b"a" * 50, b"b" * 50]), (0, 2, [b"c" * 50, b"d" * 50]), (0, 4, [b"e"])]
    assert [outcome(future) for future in (*futures, later)] == [10, 11, 12, 13, 14]
    assert bench.accumulator.memory_used == 0
    assert bench.accumulator.incomplete == {}


def test_one_record_cannot_be_split():
    bench = Bench()
    (future,) = bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.answer(pending, TOO_LARGE)
    assert isinstance(outcome(future), RecordTooLargeError)
    assert "max.message.bytes" in str(outcome(future))


def test_a_fenced_producer_needs_another_id():
    bench = Bench()
    (future,) = bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.answer(pending, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert isinstance(outcome(future), ProducerFencedError)
    bench.send_batch(b"b")
    assert bench.poll() == []
    assert bench.sender.needs_identity
    bench.sender.identity = (8, 0)
    assert sequences(bench.poll()) == [(0, 0, [b"b"])]


def test_the_last_epoch_is_followed_by_another_id():
    bench = Bench()
    bench.sender.identity = (7, 32_767)
    bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.answer(pending, ErrorCode.UNKNOWN_PRODUCER_ID)
    assert bench.poll() == []
    assert bench.sender.needs_identity
    bench.sender.identity = (8, 0)
    (again,) = bench.poll()
    assert sequences([again]) == [(0, 0, [b"a"])]


def test_without_idempotence_batches_have_no_sequence():
    bench = Bench(enable_idempotence=False)
    (future,) = bench.send_batch(b"a")
    (pending,) = bench.poll()
    assert sequences([pending]) == [(-1, -1, [b"a"])]
    bench.answer(pending, OUT_OF_ORDER)
    assert isinstance(outcome(future), OutOfOrderSequenceError)


def test_nothing_is_known_of_what_is_not_acknowledged():
    bench = Bench(acks=0)
    (future,) = bench.send_batch(b"a")
    (pending,) = bench.poll()
    bench.sender.on_sent_without_acks(pending)
    assert outcome(future) == -1


def test_a_new_leader_gets_what_waits():
    bench = Bench()
    bench.send_batch(b"a")
    (pending,) = bench.poll()
    assert bench.cluster.set_leader("t", 0, 2, 1) is True
    bench.answer(pending, NOT_LEADER)
    (again,) = bench.poll()
    assert (pending.node, again.node) == (1, 2)


def test_brokers_that_are_not_connected_get_nothing():
    bench = Bench(partitions=2)
    bench.send_batch(b"a", partition=0)
    bench.send_batch(b"b", partition=1)
    assert [pending.node for pending in bench.poll(lambda node: node == 2)] == [2]


def test_the_end_fails_what_is_left():
    bench = Bench()
    (future,) = bench.send_batch(b"a")
    bench.sender.fail_all(DisconnectedError("the end"))
    assert isinstance(outcome(future), DisconnectedError)
