"""The sender state machine: when batches are sent, and their outcomes."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.client import (
    BrokerError,
    BrokerUnreachableError,
    ClientTimeoutError,
    DisconnectedError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordTooLargeError,
)
from tests.unit.client.producer_harness import ProducerHarness, metadata, sequences

NOT_LEADER, OUT_OF_ORDER, TOO_LARGE, DUPLICATE = 6, 45, 10, 46


def outcome(future):
    metadata, error = future.peek()
    return metadata.offset if metadata is not None else error


def test_batch_lingers():
    harness = ProducerHarness(linger_ms=20)
    harness.send(b"a")
    assert harness.poll() == []
    assert harness.sender.next_ms == 20
    harness.now_ms = 20
    assert sequences(harness.poll()) == [(0, 0, [b"a"])]


@pytest.mark.parametrize("reason", ["full", "flush", "close", "starved"])
def test_batch_does_not_linger(reason):
    harness = ProducerHarness(linger_ms=1000, batch_size=100)
    harness.send(b"a" * (200 if reason == "full" else 1))
    harness.sender.is_flushing = reason == "flush"
    harness.sender.is_closing = reason == "close"
    harness.accumulator.is_out_of_memory = reason == "starved"
    assert len(harness.poll()) == 1


def test_batches_for_a_broker_share_a_request():
    harness = ProducerHarness(partitions=4)
    for partition in range(4):
        harness.send_batch(b"%d" % partition, partition=partition)
    ready = harness.poll()
    assert [(pending.node, [queue.partition for queue, _ in pending.batches]) for pending in ready] == [
        (1, [0, 2]),
        (2, [1, 3]),
    ]


def test_request_size_is_limited():
    harness = ProducerHarness(partitions=4, max_request_size=1200)
    for partition in (0, 2):
        harness.send_batch(b"x" * 300, partition=partition)
    assert [len(pending.batches) for pending in harness.poll()] == [1, 1]


def test_requests_in_flight_are_limited():
    harness = ProducerHarness(max_in_flight_requests_per_connection=2)
    for number in range(4):
        harness.send_batch(b"%d" % number)
    first, _ = harness.poll()
    harness.respond(first)
    assert sequences(harness.poll()) == [(0, 2, [b"2"])]


def test_acknowledged_records_have_offsets():
    harness = ProducerHarness()
    futures = harness.send_batch(b"a", b"b")
    (pending,) = harness.poll()
    assert [future.done() for future in futures] == [False, False]
    harness.respond(pending, base_offset=40)
    assert [outcome(future) for future in futures] == [40, 41]
    assert harness.accumulator.memory_used == 0
    assert harness.accumulator.incomplete == {}
    assert harness.poll() == []
    assert harness.accumulator.active == {}


def test_failed_batch_and_later_ones_are_retried_in_order():
    harness = ProducerHarness()
    futures = [harness.send_batch(b"%d" % number)[0] for number in range(3)]
    first, second, third = harness.poll()
    harness.respond(first, NOT_LEADER)
    harness.respond(third, OUT_OF_ORDER)
    assert harness.poll() == []  # one is still in flight
    harness.respond(second, OUT_OF_ORDER)
    for number in range(3):
        (pending,) = harness.poll()[:1]
        assert sequences([pending])[0] == (0, number, [b"%d" % number])
        harness.respond(pending, base_offset=number)
    assert [outcome(future) for future in futures] == [0, 1, 2]
    assert harness.sender.identity == (7, 0)


def test_retry_after_a_lost_connection_keeps_sequences():
    """Whether they were appended is unknown: under their own sequences the broker can tell."""
    harness = ProducerHarness()
    futures = [harness.send_batch(b"%d" % number)[0] for number in range(2)]
    for pending in harness.poll():
        harness.sender.on_request_failed(pending, DisconnectedError("gone"), harness.now_ms)
    assert harness.sender.needs_metadata
    (again,) = harness.poll()[:1]
    assert sequences([again]) == [(0, 0, [b"0"])]
    harness.respond(again, DUPLICATE)
    (again,) = harness.poll()
    assert sequences([again]) == [(0, 1, [b"1"])]
    harness.respond(again, base_offset=1)
    assert [outcome(future) for future in futures] == [-1, 1]


def test_lost_producer_state_starts_a_new_epoch():
    """OUT_OF_ORDER without missing batches: start again at sequence 0."""
    harness = ProducerHarness()
    harness.send_batch(b"0")
    (first,) = harness.poll()
    harness.respond(first)
    futures = [harness.send_batch(b"%d" % number)[0] for number in (1, 2)]
    second, third = harness.poll()
    harness.respond(second, OUT_OF_ORDER)
    harness.respond(third, OUT_OF_ORDER)
    for number, sequence in ((1, 0), (2, 1)):
        (pending,) = harness.poll()[:1]
        assert sequences([pending]) == [(1, sequence, [b"%d" % number])]
        harness.respond(pending, base_offset=number)
    assert [outcome(future) for future in futures] == [1, 2]
    assert harness.sender.identity == (7, 1)


def test_other_partitions_switch_epoch_with_nothing_in_flight():
    harness = ProducerHarness(partitions=3)
    harness.send_batch(b"a", partition=0)
    harness.send_batch(b"b", partition=2)
    (first,) = harness.poll()
    harness.respond(first)
    harness.send_batch(b"c", partition=0)
    (second,) = harness.poll()
    harness.send_batch(b"d", partition=2)
    (third,) = harness.poll()
    harness.respond(second, ErrorCode.UNKNOWN_PRODUCER_ID)
    harness.send_batch(b"e", partition=2)
    assert sequences(harness.poll()) == [(1, 0, [b"c"]), (0, 2, [b"e"])]
    harness.respond(third)


def test_rejected_last_batch_leaves_no_sequence_gap():
    harness = ProducerHarness()
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.respond(pending, ErrorCode.INVALID_TIMESTAMP, message="too old")
    error = outcome(future)
    assert isinstance(error, BrokerError)
    assert error.name == "INVALID_TIMESTAMP"
    assert "partition 0 of topic 't'" in str(error)
    harness.send_batch(b"b")
    assert sequences(harness.poll()) == [(0, 0, [b"b"])]


def test_rejected_earlier_batch_starts_a_new_epoch():
    harness = ProducerHarness()
    (rejected,), (later,) = harness.send_batch(b"a"), harness.send_batch(b"b")
    first, second = harness.poll()
    harness.respond(first, ErrorCode.INVALID_RECORD)
    harness.respond(second, OUT_OF_ORDER)
    assert isinstance(outcome(rejected), BrokerError)
    (again,) = harness.poll()
    assert sequences([again]) == [(1, 0, [b"b"])]
    harness.respond(again, base_offset=3)
    assert outcome(later) == 3


def test_invalid_records_are_named():
    harness = ProducerHarness()
    good, bad = harness.send_batch(b"a", b"b")
    (pending,) = harness.poll()
    harness.respond(pending, ErrorCode.INVALID_RECORD, record_errors={1: "no key"})
    assert "another record" in str(outcome(good))
    assert "no key" in str(outcome(bad))


def test_batches_without_a_leader_expire():
    harness = ProducerHarness(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    harness.cluster.update(metadata(1, leader=-1))
    (future,) = harness.send_batch(b"a")
    assert harness.poll() == []
    assert harness.sender.needs_metadata
    assert harness.sender.next_ms == 31_000
    harness.now_ms = 31_000
    assert harness.poll() == []
    assert isinstance(outcome(future), ClientTimeoutError)
    assert str(outcome(future)).startswith(
        "1 record for partition 0 of topic 't' was not delivered within 31 s. "
        "LEADER_NOT_AVAILABLE: the partition has no leader."
    )
    assert harness.accumulator.memory_used == 0


def test_expired_batch_names_the_last_error():
    """As on a full disk: the broker's error would otherwise be lost behind a timeout."""
    harness = ProducerHarness(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    seen = []
    harness.sender.outages.callback = lambda subject, error: seen.append((subject, error and error.name))
    (future, _) = harness.send_batch(b"a", b"b")
    for attempt in range(1, 5):
        (pending,) = harness.poll()
        harness.respond(pending, ErrorCode.KAFKA_STORAGE_ERROR, message="no space left on device")
        assert seen == ([("t-0", "KAFKA_STORAGE_ERROR")] if attempt >= 3 else [])
    harness.now_ms = 31_000
    harness.poll()
    assert str(outcome(future)) == (
        "2 records for partition 0 of topic 't' were not delivered within 31 s. "
        "KAFKA_STORAGE_ERROR (partition 0 of topic 't'): no space left on device."
    )


def test_expired_batch_names_the_outage_that_lost_its_connection():
    harness = ProducerHarness(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.sender.on_request_failed(pending, DisconnectedError("lost."), harness.now_ms)
    harness.sender.outages.begin("a:1", BrokerUnreachableError("a:1 is unreachable: refused.", advice="Look there."))
    harness.now_ms = 31_000
    harness.poll()
    assert str(outcome(future)).endswith("within 31 s. a:1 is unreachable: refused. Look there.")


def test_recovered_partition_ends_its_outage():
    harness = ProducerHarness()
    seen = []
    harness.sender.outages.callback = lambda subject, error: seen.append((subject, error and error.name))
    harness.send_batch(b"a")
    for _ in range(3):
        (pending,) = harness.poll()
        harness.respond(pending, ErrorCode.KAFKA_STORAGE_ERROR)
    (pending,) = harness.poll()
    harness.respond(pending)
    assert seen == [("t-0", "KAFKA_STORAGE_ERROR"), ("t-0", None)]
    assert harness.sender.outages.latest is None


def test_batch_that_expires_in_flight_starts_a_new_epoch():
    harness = ProducerHarness(delivery_timeout_ms=31_000, request_timeout_ms=30_000)
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.now_ms = 31_000
    harness.poll()
    assert isinstance(outcome(future), ClientTimeoutError)
    harness.sender.on_request_failed(pending, DisconnectedError("gone"), harness.now_ms)
    harness.send_batch(b"b")
    assert sequences(harness.poll()) == [(1, 0, [b"b"])]


def test_retries_are_limited():
    harness = ProducerHarness(retries=2)
    (future,) = harness.send_batch(b"a")
    for _ in range(3):
        (pending,) = harness.poll()
        assert not future.done()
        harness.respond(pending, NOT_LEADER)
    assert outcome(future).name == "NOT_LEADER_OR_FOLLOWER"
    assert harness.sender.counts["retries"] == 2
    assert harness.sender.counts["errors"] == 1


def test_retries_back_off():
    harness = ProducerHarness(retry_backoff_ms=100)
    harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.respond(pending, NOT_LEADER)
    assert harness.poll() == []
    assert harness.sender.next_ms == 80  # 100 ms minus 20 % jitter with this Rng
    harness.now_ms = 80
    assert len(harness.poll()) == 1


def test_too_large_batch_is_split():
    """The parts have its sequences, and the futures find their parts."""
    harness = ProducerHarness()
    futures = harness.send_batch(b"a" * 50, b"b" * 50, b"c" * 50, b"d" * 50)
    (later,) = harness.send_batch(b"e")
    first, second = harness.poll()
    harness.respond(first, TOO_LARGE)
    harness.respond(second, OUT_OF_ORDER)
    sent = []
    offset = 10
    while ready := harness.poll()[:1]:
        ((_, batch),) = ready[0].batches
        sent += sequences(ready)
        harness.respond(ready[0], base_offset=offset)
        offset += batch.count
    assert sent == [(0, 0, [b"a" * 50, b"b" * 50]), (0, 2, [b"c" * 50, b"d" * 50]), (0, 4, [b"e"])]
    assert [outcome(future) for future in (*futures, later)] == [10, 11, 12, 13, 14]
    assert harness.accumulator.memory_used == 0
    assert harness.accumulator.incomplete == {}


def test_too_large_record_fails():
    harness = ProducerHarness()
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.respond(pending, TOO_LARGE)
    assert isinstance(outcome(future), RecordTooLargeError)
    assert "max.message.bytes" in str(outcome(future))


def test_fenced_producer_requests_a_new_id():
    harness = ProducerHarness()
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.respond(pending, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert isinstance(outcome(future), ProducerFencedError)
    harness.send_batch(b"b")
    assert harness.poll() == []
    assert harness.sender.needs_identity
    harness.sender.identity = (8, 0)
    assert sequences(harness.poll()) == [(0, 0, [b"b"])]


def test_last_epoch_is_followed_by_a_new_id():
    harness = ProducerHarness()
    harness.sender.identity = (7, 32_767)
    harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.respond(pending, ErrorCode.UNKNOWN_PRODUCER_ID)
    assert harness.poll() == []
    assert harness.sender.needs_identity
    harness.sender.identity = (8, 0)
    (again,) = harness.poll()
    assert sequences([again]) == [(0, 0, [b"a"])]


def test_batches_without_idempotence_have_no_sequence():
    harness = ProducerHarness(enable_idempotence=False)
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    assert sequences([pending]) == [(-1, -1, [b"a"])]
    harness.respond(pending, OUT_OF_ORDER)
    assert isinstance(outcome(future), OutOfOrderSequenceError)


def test_acks_0_has_no_offsets():
    harness = ProducerHarness(acks=0)
    (future,) = harness.send_batch(b"a")
    (pending,) = harness.poll()
    harness.sender.on_sent_without_acks(pending)
    assert outcome(future) == -1


def test_waiting_batches_go_to_the_new_leader():
    harness = ProducerHarness()
    harness.send_batch(b"a")
    (pending,) = harness.poll()
    assert harness.cluster.set_leader("t", 0, 2, 1) is True
    harness.respond(pending, NOT_LEADER)
    (again,) = harness.poll()
    assert (pending.node, again.node) == (1, 2)


def test_unconnected_brokers_get_nothing():
    harness = ProducerHarness(partitions=2)
    harness.send_batch(b"a", partition=0)
    harness.send_batch(b"b", partition=1)
    assert [pending.node for pending in harness.poll(lambda node: node == 2)] == [2]


def test_fail_all_fails_remaining_records():
    harness = ProducerHarness()
    (future,) = harness.send_batch(b"a")
    harness.sender.fail_all(DisconnectedError("the end"))
    assert isinstance(outcome(future), DisconnectedError)
