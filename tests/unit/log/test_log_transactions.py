"""Transaction indexes: written with segments, loaded after a clean stop, rebuilt from batches after a crash."""

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log import transaction_index
from ottla.log.partition_log import PartitionLog
from ottla.log.transaction_index import AbortedTransaction, read_marker
from ottla.sim.disk import SimulatedDisk
from ottla.wire.batches import Record, build_batch, read_header
from tests.unit.log.log_fixtures import NOW, index_entries, open_log, stored_batches

MARKERS = {"abort": 0, "commit": 1}


def data(log: PartitionLog, producer_id: int, sequence: int, *, count: int = 1) -> None:
    records = [Record(timestamp=NOW, value=b"v")] * count
    log.append_preassigned(
        build_batch(
            records,
            base_offset=log.log_end_offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            leader_epoch=0,
            is_transactional=True,
        ),
        now_ms=NOW,
    )


def mark(log: PartitionLog, producer_id: int, outcome: str, *, coordinator_epoch: int = 3) -> None:
    """Append a transaction marker, as a coordinator does."""
    record = Record(
        timestamp=NOW, key=struct.pack(">hh", 0, MARKERS[outcome]), value=struct.pack(">hi", 0, coordinator_epoch)
    )
    log.append_preassigned(
        build_batch(
            [record],
            base_offset=log.log_end_offset,
            producer_id=producer_id,
            producer_epoch=0,
            leader_epoch=max(log.epochs.latest, 0),
            is_transactional=True,
            is_control=True,
        ),
        now_ms=NOW,
    )


def filled(log: PartitionLog) -> PartitionLog:
    """Append three transactions in two segments: one committed and two aborted, which overlap."""
    data(log, 1, 0, count=2)  # 0, 1
    data(log, 2, 0)  # 2
    mark(log, 1, "abort")  # 3
    data(log, 1, 2)  # 4
    log.roll(now_ms=NOW)
    mark(log, 2, "abort")  # 5
    mark(log, 1, "commit")  # 6
    return log


EXPECTED = [[AbortedTransaction(1, 0, 3, 2)], [AbortedTransaction(2, 2, 5, 4)]]


def aborted(log: PartitionLog) -> list[list[AbortedTransaction]]:
    return [segment.aborted_transactions() for segment in log.segments]


def test_aborted_transaction_is_in_the_index_of_the_segment_with_its_marker(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path))
    assert aborted(log) == EXPECTED
    log.close()
    assert (tmp_path / f"{0:020d}.txnindex").read_bytes() == struct.pack(">hqqqq", 0, 1, 0, 3, 2)
    assert (tmp_path / f"{5:020d}.txnindex").read_bytes() == struct.pack(">hqqqq", 0, 2, 2, 5, 4)


@pytest.mark.parametrize("clean", [True, False])
def test_transaction_index_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    filled(open_log(tmp_path)).close()
    log = open_log(tmp_path, clean=clean, recovery_point=0)
    assert aborted(log) == EXPECTED
    data(log, 7, 0)
    mark(log, 7, "abort")
    assert aborted(log)[-1] == [*EXPECTED[1], AbortedTransaction(7, 7, 8, 9)]


@pytest.mark.parametrize("corruption", ["missing", "torn", "wrong"])
def test_transaction_index_is_rebuilt_after_a_crash(tmp_path: Path, corruption: str) -> None:
    filled(open_log(tmp_path)).close()
    path = tmp_path / f"{0:020d}.txnindex"
    if corruption == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] if corruption == "torn" else b"\1" * 34)
    assert aborted(open_log(tmp_path, clean=False, recovery_point=0 if corruption == "missing" else 6)) == EXPECTED


def test_open_transaction_survives_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data(log, 1, 0)
    data(log, 2, 0)
    mark(log, 1, "commit", coordinator_epoch=5)
    log.release_files()
    log = open_log(tmp_path, clean=False, recovery_point=0)
    one, other = log.producers.get(1), log.producers.get(2)
    assert one is not None
    assert other is not None
    assert (one.transaction_first_offset, one.coordinator_epoch) == (-1, 5)
    assert other.transaction_first_offset == 1
    assert log.producers.first_unstable_offset(log.log_end_offset) == 1
    log.close()
    log = open_log(tmp_path)
    assert log.producers.first_unstable_offset(log.log_end_offset) == 1


