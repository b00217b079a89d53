"""A log and what it has promised: the state of scenarios on one partition, and the checks that hold after any crash."""

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
PLACE = ("t", 0)
POINTS_PATH = f"{ROOT}/{offset_checkpoint_file.RECOVERY_POINTS_FILE}"
STARTS_PATH = f"{ROOT}/{offset_checkpoint_file.START_OFFSETS_FILE}"
CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


@dataclass
class Promises:
    """What a log owes: all that was appended, after a kill; all that was flushed, after a power cut; and no record that nobody sent."""

    log: PartitionLog
    source: random.Random
    sent: list[bytes] = field(default_factory=list)
    """The value at each offset; that of a write in which the process died is among them."""
    appended_end: int = 0
    flushed_end: int = 0
    start_offset: int = 0
    sequences: dict[int, int] = field(default_factory=dict)
    compacted: dict[int, None] = field(default_factory=dict)
    """Offsets whose records were compacted away."""

    def owed(self, start_offset: int, end_offset: int) -> list[tuple[int, bytes]]:
        """What a reader finds between two offsets."""
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
        """A batch of a transaction, or the marker that ends it, as a coordinator writes it: 0 aborts, 1 commits."""
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
        offset_checkpoint_file.write(self.log.disk, POINTS_PATH, {PLACE: self.log.recovery_point})

    def advance_start(self, offset: int) -> None:
        """As DeleteRecords does it: answered once the file is on the disk."""
        self.log.advance_start(offset)
        offset_checkpoint_file.write(self.log.disk, STARTS_PATH, {PLACE: offset})
        self.start_offset = offset


def open_anew(disk: SimulatedDisk, *, config: LogConfig = CONFIG) -> PartitionLog:
    """As a node does that was not stopped in order."""
    if not disk.exists(ROOT):
        disk.make_directories(ROOT)
        disk.fsync_directory("/")
    point = offset_checkpoint_file.read(disk, POINTS_PATH).get(PLACE, 0)
    start = offset_checkpoint_file.read(disk, STARTS_PATH).get(PLACE, 0)
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


def new_promises(disk: SimulatedDisk, source: random.Random) -> Promises:
    return Promises(open_anew(disk), source)


def check_log(disk: SimulatedDisk, promises: Promises, keep: Keep) -> PartitionLog:
    """The promises hold, what was rebuilt is what grows, and the log goes on."""
    log = open_anew(disk)
    promised = promises.appended_end if keep == "page-cache" else promises.flushed_end
    assert log.log_end_offset >= promised, f"ends at {log.log_end_offset}, {promised} was promised"
    assert log.log_start_offset >= promises.start_offset, (
        f"begins at {log.log_start_offset}, not {promises.start_offset}"
    )
    found = [(record.offset, record.value) for record in read_all(log, log.log_start_offset)]
    assert found == promises.owed(log.log_start_offset, log.log_end_offset)
    check_rebuilt(log)
    check_answers(log)
    go_on(log, promises)
    wrong = [
        each
        for each in check_log_files(disk.storage.files())
        if not promises.compacted or "the segment before it ends" not in each
    ]
    assert not wrong, wrong
    return log


def go_on(log: PartitionLog, promises: Promises) -> None:
    """The log takes more, and is closed. What was cut off is gone for good: its offsets are given again."""
    end = log.log_end_offset
    promises.sent[end:] = [b"after"]
    promises.appended_end = end
    log.append(memoryview(build_batch([Record(timestamp=NOW, value=b"after")])), leader_epoch=9, now_ms=NOW)
    promises.appended_end += 1
    log.flush()
    promises.flushed_end = end + 1
    assert [record.value for record in read_all(log, end)] == [b"after"]
    log.close()


def check_rebuilt(log: PartitionLog) -> None:
    """Indexes, epochs and producers equal those of a log that grew by the same batches (invariant 25)."""
    grown = PartitionLog.open(
        SimulatedDisk(cold_reads=0.0),
        "/grown/t-0",
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
            grown.log_end_offset = base_offset  # which is further on where compaction has left a gap
            grown.roll(now_ms=NOW)
        grown.append_preassigned(bytearray(stored), now_ms=NOW)
    if grown.log_end_offset in bases:
        grown.roll(now_ms=NOW)
    for segment in grown.segments[:-1]:
        segment.finish_indexes()
    assert index_entries(log) == index_entries(grown)
    if not bases[0]:  # else a transaction may have begun in a segment that is gone
        found, expected = ([segment.aborted_transactions() for segment in one.segments] for one in (log, grown))
        assert found == expected
    grown.advance_start(log.log_start_offset)
    assert log.epochs.entries() == grown.epochs.entries(), (
        log.epochs.entries(),
        grown.epochs.entries(),
        log.log_start_offset,
        bases,
    )
    remembered, regrown = dict(log.producers.items()), dict(grown.producers.items())
    for producer_id in (
        regrown if bases[0] else remembered | regrown
    ):  # a producer outlives its records, if a snapshot has it
        assert _known(remembered[producer_id]) == _known(regrown[producer_id])


def _known(producer: ProducerStateEntry) -> tuple[object, ...]:
    """All that a snapshot keeps: the last batch without its time, where a marker came later."""
    return (
        producer.epoch,
        producer.last_timestamp,
        [batch[:4] for batch in producer.batches[-1:]],
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def check_answers(log: PartitionLog) -> None:
    """What is asked by time and by epoch agrees with the records (invariant 27)."""
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
