"""FetchCollector: positions follow returned records, without loss or duplicates."""

from collections import deque

import pytest

from ottla.client.errors import BrokerError
from ottla.client.fetch_collector import FetchCollector
from ottla.client.fetcher import CompletedFetch, FetchResult, end_of_batches
from ottla.client.positions import Positions
from ottla.client.records import TopicPartition
from ottla.wire.batches import Record, build_batch

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class ScriptedFetcher:
    """A fetcher with given results."""

    def __init__(self):
        self.results = deque()

    def take(self):
        return self.results.popleft() if self.results else None

    def requeue(self, parts):
        self.results.appendleft(FetchResult(-1, parts))


@pytest.fixture
def positions():
    positions = Positions()
    positions.replace([P0, P1])
    for state in positions.states.values():
        state.seek(0, 0)
    return positions


@pytest.fixture
def fetcher(positions):
    return ScriptedFetcher()


@pytest.fixture
def collector(positions, fetcher):
    return FetchCollector(fetcher, positions, read_committed=False, check_crcs=True, key=None, value=bytes.decode)


@pytest.fixture
def arrive(positions, fetcher):
    """Add a result with the given number of records per partition."""

    def put(**counts):
        parts = []
        for name, count in counts.items():
            partition = TopicPartition("t", int(name[1:]))
            state = positions.states[partition]
            batch = bytes(
                build_batch(
                    [Record(value=b"%d" % (state.fetch_offset + n)) for n in range(count)],
                    base_offset=state.fetch_offset,
                    leader_epoch=1,
                )
            )
            parts.append(CompletedFetch(partition, state.seek_id, state.fetch_offset, batch, ()))
            state.fetch_offset += count
        fetcher.results.append(FetchResult(1, parts))

    return put


def offsets(records):
    return [(record.partition, record.offset, record.value) for record in records]


def rows(partition, start, end):
    return [(partition, offset, str(offset)) for offset in range(start, end)]


def test_poll_returns_records_in_portions(collector, arrive, positions):
    arrive(p0=5, p1=3)
    arrive(p0=2)
    assert offsets(collector.next_records(4)) == rows(0, 0, 4)
    assert (positions.states[P0].offset, positions.states[P0].epoch, positions.states[P1].offset) == (4, 1, 0)
    assert offsets(collector.next_records(4)) == rows(0, 4, 5) + rows(1, 0, 3)
    assert offsets(collector.next_records(4)) == rows(0, 5, 7)
    assert collector.next_records(4) == []


def test_iteration_moves_the_position(collector, arrive, positions):
    arrive(p0=5)
    iterator = iter(collector.next_chunk(10))
    collector.sync_position()
    assert positions.states[P0].offset == 0
    next(iterator), next(iterator)
    collector.sync_position()
    assert positions.states[P0].offset == 2
    assert list(iterator)[-1].offset == 4
    collector.sync_position()
    assert positions.states[P0].offset == 5


def test_abandoned_iteration_continues(collector, arrive, positions):
    """By another iteration or by a poll."""
    arrive(p0=5)
    next(iter(collector.next_chunk(10)))
    next(iter(collector.next_chunk(10)))
    assert offsets(collector.next_records(2)) == rows(0, 2, 4)
    assert positions.states[P0].offset == 4
    assert offsets(collector.next_chunk(10)) == rows(0, 4, 5)


def test_batch_after_records_starts_at_the_position(collector, arrive, positions, fetcher):
    """The partly read partition is fetched again; its buffered results are dropped."""
    arrive(p0=5, p1=2)
    arrive(p0=5)
    next(iter(collector.next_chunk(10)))
    assert collector.next_batch() is None
    assert [(state.offset, state.fetch_offset) for state in positions.states.values()] == [(1, 1), (0, 0)]
    arrive(p0=4)
    batch = collector.next_batch()
    assert batch.offsets.tolist() == [1, 2, 3, 4]
    assert positions.states[P0].offset == 5


def test_seek_ends_an_iteration(collector, arrive, positions):
    arrive(p0=5)
    seen = []
    for record in collector.next_chunk(10):
        seen.append(record.offset)
        if record.offset == 1:
            collector.discard(P0)
            positions.states[P0].seek(40)
    assert seen == [0, 1]
    collector.sync_position()
    assert positions.states[P0].offset == 40


def test_results_for_an_old_position_are_dropped(collector, arrive, positions):
    arrive(p0=5, p1=2)
    positions.states[P0].seek(100)
    assert offsets(collector.next_records(10)) == rows(1, 0, 2)
    assert positions.states[P0].offset == 100


def test_results_of_paused_partitions_are_held_back(collector, arrive, positions):
    """In order, and before later results."""
    positions.states[P0].is_paused = True
    arrive(p0=2, p1=2)
    arrive(p0=2)
    assert offsets(collector.next_records(10)) == rows(1, 0, 2)
    assert collector.next_records(10) == []
    positions.states[P0].is_paused = False
    collector.resume(P0)
    assert offsets(collector.next_records(10)) == rows(0, 0, 4)


def test_results_of_removed_partitions_are_dropped(collector, arrive, positions):
    arrive(p0=2, p1=2)
    collector.next_records(1)
    positions.replace([P1])
    assert offsets(collector.next_records(10)) == rows(1, 0, 2)


def test_corrupt_partition_does_not_affect_others(collector, arrive, positions, fetcher):
    arrive(p0=2, p1=2)
    parts = fetcher.results[0].parts
    corrupt = bytearray(parts[0].records)
    corrupt[-2] ^= 1
    fetcher.results[0] = FetchResult(1, [parts[0]._replace(records=bytes(corrupt)), parts[1]])
    with pytest.raises(BrokerError, match=r"CORRUPT_MESSAGE \(t-0 from offset 0\)"):
        collector.next_records(10)
    assert positions.states[P0].offset == 0
    assert offsets(collector.next_records(10)) == rows(1, 0, 2)


def test_end_of_batches_ignores_an_incomplete_batch():
    first, second = (build_batch([Record()] * 3, base_offset=base, leader_epoch=base) for base in (0, 3))
    assert end_of_batches(bytes(first + second)) == (6, 3)
    assert end_of_batches(bytes(first + second[:-1])) == (3, 0)
    assert end_of_batches(bytes(first[:-1])) is None
