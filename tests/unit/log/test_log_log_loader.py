"""Loading after a crash: complete batches stay, a torn tail is truncated, and rebuilt state equals the original."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.io.disk import RealDisk
from ottla.log import offset_index, time_index
from ottla.log.config import LogConfig
from ottla.log.log_loader import RecoveryInterrupted, ScanProgress, load
from ottla.log.partition_log import PartitionLog
from ottla.sim.disk import SimulatedDisk
from ottla.wire.batches import read_header
from tests.unit.log.log_fixtures import (
    NOW,
    append,
    batch,
    index_entries,
    open_log,
    read_all,
    stored_batches,
    stored_records,
)

LAST = "00000000000000000030.log"


def filled(directory: Path, count: int = 60, *, roll_at: int | None = 30, **configs: object) -> PartitionLog:
    log = open_log(directory, **configs)
    for n in range(count):
        if n == roll_at:
            log.roll(now_ms=NOW)
        sent = batch(
            b"x" * (n * 7 % 40), timestamp=NOW + n * 31 % 17, producer_id=n % 3, producer_epoch=0, base_sequence=n // 3
        )
        append(log, sent, leader_epoch=n // 25)
    if count == roll_at:
        log.roll(now_ms=NOW)
    return log


def test_recovery_of_a_last_segment_truncated_at_every_position(tmp_path: Path) -> None:
    log = filled(tmp_path / "log", 42, index_interval_bytes=200)
    log.flush()
    batches = stored_batches(log)
    ends = [sum(map(len, batches[30:n])) for n in range(30, 43)]
    reference: dict[int, object] = {}
    log.release_files()
    directory = tmp_path / "log"
    last = (directory / LAST).read_bytes()
    for length in range(len(last) + 1):
        (directory / LAST).write_bytes(last[:length])
        count = sum(end <= length for end in ends[1:])
        opened = open_log(directory, clean=False, index_interval_bytes=200)
        assert opened.log_end_offset == 30 + count
        assert (directory / LAST).stat().st_size == ends[count]
        found = (index_entries(opened), opened.epochs.entries(), producers_of(opened))
        if count not in reference:
            expected = filled(tmp_path / f"expected-{count}", 30 + count, index_interval_bytes=200)
            expected.flush()
            assert stored_batches(opened) == batches[: 30 + count]
            reference[count] = (
                index_entries(expected),
                expected.epochs.entries(),
                producers_of(expected, last_only=30),
            )
        assert found == reference[count]
        opened.release_files()


def producers_of(log: PartitionLog, last_only: int = 0) -> dict[int, object]:
    """Before offset `last_only`, include only the last batch of each producer, as a snapshot does."""
    found: dict[int, object] = {}
    for producer_id in range(3):
        producer = log.producers.get(producer_id)
        assert producer is not None
        batches = producer.batches
        old = [one for one in batches if one[2] < last_only]
        if last_only and len(old) > 1:
            batches = old[-1:] + [one for one in batches if one[2] >= last_only]
        found[producer_id] = (producer.epoch, batches[-5:])
    return found


@settings(deadline=None, max_examples=60)
@given(fraction=st.floats(0, 1), bit=st.integers(0, 7))
def test_corrupt_batch_and_later_ones_are_truncated(
    fraction: float, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("log")
    log = filled(directory, 20, roll_at=None)
    log.flush()
    batches = stored_batches(log)
    log.release_files()
    path = directory / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    at = int(fraction * (len(data) - 1))
    data[at] ^= 1 << bit
    path.write_bytes(data)
    opened = open_log(directory, clean=False)
    intact = next(n for n in range(21) if sum(map(len, batches[: n + 1])) > at)
    start = sum(map(len, batches[:intact]))
    if 12 <= at - start < 16 or (at - start < 8 and opened.log_end_offset > intact):
        return  # the checksum covers neither leader epoch nor offset, so any higher offset is valid
    assert opened.log_end_offset == intact
    assert stored_batches(opened) == batches[:intact]


@pytest.mark.parametrize("offset", [0, 3, 4])
def test_batch_with_a_decreasing_offset_is_truncated(tmp_path: Path, offset: int) -> None:
    """The checksum does not cover the offset."""
    log = filled(tmp_path, 10, roll_at=None)
    log.flush()
    start = sum(map(len, stored_batches(log)[:5]))
    log.release_files()
    with open(tmp_path / "00000000000000000000.log", "r+b") as file:
        file.seek(start)
        file.write(offset.to_bytes(8, "big"))
    assert open_log(tmp_path, clean=False).log_end_offset == 5


def test_rebuilt_indexes_equal_the_original_ones(tmp_path: Path) -> None:
    log = filled(tmp_path, 200, roll_at=None, index_interval_bytes=300)
    log.flush()
    expected = index_entries(log)
    log.release_files()
    assert len(expected[0][0]) > 20
    assert index_entries(open_log(tmp_path, clean=False, index_interval_bytes=300)) == expected


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("base", [0, 30])
def test_missing_index_is_rebuilt(tmp_path: Path, suffix: str, clean: bool, base: int) -> None:
    filled(tmp_path, index_interval_bytes=200).close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / f"{base:020d}{suffix}").unlink()
    open_log(tmp_path, clean=clean, index_interval_bytes=200).close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "corruption", [lambda data: data + b"\0", lambda data: data[:-3], lambda data: data[:-4] + b"\x7f\xff\xff\xff"]
)
def test_invalid_index_is_rebuilt_after_a_crash(tmp_path: Path, corruption: object) -> None:
    filled(tmp_path, index_interval_bytes=200).close()
    path = tmp_path / "00000000000000000000.index"
    before = path.read_bytes()
    path.write_bytes(corruption(before))  # type: ignore[operator]
    open_log(tmp_path, clean=False, index_interval_bytes=200).close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("clean", [True, False])
def test_index_files_with_zero_padding_are_read(tmp_path: Path, clean: bool) -> None:
    """Apache Kafka preallocates 10 MB for each index of the active segment."""
    log = filled(tmp_path, index_interval_bytes=200)
    log.flush()
    expected = index_entries(log)
    log.close()
    for suffix, size in ((".index", 10_485_760), (".timeindex", 10_485_756)):
        with open(tmp_path / f"{30:020d}{suffix}", "r+b") as file:
            file.truncate(size)
    opened = open_log(tmp_path, clean=clean, index_interval_bytes=200)
    assert opened.segments[-1].offsets().entries() == expected[-1][0]
    assert opened.segments[-1].times().entries()[: len(expected[-1][1])] == expected[-1][1]
    assert append(opened) == 60
    assert len(read_all(opened, 0)) == 61


@pytest.mark.parametrize("more", [1, 40])
def test_stale_index_files_of_an_earlier_stop_are_rebuilt(tmp_path: Path, more: int) -> None:
    """The segment was active then, was appended to and closed, and the crash came before its indexes were written."""
    filled(tmp_path, 10, roll_at=None, index_interval_bytes=200).close()
    log = open_log(tmp_path, index_interval_bytes=200)
    for n in range(more):
        append(log, batch(timestamp=NOW + 1000 + n))
    log.roll(now_ms=NOW)
    append(log)
    log.release_files()
    opened = open_log(tmp_path, clean=False, index_interval_bytes=200)
    assert opened.offset_of_max_timestamp() == (NOW + 1000 + more - 1, 9 + more, 0)
    assert opened.offset_for_timestamp(NOW + 1000) == (NOW + 1000, 10, 0)
    assert len(index_entries(opened)[0][0]) == (10 + more) // 3


def test_torn_tail_is_detected_after_a_clean_stop(tmp_path: Path) -> None:
    filled(tmp_path, index_interval_bytes=200).close()
    with open(tmp_path / LAST, "ab") as file:
        file.write(b"torn" * 30)
    opened = open_log(tmp_path, clean=True, index_interval_bytes=200)
    assert (opened.log_end_offset, len(stored_records(opened))) == (60, 60)


def test_leftover_files_are_removed(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000007.log.cleaned",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000099.index",
        "00000000000000000099.timeindex",
    ):
        (tmp_path / name).write_bytes(b"x")
    before = sorted(path.name for path in tmp_path.iterdir())
    open_log(tmp_path).close()
    after = sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in before if name not in after] == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000007.log.cleaned",
        "00000000000000000099.index",
        "00000000000000000099.timeindex",
        "leader-epoch-checkpoint.tmp",
    ]


def test_missing_epochs_are_restored_from_the_batches(tmp_path: Path) -> None:
    log = filled(tmp_path, roll_at=30)
    expected = log.epochs.entries()
    log.release_files()
    assert expected == [(0, 0), (1, 25), (2, 50)]
    assert not (tmp_path / "leader-epoch-checkpoint").exists()
    assert open_log(tmp_path, clean=False).epochs.entries() == expected


def test_epochs_after_the_log_end_offset_are_removed(tmp_path: Path) -> None:
    filled(tmp_path, roll_at=30).close()
    with open(tmp_path / LAST, "r+b") as file:
        file.truncate(0)
    opened = open_log(tmp_path, clean=False)
    assert (opened.log_end_offset, opened.epochs.entries()) == (30, [(0, 0), (1, 25)])


def test_corrupt_and_future_snapshots_are_ignored(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for item in log.drain_unflushed():
        item.flush()
    log.release_files()
    future, corrupt = tmp_path / f"{70:020d}.snapshot", tmp_path / f"{45:020d}.snapshot"
    future.write_bytes((tmp_path / f"{30:020d}.snapshot").read_bytes())
    corrupt.write_bytes(b"\0\1" + bytes(40))
    opened = open_log(tmp_path, clean=False)
    assert producers_of(opened) == producers_of(log, last_only=30)
    assert not future.exists()


def test_producer_state_is_rebuilt_without_a_snapshot(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.release_files()
    assert producers_of(open_log(tmp_path, clean=False)) == producers_of(log)


def test_torn_unflushed_segment_ends_the_log(tmp_path: Path) -> None:
    filled(tmp_path).flush()
    path = tmp_path / "00000000000000000000.log"
    data = path.read_bytes()
    path.write_bytes(data[:500])
    count = len(stored_prefix(data[:500]))
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    trusted = open_log(tmp_path.parent / "copy", clean=False, recovery_point=30)
    assert trusted.log_end_offset == 60, "flushed segments are not scanned"
    opened = open_log(tmp_path, clean=False, recovery_point=10)
    assert (opened.log_end_offset, len(opened.segments)) == (count, 1)
    assert not (tmp_path / LAST).exists()


def stored_prefix(data: bytes) -> list[int]:
    offsets = []
    while len(data) >= 61 and len(data) >= read_header(data).size:
        offsets.append(read_header(data).base_offset)
        data = data[read_header(data).size :]
    return offsets


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_flushed_records_survive_a_power_failure(data: st.DataObject) -> None:
    import random

    source = random.Random(data.draw(st.integers(0, 1 << 32)))
    disk = SimulatedDisk(source=source, cold_reads=0)
    disk.make_directories("/data")
    disk.fsync_directory("/")
    log = open_log("/data/t-0", disk=disk, segment_bytes=400, index_interval_bytes=100)
    flushed = 0
    written: list[bytes] = []
    for step in data.draw(st.lists(st.sampled_from(["append"] * 6 + ["flush", "background"]), min_size=1, max_size=40)):
        match step:
            case "append":
                append(log, batch(b"x" * (len(written) % 50)))
                written.append(b"x" * (len(written) % 50))
            case "flush":
                log.flush()
                flushed = log.log_end_offset
            case "background":
                for item in log.drain_unflushed():
                    item.flush()
                flushed = max(flushed, log.segments[-1].base_offset)
    disk.crash("flushed")
    disk = SimulatedDisk(disk.storage, source=source, cold_reads=0)
    opened = open_log(
        "/data/t-0", disk=disk, segment_bytes=400, index_interval_bytes=100, clean=False, recovery_point=flushed
    )
    assert flushed <= opened.log_end_offset <= len(written)
    assert [record.value for record in read_all(opened, 0)] == written[: opened.log_end_offset]
    assert append(opened) == opened.log_end_offset - 1


def test_log_opens_after_a_crash_at_any_disk_operation_of_close() -> None:
    """Includes crashes while closing, rolling and writing checkpoints."""
    changes = 1
    while True:
        disk = SimulatedDisk(cold_reads=0)
        log = open_log("/data/t-0", disk=disk, segment_bytes=300)
        for n in range(7):
            append(log, batch(b"%d" % n))
        disk.crash_in(changes, disk.crash)
        try:
            append(log, batch(b"7"))
            append(log, batch(b"8"))
            log.close()
        except BaseException:  # the simulated crash is not an Exception
            if disk.process.is_alive:
                raise
        else:
            assert changes > 10
            return
        disk = SimulatedDisk(disk.storage, cold_reads=0)
        opened = open_log("/data/t-0", disk=disk, segment_bytes=300, clean=False)
        assert 7 <= opened.log_end_offset <= 9
        assert [record.value for record in read_all(opened, 0)] == [b"%d" % n for n in range(opened.log_end_offset)]
        changes += 1


def test_interrupted_recovery_has_no_effect(tmp_path: Path) -> None:
    log = filled(tmp_path, index_interval_bytes=200)
    log.flush()
    before, expected = stored_batches(log), index_entries(log)
    log.release_files()
    with open(tmp_path / LAST, "ab") as file:
        file.write(b"torn")
    calls = 0

    def is_stopping() -> bool:
        nonlocal calls
        calls += 1
        return calls > 12

    with pytest.raises(RecoveryInterrupted):
        load(
            RealDisk(),
            str(tmp_path),
            config=LogConfig(index_interval_bytes=200),
            now_ms=NOW,
            clean=False,
            recovery_point=0,
            progress=ScanProgress(is_stopping),
        )
    assert (tmp_path / LAST).read_bytes().endswith(b"torn"), "the recovery had not reached it"
    opened = open_log(tmp_path, clean=False, recovery_point=0, index_interval_bytes=200)
    assert (stored_batches(opened), opened.segments[-1].offsets().entries(), opened.truncated_bytes) == (
        before,
        expected[-1][0],
        4,
    )


def test_count_valid_excludes_zero_padding() -> None:
    offsets = offset_index.MutableOffsetIndex(100)
    times = time_index.MutableTimeIndex(100)
    for n in range(1, 6):
        offsets.append(100 + n, n * 4100)
        times.maybe_append(n * 10, 100 + n)
    for zeros in (0, 8, 80, 8000):
        assert (
            offset_index.MutableOffsetIndex.decode(100, offsets.encode() + bytes(zeros)).entries() == offsets.entries()
        )
        assert (
            offset_index.MappedOffsetIndex(100, memoryview(offsets.encode() + bytes(zeros))).entries()
            == offsets.entries()
        )
    for zeros in (0, 12, 120, 12000):
        assert time_index.MutableTimeIndex.decode(100, times.encode() + bytes(zeros)).entries() == times.entries()
        assert time_index.MappedTimeIndex(100, memoryview(times.encode() + bytes(zeros))).entries() == times.entries()
    assert offset_index.count_valid(bytes(800)) == 0
    assert time_index.count_valid(bytes(1200)) == 0
    assert time_index.count_valid(bytes(12)) == 1


def test_log_opens_on_a_real_disk(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert RealDisk().read(log.segments[0].log_path) == b"".join(stored_batches(log)[:30])
