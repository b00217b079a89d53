"""Model of a log and its guarantees: the state of scenarios on one partition, and the checks after any crash."""

import random
from dataclasses import dataclass, field
from struct import pack

from ottla.log import offset_checkpoint_file
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import ProducerStateEntry
from ottla.sim.disk import SimulatedDisk
from ottla.sim.log_files import check_log_files
from ottla.sim.storage import Keep
from ottla.wire.batches import Record, build_batch, read_header
from tests.unit.log.log_fixtures import NOW, TOPIC_ID, index_entries, read_all, stored_batches

ROOT = "/data"
DIRECTORY = f"{ROOT}/t-0"
PARTITION = ("t", 0)
POINTS_PATH = f"{ROOT}/{offset_checkpoint_file.RECOVERY_POINTS_FILE}"
STARTS_PATH = f"{ROOT}/{offset_checkpoint_file.START_OFFSETS_FILE}"
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


@dataclass
class LogModel:
    """A log and its guaranteed records: all appended after a kill, all flushed after a power failure, no others."""

    log: PartitionLog
    source: random.Random
    sent: list[bytes] = field(default_factory=list)
    """The value at each offset, including those of a write during which the process died."""
    appended_end: int = 0
    flushed_end: int = 0
    start_offset: int = 0
    sequences: dict[int, int] = field(default_factory=dict)
    compacted: dict[int, None] = field(default_factory=dict)
    """Offsets whose records compaction has removed."""

    def expected_records(self, start_offset: int, end_offset: int) -> list[tuple[int, bytes]]:
        """Return the records that a reader finds between two offsets."""
        return [
            (offset, self.sent[offset]) for offset in range(start_offset, end_offset) if offset not in self.compacted
        ]

    def append(self, *, leader_epoch: int = 0) -> None:
        source = self.source
        values = [
            b"%d " % (len(self.sent) + at) + source.randbytes(source.randint(0, 60))
            for at in range(source.randint(1, 3))
        ]
        producer = source.choice((-1, 7, 8))
        first = self.sequences.get(producer, 0) if producer >= 0 else -1
        records = [Record(timestamp=NOW + source.randint(0, 50), value=value) for value in values]
        batch = build_batch(
            records, producer_id=producer, producer_epoch=0 if producer >= 0 else -1, base_sequence=first
        )
        self.sent += values
        self.log.append(memoryview(batch), leader_epoch=leader_epoch, now_ms=NOW)
        self.sequences[producer] = first + len(values)
        self.appended_end = self.log.log_end_offset

    def append_transactional(self, producer_id: int, mark: int | None = None) -> None:
        """Append a batch of a transaction, or its marker, as a coordinator does: 0 aborts, 1 commits."""
        if mark is None:
            first = self.sequences.get(producer_id, 0)
            record = Record(timestamp=NOW + self.source.randint(0, 50), value=b"%d in a transaction" % len(self.sent))
            self.sequences[producer_id] = first + 1
        else:
            first, record = -1, Record(timestamp=NOW, key=pack(">hh", 0, mark), value=pack(">hi", 0, 1))
        batch = build_batch(
            [record],
            base_offset=self.log.log_end_offset,
            leader_epoch=max(self.log.epochs.latest, 0),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=first,
            is_transactional=True,
            is_control=mark is not None,
        )
        self.sent.append(record.value or b"")
        self.log.append_preassigned(batch, now_ms=NOW)
        self.appended_end = self.log.log_end_offset

    def flush(self, *, to_end: bool = True) -> None:
        plan = self.log.plan_flush(to_end=to_end)
        if plan is not None:
            plan.run()
            self.log.on_flushed(plan)
            self.flushed_end = self.log.recovery_point

    def checkpoint(self) -> None:
        offset_checkpoint_file.write(self.log.disk, POINTS_PATH, {PARTITION: self.log.recovery_point})

    def advance_start(self, offset: int) -> None:
        """Delete records as DeleteRecords does, which responds once the file is on the disk."""
        self.log.advance_start(offset)
        offset_checkpoint_file.write(self.log.disk, STARTS_PATH, {PARTITION: offset})
        self.start_offset = offset


def reopen(disk: SimulatedDisk, *, config: LogConfig = CONFIG) -> PartitionLog:
    """Open the log as a node does after an unclean stop."""
    if not disk.exists(ROOT):
        disk.make_directories(ROOT)
        disk.fsync_directory("/")
    point = offset_checkpoint_file.read(disk, POINTS_PATH).get(PARTITION, 0)
    start = offset_checkpoint_file.read(disk, STARTS_PATH).get(PARTITION, 0)
    return PartitionLog.open(
        disk,
        DIRECTORY,
        config=config,
        topic_id=TOPIC_ID,
        now_ms=NOW,
        clean=False,
        recovery_point=point,
        start_offset=start,
    )