def test_marker_without_a_transaction_is_ignored(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    mark(log, 9, "abort")
    log.close()
    assert aborted(log) == [[]]
    assert not list(tmp_path.glob("*.txnindex"))


def test_other_control_batches_are_not_markers() -> None:
    leader_change = Record(timestamp=NOW, key=struct.pack(">hh", 0, 2), value=b"\0" * 10)
    assert read_marker(build_batch([leader_change], is_control=True)) is None
    assert read_marker(build_batch([Record(timestamp=NOW, key=None, value=b"")], is_control=True)) is None


@pytest.mark.parametrize(
    "text",
    [
        b"\0" * 33,
        struct.pack(">hqqqq", 1, 1, 0, 3, 2),
        struct.pack(">hqqqq", 0, 1, 4, 3, 2),
        struct.pack(">hqqqq", 0, 1, 0, 3, 2) * 2,
    ],
)
def test_corrupt_transaction_index_is_rejected(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"f\.txnindex"):
        transaction_index.decode(text, "f.txnindex")


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 1 << 32), at=st.floats(0, 1))
def test_recovered_state_equals_the_original(seed: int, at: float) -> None:
    """Indexes, epochs and producers of a log with all types of batches, from any recovery point (invariant 25)."""
    source = random.Random(seed)
    disk = SimulatedDisk(source=source, cold_reads=0)
    log = open_log("/data/t-0", disk=disk, segment_bytes=2500, index_interval_bytes=200)
    sequences: dict[int, int] = {}
    epoch = 0
    for _ in range(source.randint(1, 120)):
        epoch += source.random() < 0.05
        producer = source.choice((-1, 1, 2, 3))
        is_open = (
            producer > 0 and (known := log.producers.get(producer)) is not None and known.transaction_first_offset >= 0
        )
        if is_open and source.random() < 0.3:
            mark(log, producer, source.choice(("abort", "commit")), coordinator_epoch=source.randint(0, 3))
            continue
        count = source.randint(1, 4)
        records = [
            Record(timestamp=NOW + source.randint(-20, 200), value=b"x" * source.randint(0, 60)) for _ in range(count)
        ]
        first = sequences.get(producer, 0)
        log.append_preassigned(
            build_batch(
                records,
                base_offset=log.log_end_offset,
                leader_epoch=epoch,
                producer_id=producer,
                producer_epoch=0 if producer > 0 else -1,
                base_sequence=first if producer > 0 else -1,
                is_transactional=producer > 0 and source.random() < 0.7,
            ),
            now_ms=NOW,
        )
        sequences[producer] = first + count
    point = int(at * log.log_end_offset)
    while (plan := log.plan_flush(to_end=False)) is not None:
        plan.run()
        log.on_flushed(plan)
    expected = state(log)
    log.release_files()
    for snapshots in (True, False):
        if not snapshots:
            for name in disk.list("/data/t-0"):
                if not name.endswith(".log") and name != "partition.metadata":
                    disk.remove(f"/data/t-0/{name}")
        opened = open_log(
            "/data/t-0",
            disk=disk,
            clean=False,
            recovery_point=point if snapshots else 0,
            segment_bytes=2500,
            index_interval_bytes=200,
        )
        assert state(opened) == expected
        opened.release_files()


def state(log: PartitionLog) -> object:
    """Without the timestamp of a producer's last batch: a snapshot has one timestamp, which may be a later marker's."""
    producers = {
        producer_id: (
            producer.epoch,
            [one[:4] for one in producer.batches[-1:]],
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
        )
        for producer_id, producer in log.producers.items()
    }
    offsets = [read_header(batch).base_offset for batch in stored_batches(log)]
    return offsets, index_entries(log), aborted(log), log.epochs.entries(), producers, log.log_end_offset
