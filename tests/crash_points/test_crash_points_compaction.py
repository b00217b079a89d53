"""Compaction, swaps and deletion of segments, crashed in each of their calls."""

import random
from dataclasses import dataclass, field

import pytest

from ottla.log import offset_checkpoint_file
from ottla.log.compaction_plan import Cleaned
from ottla.log.compaction_segments import mark_deleted, remove_deleted_segments
from ottla.log.config import LogConfig
from ottla.log.offset_checkpoint_file import CLEAN_OFFSETS_FILE
from ottla.log.partition_log import PartitionLog
from ottla.log.retention import delete_old
from ottla.sim.disk import SimulatedDisk
from ottla.sim.log_files import check_log_files
from ottla.sim.storage import Keep
from ottla.wire.batches import Record, decode_records, read_header
from tests.crash_points.harness import explore
from tests.crash_points.log_model import DIRECTORY, PARTITION, POINTS_PATH, ROOT, LogModel, check_log, reopen
from tests.unit.log.compaction_harness import append_marker, append_records, clean
from tests.unit.log.log_fixtures import NOW, read_all, stored_batches

pytestmark = pytest.mark.timeout(240)

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, compacted=True, deletes=False, delete_retention_ms=100)
CLEAN_PATH = f"{ROOT}/{CLEAN_OFFSETS_FILE}"
KEYS = [b"k%d" % number for number in range(6)]


@dataclass
class CompactionModel:
    """A compacted log with flushed records, and the records that its readers must find."""

    log: PartitionLog
    source: random.Random
    written: dict[int, Record] = field(default_factory=dict)
    aborted: dict[int, None] = field(default_factory=dict)
    end_offset: int = 0
    clean_to: int | None = None

    def append(self, count: int) -> None:
        source = self.source
        for _ in range(count):
            first = self.log.log_end_offset
            records = [
                (source.choice(KEYS), None if source.random() < 0.2 else source.randbytes(source.randint(0, 30)))
                for _ in range(source.randint(1, 4))
            ]
            producer = source.choice((-1, 7, 8))
            is_transaction = producer == 8
            append_records(
                self.log,
                records,
                now_ms=NOW,
                codec=source.choice((0, 0, 4)),
                producer_id=producer,
                transactional=is_transaction,
                base_sequence=first if producer >= 0 else -1,
            )
            for at, (key, value) in enumerate(records):
                self.written[first + at] = Record(first + at, NOW + at, key, value)
            if is_transaction:
                outcome = source.choice(("abort", "commit"))
                append_marker(self.log, outcome, producer, now_ms=NOW)
                if outcome == "abort":
                    self.aborted.update(dict.fromkeys(range(first, first + len(records))))
        self.log.roll(now_ms=NOW)
        self.log.flush()
        self.end_offset = self.log.log_end_offset
        offset_checkpoint_file.write(
            self.log.disk, POINTS_PATH, {PARTITION: self.source.randint(0, self.log.recovery_point)}
        )  # may be stale

    def clean(self, now_ms: int) -> None:
        result = clean(self.log, self.clean_to, now_ms=now_ms)
        if result is not None:
            assert isinstance(result, Cleaned), result
            self.clean_to = result.end_offset
            offset_checkpoint_file.write(self.log.disk, CLEAN_PATH, {PARTITION: result.end_offset})


def check_compacted(disk: SimulatedDisk, state: CompactionModel) -> None:
    log = reopen(disk, config=CONFIG)
    assert log.log_end_offset == state.end_offset, (log.log_end_offset, state.end_offset)
    check_readers(log, state)
    names = disk.list(DIRECTORY)
    assert not [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))], names
    # Another run has the result of an undisturbed one.
    state.log, state.clean_to = log, offset_checkpoint_file.read(disk, CLEAN_PATH).get(PARTITION)
    state.clean(NOW + 50)
    check_readers(log, state)
    log.close()
    assert check_log_files(disk.storage.files()) == []


def check_readers(log: PartitionLog, state: CompactionModel) -> None:
    aborted = [entry for segment in log.segments for entry in segment.aborted_transactions()]
    found: dict[int, Record] = {}
    for batch in stored_batches(log):
        header = read_header(batch)
        is_aborted = any(
            entry.producer_id == header.producer_id and entry.first_offset <= header.base_offset < entry.last_offset
            for entry in aborted
        )
        if not header.is_control and not is_aborted:
            found |= {record.offset: record for record in decode_records(batch)}
    latest: dict[bytes | None, Record] = {}
    expected: dict[bytes | None, Record] = {}
    for offset, record in sorted(found.items()):
        assert record == state.written[offset]
        assert offset not in state.aborted
        latest[record.key] = record
    for offset, record in sorted(state.written.items()):
        if offset not in state.aborted:
            expected[record.key] = record
    for key, record in expected.items():
        if record.value is None:
            assert latest.get(key, record).value is None, f"{key!r} reappeared"
        else:
            assert latest.get(key) == record, f"latest record of {key!r}"
    offsets = [record.offset for record in read_all(log, log.log_start_offset)]
    assert offsets == sorted(offsets)


class Compactions:
    """Two cleaner runs with appends in between. The second removes tombstones."""

    name = "compactions"

    def prepare(self, disk: SimulatedDisk, source: random.Random) -> CompactionModel:
        state = CompactionModel(reopen(disk, config=CONFIG), source)
        state.append(9)
        return state

    def run(self, disk: SimulatedDisk, state: CompactionModel) -> None:
        state.clean(NOW)
        state.append(2)
        state.clean(NOW + 1000)

    def check(self, disk: SimulatedDisk, state: CompactionModel, keep: Keep) -> None:
        # The batch that was being written when the process died may exist or not: only earlier appends are checked.
        if state.log.log_end_offset != state.end_offset:
            state = CompactionModel(
                state.log, state.source, state.written, state.aborted, state.end_offset, state.clean_to
            )
            log = reopen(disk, config=CONFIG)
            assert log.log_end_offset >= state.end_offset
            check_readers_up_to_crash(log, state)
            return
        check_compacted(disk, state)


def check_readers_up_to_crash(log: PartitionLog, state: CompactionModel) -> None:
    """Check a log that crashed during an append: stored records are unchanged."""
    for batch in stored_batches(log):
        if not read_header(batch).is_control:
            for record in decode_records(batch):
                assert record == state.written.get(record.offset, record)


def test_compacted_log_is_consistent_after_a_crash_at_any_point(sim_seed: int) -> None:
    assert explore(Compactions(), sim_seed, power_cuts=2) > 100


class Deletions:
    """Segments above retention.bytes are deleted."""

    name = "deletions"
    config = LogConfig(segment_bytes=600, index_interval_bytes=150, retention_bytes=1500, retention_ms=-1)

    def prepare(self, disk: SimulatedDisk, source: random.Random) -> LogModel:
        state = LogModel(reopen(disk, config=self.config), source)
        for _ in range(20):
            state.append()
        state.flush()
        state.checkpoint()
        return state

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for _ in range(2):
            segments = delete_old(state.log, high_watermark=state.log.log_end_offset, now_ms=NOW)
            assert segments
            state.advance_start(state.log.log_start_offset)
            for segment in segments:
                mark_deleted(segment)
            remove_deleted_segments(segments)
            for _ in range(8):
                state.append()
            state.flush()

    def check(self, disk: SimulatedDisk, state: LogModel, keep: Keep) -> None:
        check_log(disk, state, keep)


def test_deletion_is_consistent_after_a_crash_at_any_point(sim_seed: int) -> None:
    assert explore(Deletions(), sim_seed, power_cuts=3) > 100
