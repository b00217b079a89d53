"""Random appends, transactions and cleaner runs: readers see the latest record of each key."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.compaction_plan import Cleaned
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.sim.disk import SimulatedDisk
from ottla.sim.log_files import check_log_files
from ottla.wire.batches import Record, decode_records, read_header
from tests.unit.log.compaction_harness import append_marker, append_records, clean
from tests.unit.log.log_fixtures import NOW, TOPIC_ID, read_all, stored_batches

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, compacted=True, deletes=False, delete_retention_ms=50)
KEYS = [b"a", b"b", b"key", b"a longer key than that", b""]

record = st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.binary(max_size=20)))
step = st.one_of(
    st.tuples(
        st.just("append"), st.lists(record, min_size=1, max_size=5), st.integers(0, 4), st.sampled_from((-1, -1, 1, 2))
    ),
    st.tuples(
        st.just("transaction"), st.lists(record, min_size=1, max_size=4), st.integers(0, 4), st.sampled_from((3, 4))
    ),
    st.tuples(st.just("end"), st.sampled_from(("abort", "commit")), st.sampled_from((3, 4))),
    st.tuples(st.just("clean"), st.sampled_from((1 << 27, 1))),
    st.tuples(st.just("wait"), st.integers(1, 80)),
    st.tuples(st.just("roll")),
    st.tuples(st.just("expire")),
    st.tuples(st.just("open")),
)


@dataclass
class Scenario:
    """A log and all records ever written to it."""

    disk: SimulatedDisk
    log: PartitionLog
    now_ms: int = NOW
    clean_to: int | None = None
    written: dict[int, Record] = field(default_factory=dict)
    transactions: dict[int, list[int]] = field(default_factory=dict)
    aborted: dict[int, None] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)

    def play(self, event: str, *details: object) -> None:
        getattr(self, f"_{event}")(*details)

    def _append(
        self, records: list[tuple[bytes, bytes | None]], codec: int, producer_id: int, *, transactional: bool = False
    ) -> None:
        first = self.log.log_end_offset
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        append_records(
            self.log,
            records,
            now_ms=self.now_ms,
            codec=codec,
            producer_id=producer_id,
            base_sequence=sequence,
            transactional=transactional,
        )
        self.sequences[producer_id] = sequence + len(records)
        for at, (key, value) in enumerate(records):
            self.written[first + at] = Record(first + at, self.now_ms + at, key, value)

    def _transaction(self, records: list[tuple[bytes, bytes | None]], codec: int, producer_id: int) -> None:
        first = self.log.log_end_offset
        self._append(records, codec, producer_id, transactional=True)
        self.transactions.setdefault(producer_id, []).extend(range(first, first + len(records)))

    def _end(self, outcome: str, producer_id: int) -> None:
        append_marker(self.log, outcome, producer_id, now_ms=self.now_ms)
        offsets = self.transactions.pop(producer_id, [])
        if outcome == "abort":
            self.aborted.update(dict.fromkeys(offsets))

    def _clean(self, key_memory_bytes: int) -> None:
        before = self.log.log_end_offset
        result = clean(self.log, self.clean_to, now_ms=self.now_ms, key_memory_bytes=key_memory_bytes)
        if result is not None:
            assert isinstance(result, Cleaned), result
            self.clean_to = max(result.end_offset, self.clean_to or 0)
        assert self.log.log_end_offset == before
        self.check()

    def _wait(self, for_ms: int) -> None:
        self.now_ms += for_ms

    def _roll(self) -> None:
        self.log.roll(now_ms=self.now_ms)

    def _expire(self) -> None:
        """Expire all producers."""
        if not self.transactions:
            self.log.producers.clear()

    def _open(self) -> None:
        end = self.log.log_end_offset
        self.log.close()
        self.log = open_scenario(self.disk)
        assert self.log.log_end_offset == end

    def committed(self) -> Iterator[Record]:
        """Yield the records that a read_committed consumer sees, by the transaction indexes."""
        aborted = sorted(
            (entry.first_offset, entry.last_offset, entry.producer_id)
            for segment in self.log.segments
            for entry in segment.aborted_transactions()
        )
        for batch in stored_batches(self.log):
            header = read_header(batch)
            if header.is_control or (
                header.is_transactional
                and any(
                    first <= header.base_offset < last and producer == header.producer_id
                    for first, last, producer in aborted
                )
            ):
                continue
            yield from decode_records(batch)

    def check(self) -> None:
        found = {record.offset: record for record in self.committed()}
        open_offsets = {offset: None for offsets in self.transactions.values() for offset in offsets}
        for offset, seen in found.items():
            assert seen == self.written[offset], "a record never changes its offset or content"
            assert offset not in self.aborted, "an aborted record is visible"
        expected: dict[bytes, Record] = {}
        for offset, written in sorted(self.written.items()):
            if offset not in self.aborted and offset not in open_offsets and written.key is not None:
                expected[written.key] = written
        latest: dict[bytes, Record] = {}
        for offset, seen in sorted(found.items()):
            if offset not in open_offsets and seen.key is not None:
                latest[seen.key] = seen
        for key, written in expected.items():
            if written.value is None:
                assert latest.get(key, written).value is None, f"{key!r} reappeared after its deletion"
            else:
                assert latest.get(key) == written, f"the latest record of {key!r}"
        assert [record.offset for record in read_all(self.log, 0)] == sorted(
            record.offset for batch in stored_batches(self.log) for record in decode_records(batch)
        )


def open_scenario(disk: SimulatedDisk) -> PartitionLog:
    return PartitionLog.open(disk, "/data/t-0", config=CONFIG, topic_id=TOPIC_ID, now_ms=NOW, clean=True)


@given(st.lists(step, max_size=60))
@settings(deadline=None, max_examples=150)
def test_readers_see_the_latest_record_of_each_key_and_no_deleted_or_aborted_ones(steps):
    disk = SimulatedDisk(cold_reads=0.0)
    scenario = Scenario(disk, open_scenario(disk))
    for event, *details in steps:
        scenario.play(event, *details)
    for _ in range(2):
        scenario.play("clean", 1 << 27)
        scenario.play("roll")
        scenario.play("wait", 1000)
    scenario.play("open")
    scenario.check()
    scenario.log.close()
    assert check_log_files(disk.storage.files()) == []


@pytest.mark.parametrize("seed", range(5))
def test_long_random_scenario(seed):
    """Like the test above, with thousands of records and another mix for each seed."""
    source = random.Random(seed)
    disk = SimulatedDisk(cold_reads=0.0)
    scenario = Scenario(disk, open_scenario(disk))
    for _ in range(600):
        records = [
            (
                source.choice(KEYS) + b"%d" % source.randrange(10),
                None if source.random() < 0.2 else source.randbytes(source.randrange(30)),
            )
            for _ in range(source.randint(1, 6))
        ]
        match source.choices(("append", "transaction", "end", "clean", "wait"), (10, 4, 3, 1, 1))[0]:
            case "append":
                scenario.play("append", records, source.randrange(5), source.choice((-1, 1, 2)))
            case "transaction":
                scenario.play("transaction", records, source.randrange(5), source.choice((3, 4)))
            case "end":
                scenario.play("end", source.choice(("abort", "commit")), source.choice((3, 4)))
            case "clean":
                scenario.play("clean", source.choice((1 << 27, 1)))
            case _:
                scenario.play("wait", source.randint(1, 60))
    scenario.check()
