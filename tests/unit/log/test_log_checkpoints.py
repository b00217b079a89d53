"""Checkpoints, partition metadata, indexes, scans and the file cache."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import uuid_text
from ottla.io.disk import RealDisk
from ottla.log import leader_epoch_cache, partition_directory
from ottla.log.batch_scan import scan_batches
from ottla.log.file_cache import FileCache
from ottla.log.leader_epoch_cache import LeaderEpochCache
from ottla.log.offset_index import MappedOffsetIndex, MutableOffsetIndex
from ottla.log.time_index import MappedTimeIndex, MutableTimeIndex
from ottla.wire.batches import iterate_batches
from tests.unit.log.log_fixtures import NOW, TOPIC_ID, append, batch, open_log, read_all


def test_partition_metadata_has_kafkas_format(tmp_path: Path) -> None:
    assert partition_directory.read_topic_id(RealDisk(), str(tmp_path)) is None
    partition_directory.write_topic_id(RealDisk(), str(tmp_path), TOPIC_ID)
    assert (tmp_path / "partition.metadata").read_text() == f"version: 0\ntopic_id: {uuid_text(TOPIC_ID)}"
    assert partition_directory.read_topic_id(RealDisk(), str(tmp_path)) == TOPIC_ID


@pytest.mark.parametrize(
    "text", ["", "version: 1\ntopic_id: MDEyMzQ1Njc4OWFiY2RlZg", "version: 0", "version: 0\ntopic_id: short"]
)
def test_partition_metadata_rejects_invalid_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(ValueError, match=r"partition\.metadata|base64"):
        partition_directory.read_topic_id(RealDisk(), str(tmp_path))


class TestLeaderEpochCache:
    def test_checkpoint_has_kafkas_format(self, tmp_path: Path) -> None:
        epochs = LeaderEpochCache([(0, 0), (4, 25)])
        assert epochs.encode() == b"0\n2\n0 0\n4 25\n"
        (tmp_path / leader_epoch_cache.FILE_NAME).write_bytes(epochs.encode())
        assert leader_epoch_cache.read_checkpoint(RealDisk(), str(tmp_path)).entries() == [(0, 0), (4, 25)]

    @pytest.mark.parametrize("text", ["", "0\n", "1\n0\n", "0\n2\n0 0\n", "0\nx\n", "0\n1\n0\n"])
    def test_checkpoint_rejects_incomplete_files(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "leader-epoch-checkpoint").write_text(text)
        with pytest.raises(ValueError):
            leader_epoch_cache.read_checkpoint(RealDisk(), str(tmp_path))

    def test_assign_removes_conflicting_entries(self) -> None:
        epochs = LeaderEpochCache()
        for epoch, start in ((0, 0), (2, 10), (2, 12), (3, 20), (5, 30)):
            epochs.assign(epoch, start)
        assert epochs.entries() == [(0, 0), (2, 10), (3, 20), (5, 30)]
        epochs.assign(4, 25)
        assert epochs.entries() == [(0, 0), (2, 10), (3, 20), (4, 25)]
        epochs.assign(6, 10)
        assert epochs.entries() == [(0, 0), (6, 10)]

    def test_end_offset_for_epoch(self) -> None:
        epochs = LeaderEpochCache([(2, 10), (4, 20), (7, 30)])
        found = {epoch: epochs.end_offset_for(epoch, 44) for epoch in (-1, 0, 2, 3, 4, 6, 7, 8)}
        assert found == {
            -1: (-1, -1),
            0: (0, 10),
            2: (2, 20),
            3: (2, 20),
            4: (4, 30),
            6: (4, 30),
            7: (7, 44),
            8: (-1, -1),
        }
        assert LeaderEpochCache().end_offset_for(0, 5) == (-1, -1)

    def test_truncate_from_both_ends(self) -> None:
        epochs = LeaderEpochCache([(2, 10), (4, 20), (7, 30)])
        epochs.truncate_from_end(30)
        assert (epochs.entries(), epochs.is_dirty) == ([(2, 10), (4, 20)], True)
        epochs.truncate_from_start(15)
        assert epochs.entries() == [(2, 15), (4, 20)]
        epochs.truncate_from_start(25)
        assert epochs.entries() == [(4, 25)]


ENTRIES = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 9000)), max_size=30)


@given(steps=ENTRIES, delta=st.integers(0, 20_000))
def test_mapped_and_mutable_offset_index_find_the_same(steps: list[tuple[int, int]], delta: int) -> None:
    mutable = MutableOffsetIndex(1000)
    offset, position, expected, last = 1000, 0, 0, None
    for more, size in steps:
        offset, position = offset + more, position + size
        mutable.append(offset, position)
        if offset <= 1000 + delta:
            expected = position
        if offset >= 1000 + delta and last is None:
            last = position
    mapped = MappedOffsetIndex(1000, memoryview(mutable.encode()))
    assert mutable.position_of(1000 + delta) == mapped.position_of(1000 + delta) == expected
    assert mutable.position_range(1000 + delta) == mapped.position_range(1000 + delta) == (expected, last)
    assert MutableOffsetIndex.decode(1000, mutable.encode()).entries() == mapped.entries() == mutable.entries()


@given(steps=ENTRIES, base=st.integers(-1, 1 << 60), delta=st.integers(0, 20_000))
def test_mapped_and_mutable_time_index_find_the_same(steps: list[tuple[int, int]], base: int, delta: int) -> None:
    mutable = MutableTimeIndex(1000)
    offset, timestamp, expected = 1000, base, 1000
    for more, later in steps:
        offset, timestamp = offset + more, timestamp + later
        mutable.maybe_append(timestamp, offset)
        mutable.maybe_append(timestamp, offset + 1)
        if timestamp <= base + delta:
            expected = offset
    mapped = MappedTimeIndex(1000, memoryview(mutable.encode()))
    assert mutable.offset_before(base + delta) == mapped.offset_before(base + delta) == expected
    assert mutable.last() == mapped.last() == ((timestamp, offset) if steps else None)
    assert MutableTimeIndex.decode(1000, mutable.encode()).entries() == mapped.entries() == mutable.entries()


class TestFileCache:
    def test_open_files_stay_within_the_limit(self, tmp_path: Path) -> None:
        files = FileCache(RealDisk(), open_files_max=3)
        logs = [open_log(tmp_path / str(n), files=files) for n in range(6)]
        for _ in range(3):
            for log in logs:
                append(log)
                assert sum(one.segments[0].file is not None for one in logs) <= 3
        assert [len(read_all(log, 0)) for log in logs] == [3] * 6

    def test_used_file_is_not_evicted(self, tmp_path: Path) -> None:
        files = FileCache(RealDisk(), open_files_max=3)
        busy, *others = [open_log(tmp_path / str(n), files=files) for n in range(6)]
        append(busy)
        file = busy.segments[0].file
        for log in others[:2]:
            append(busy)
            append(log)
        assert busy.segments[0].file is file

    def test_slice_keeps_an_evicted_file_open(self, tmp_path: Path) -> None:
        files = FileCache(RealDisk(), open_files_max=1)
        first, second = (open_log(tmp_path / name, files=files) for name in "ab")
        append(first)
        found = first.read(0, 100, limit_offset=1, min_one_message=True)
        append(second)
        assert first.segments[0].file is None
        assert found is not None
        assert found.file.read_at(0, found.size) == (tmp_path / "a" / "00000000000000000000.log").read_bytes()

    def test_index_is_unmapped_with_its_file(self, tmp_path: Path) -> None:
        """A search through all segments keeps no index mapped."""
        log = open_log(tmp_path)
        for n in range(8):
            append(log, batch(b"%d" % n, timestamp=NOW + n))
            log.roll(now_ms=NOW)
        log.close()
        log = open_log(tmp_path, files=FileCache(RealDisk(), open_files_max=3))
        assert log.offset_of_max_timestamp() == (NOW + 7, 7, 0)
        assert sum(segment.time_index is not None for segment in log.segments[:-1]) <= 1
        assert [record.value for record in read_all(log, 0)] == [b"%d" % n for n in range(8)]
        assert sum(segment.offset_index is not None for segment in log.segments[:-1]) <= 3


@given(sizes=st.lists(st.integers(0, 400), max_size=20), window=st.integers(61, 700), junk=st.binary(max_size=70))
def test_scan_is_independent_of_window_size(
    sizes: list[int], window: int, junk: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("scan") / "file"
    data = b"".join(bytes(batch(b"x" * size)) for size in sizes)
    path.write_bytes(data + b"\0" * len(junk))
    file = RealDisk().open(str(path))
    found = [
        (position, header, bytes(found))
        for position, header, found in scan_batches(file, 0, file.size(), window_bytes=window)
    ]
    assert found == [
        (position, header, data[position : position + header.size]) for position, header in iterate_batches(data)
    ]