def new_model(disk: SimulatedDisk, source: random.Random) -> LogModel:
    return LogModel(reopen(disk), source)


def check_log(disk: SimulatedDisk, model: LogModel, keep: Keep) -> PartitionLog:
    """Check that the guarantees hold, rebuilt state equals the original, and appends work."""
    log = reopen(disk)
    guaranteed = model.appended_end if keep == "page-cache" else model.flushed_end
    assert log.log_end_offset >= guaranteed, f"ends at {log.log_end_offset} instead of {guaranteed}"
    assert log.log_start_offset >= model.start_offset, (
        f"starts at {log.log_start_offset} instead of {model.start_offset}"
    )
    found = [(record.offset, record.value) for record in read_all(log, log.log_start_offset)]
    assert found == model.expected_records(log.log_start_offset, log.log_end_offset)
    check_rebuilt(log)
    check_lookups(log)
    check_appends(log, model)
    wrong = [
        each
        for each in check_log_files(disk.storage.files())
        if not model.compacted or "the segment before it ends" not in each
    ]
    assert not wrong, wrong
    return log


def check_appends(log: PartitionLog, model: LogModel) -> None:
    """Append more and close the log. Offsets of truncated records are assigned again."""
    end = log.log_end_offset
    model.sent[end:] = [b"after"]
    model.appended_end = end
    log.append(memoryview(build_batch([Record(timestamp=NOW, value=b"after")])), leader_epoch=9, now_ms=NOW)
    model.appended_end += 1
    log.flush()
    model.flushed_end = end + 1
    assert [record.value for record in read_all(log, end)] == [b"after"]
    log.close()


def check_rebuilt(log: PartitionLog) -> None:
    """Indexes, epochs and producers equal those of a log to which the same batches are appended (invariant 25)."""
    expected_log = PartitionLog.open(
        SimulatedDisk(cold_reads=0.0),
        "/expected/t-0",
        config=log.config,
        topic_id=TOPIC_ID,
        now_ms=NOW,
        clean=True,
        start_offset=log.segments[0].base_offset,
    )
    bases = [segment.base_offset for segment in log.segments]
    for stored in stored_batches(log):
        base_offset = read_header(stored).base_offset
        if base_offset in bases:
            expected_log.log_end_offset = base_offset  # later than the end if compaction left a gap
            expected_log.roll(now_ms=NOW)
        expected_log.append_preassigned(bytearray(stored), now_ms=NOW)
    if expected_log.log_end_offset in bases:
        expected_log.roll(now_ms=NOW)
    for segment in expected_log.segments[:-1]:
        segment.finish_indexes()
    assert index_entries(log) == index_entries(expected_log)
    if not bases[0]:  # otherwise a transaction may have started in a deleted segment
        found, expected = ([segment.aborted_transactions() for segment in one.segments] for one in (log, expected_log))
        assert found == expected
    expected_log.advance_start(log.log_start_offset)
    assert log.epochs.entries() == expected_log.epochs.entries(), (
        log.epochs.entries(),
        expected_log.epochs.entries(),
        log.log_start_offset,
        bases,
    )
    producers, expected_producers = dict(log.producers.items()), dict(expected_log.producers.items())
    for producer_id in (
        expected_producers if bases[0] else producers | expected_producers
    ):  # a snapshot may have producers without records
        assert _state(producers[producer_id]) == _state(expected_producers[producer_id])


def _state(producer: ProducerStateEntry) -> tuple[object, ...]:
    """Return what a snapshot contains: the last batch without its timestamp, which may be a later marker's."""
    return (
        producer.epoch,
        producer.last_timestamp,
        [batch[:4] for batch in producer.batches[-1:]],
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def check_lookups(log: PartitionLog) -> None:
    """Lookups by timestamp and by epoch agree with the records (invariant 27)."""
    records = read_all(log, log.log_start_offset)
    for timestamp in {record.timestamp for record in records[::5]} | {NOW - 1, NOW + 1000}:
        expected = next(
            ((record.timestamp, record.offset) for record in records if record.timestamp >= timestamp), None
        )
        found = log.offset_for_timestamp(timestamp)
        assert (found and found[:2]) == expected, (timestamp, found, expected)
    entries = log.epochs.entries()
    for at, (epoch, _) in enumerate(entries):
        end = entries[at + 1][1] if at + 1 < len(entries) else log.log_end_offset
        assert log.epochs.end_offset_for(epoch, log.log_end_offset) == (epoch, end)
