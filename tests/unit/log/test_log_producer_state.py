"""Sequences of idempotent producers. The expected results were recorded from Apache Kafka 4.3."""

from pathlib import Path

import pytest

from ottla.log.partition_log import BatchRejected, PartitionLog
from ottla.log.producer_state import ProducerStateManager
from ottla.wire.batches import Record, build_batch, read_header
from tests.unit.log.log_fixtures import NOW, batch, open_log, stored_batches

LAST_SEQUENCE = (1 << 31) - 1
OUT_OF_ORDER, OLD_EPOCH = 45, 47


def send(
    log: PartitionLog, producer_id: int, epoch: int, sequence: int, count: int = 1, timestamp: int = NOW
) -> tuple[int, int] | int:
    """Return base offset and timestamp, or the error code."""
    sent = batch(
        *[b"v"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, timestamp=timestamp
    )
    try:
        return log.append(sent, leader_epoch=0, now_ms=NOW)
    except BatchRejected as rejected:
        return rejected.code


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_log(tmp_path)


def test_duplicate_gets_the_original_offset_and_timestamp(log: PartitionLog) -> None:
    assert send(log, 1, 0, 0, timestamp=NOW - 5) == (0, -1)
    assert send(log, 1, 0, 0, timestamp=NOW) == (0, NOW - 5)
    assert log.log_end_offset == 1


def test_last_five_batches_are_recognized_as_duplicates(log: PartitionLog) -> None:
    """KAFKA-5494: any of the five batches in flight may be retried, in any order."""
    for n in range(8):
        assert send(log, 1, 0, n) == (n, -1)
    assert [send(log, 1, 0, n) for n in range(8)] == [OUT_OF_ORDER] * 3 + [(n, NOW) for n in range(3, 8)]
    assert [send(log, 1, 0, n) for n in (7, 5, 3, 4, 6)] == [(n, NOW) for n in (7, 5, 3, 4, 6)]
    assert send(log, 1, 0, 8) == (8, -1)


def test_duplicate_must_match_the_complete_batch(log: PartitionLog) -> None:
    for n in range(5):
        assert send(log, 7, 0, n * 3, 3) == (n * 3, -1)
    assert [send(log, 7, 0, n * 3, 3) for n in (4, 2, 0, 1, 3)] == [(n * 3, NOW) for n in (4, 2, 0, 1, 3)]
    assert send(log, 7, 0, 12, 2) == OUT_OF_ORDER
    assert send(log, 7, 0, 13, 3) == OUT_OF_ORDER


def test_sequence_gap_is_out_of_order(log: PartitionLog) -> None:
    assert [send(log, 1, 0, 0), send(log, 1, 0, 2), send(log, 1, 0, 1)] == [(0, -1), OUT_OF_ORDER, (1, -1)]


def test_new_epoch_starts_at_sequence_zero_and_fences_the_old_one(log: PartitionLog) -> None:
    assert [
        send(log, 1, 0, 0),
        send(log, 1, 1, 1),
        send(log, 1, 1, 0),
        send(log, 1, 0, 1),
        send(log, 1, 0, 0),
        send(log, 1, 1, 1),
    ] == [(0, -1), OUT_OF_ORDER, (1, -1), OLD_EPOCH, OLD_EPOCH, (2, -1)]


def test_sequences_wrap_around(log: PartitionLog) -> None:
    assert [
        send(log, 2, 0, LAST_SEQUENCE - 1),
        send(log, 2, 0, LAST_SEQUENCE),
        send(log, 2, 0, 0),
        send(log, 2, 0, LAST_SEQUENCE),
    ] == [(0, -1), (1, -1), (2, -1), (1, NOW)]


def test_sequences_wrap_around_within_a_batch(log: PartitionLog) -> None:
    assert [send(log, 2, 0, LAST_SEQUENCE - 1, 4), send(log, 2, 0, 2), send(log, 2, 0, LAST_SEQUENCE - 1, 4)] == [
        (0, -1),
        (4, -1),
        (0, NOW),
    ]


def test_unknown_producer_may_start_at_any_sequence(log: PartitionLog) -> None:
    assert [send(log, 4, 0, 5), send(log, 4, 0, 6), send(log, 4, 0, 5), send(log, 5, 3, 9), send(log, 5, 4, 10)] == [
        (0, -1),
        (1, -1),
        (0, NOW),
        (2, -1),
        OUT_OF_ORDER,
    ]


def test_producer_without_an_epoch(log: PartitionLog) -> None:
    assert [
        send(log, 3, epoch, sequence) for epoch, sequence in ((-1, 0), (-1, 1), (-1, 1), (-1, 7), (0, 0), (-1, 2))
    ] == [(0, -1), (1, -1), (1, NOW), (2, -1), (3, -1), OLD_EPOCH]
    assert send(log, 9, -2, 0) == OLD_EPOCH


def test_corrupt_batch_is_rejected_before_duplicate_detection(log: PartitionLog) -> None:
    send(log, 1, 0, 0)
    torn = build_batch([Record(timestamp=NOW, value=b"v")], producer_id=1, producer_epoch=0, base_sequence=0)
    torn[-1] ^= 1
    with pytest.raises(BatchRejected) as rejected:
        log.append(memoryview(torn), leader_epoch=0, now_ms=NOW)
    assert rejected.value.code == 2


@pytest.mark.parametrize("clean", [True, False])
def test_producer_state_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path)
    for n in range(7):
        send(log, 1, 0, n)
    log.close() if clean else log.release_files()
    opened = open_log(tmp_path, clean=clean)
    assert send(opened, 1, 0, 6) == (6, NOW)
    assert send(opened, 1, 0, 5) == (OUT_OF_ORDER if clean else (5, NOW)), "a snapshot contains the last batch only"
    assert send(opened, 1, 0, 7) == (7, -1)


def test_duplicate_of_a_recompressed_batch_is_recognized(tmp_path: Path) -> None:
    from ottla.log.config import Compression

    log = open_log(tmp_path, compression=Compression.ZSTD)
    assert [send(log, 1, 0, 0, 2), send(log, 1, 0, 0, 2), send(log, 1, 0, 2)] == [(0, -1), (0, NOW), (2, -1)]
    assert [read_header(stored).base_sequence for stored in stored_batches(log)] == [0, 2]


def test_snapshot_round_trip() -> None:
    producers = ProducerStateManager()
    producers.add_batch(5, 2, 10, 3, 100, NOW)
    producers.add_batch(5, 2, 13, 1, 103, NOW + 1)
    producers.add_batch(9, 0, LAST_SEQUENCE, 4, 200, NOW + 2)
    found = ProducerStateManager()
    found.restore(producers.encode())
    five, nine = found.get(5), found.get(9)
    assert five is not None
    assert nine is not None
    assert (five.epoch, five.batches, nine.batches) == (
        2,
        [(13, 13, 103, 103, NOW + 1)],
        [(LAST_SEQUENCE, 2, 200, 203, NOW + 2)],
    )
    assert found.encode() == producers.encode()


@pytest.mark.parametrize(
    "corruption",
    [
        lambda d: d[:-1],
        lambda d: d[:3],
        lambda d: b"\0\2" + d[2:],
        lambda d: d[:20] + b"\7" + d[21:],
        lambda d: d + b"\0",
    ],
)
def test_corrupt_snapshot_is_rejected(corruption: object) -> None:
    producers = ProducerStateManager()
    producers.add_batch(5, 2, 10, 3, 100, NOW)
    with pytest.raises(ValueError, match="producer snapshot"):
        ProducerStateManager().restore(corruption(producers.encode()))  # type: ignore[operator]


def test_idle_producers_expire() -> None:
    producers = ProducerStateManager()
    for producer_id, timestamp in ((1, 0), (2, 500), (3, 999)):
        producers.add_batch(producer_id, 0, 0, 1, producer_id, timestamp)
    assert (producers.expire(1500, 1000), sorted(p for p in (1, 2, 3) if producers.get(p))) == (2, [3])


def test_number_of_producers_is_limited() -> None:
    """The idlest eighth is removed at once."""
    producers = ProducerStateManager(producers_max=16)
    for producer_id in range(16):
        producers.add_batch(producer_id, 0, 0, 1, producer_id, 1000 - producer_id)
    producers.add_batch(99, 0, 0, 1, 99, 2000)
    assert [producer_id for producer_id in range(16) if producers.get(producer_id) is None] == [14, 15]
    assert len(producers) == 15
