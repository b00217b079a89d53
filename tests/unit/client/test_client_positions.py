"""Positions: seeks, resets, and validation after leader changes."""

import pytest

from ottla.client.consumer_config import EARLIEST, LATEST, reset_policy
from ottla.client.errors import ConfigError, LogTruncationError, NoOffsetForPartitionError, broker_error
from ottla.client.offset_lookup import EpochEnd, FoundOffset, Outcome
from ottla.client.position_resolver import PositionResolver
from ottla.client.positions import Positions
from ottla.client.records import OffsetAndMetadata, TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class ClusterMetadata:
    topics = {}


class Clock:
    def now_ms(self):
        return 1_000_000


class Ports:
    clock = Clock()


class Backoff:
    def delay_ms(self, attempt):
        return 0.0


class Core:
    """The part of ClusterClient that PositionResolver uses."""

    def __init__(self, loop):
        self.loop = loop
        self.update_callbacks = []
        self.is_closed = False
        self.cluster = ClusterMetadata()
        self.ports = Ports()
        self.retry_backoff = Backoff()
        self.refreshes = 0

    def request_update(self):
        self.refreshes += 1


class Lookup:
    """An OffsetLookup with fixed results; each of `failures` is returned once."""

    def __init__(self, by_timestamp=None, epochs=None, failures=()):
        self.table, self.epochs, self.failures, self.requests = by_timestamp or {}, epochs or {}, list(failures), []

    async def by_timestamp(self, requested):
        self.requests.append(dict(requested))
        outcome = Outcome()
        for partition, timestamp in requested.items():
            if self.failures:
                outcome.failed[partition] = self.failures.pop(0)
            else:
                outcome.found[partition] = FoundOffset(self.table[timestamp], timestamp, 4)
        return outcome

    async def ends_of_epochs(self, epochs):
        outcome = Outcome()
        outcome.found = {partition: self.epochs[partition] for partition in epochs}
        return outcome


class Committed:
    def __init__(self, offsets):
        self.offsets = offsets

    async def fetch(self, partitions):
        return {partition: self.offsets[partition] for partition in partitions if partition in self.offsets}


@pytest.fixture
def resolve():
    """Run a resolver until it is done; return its failures."""
    import asyncio

    async def work(positions, lookup, committed=None, policy="earliest"):
        resolver = PositionResolver(
            Core(asyncio.get_running_loop()), positions, lookup, committed, reset_policy(policy), lambda: None
        )
        resolver.maybe_start()
        while resolver._task is not None:
            await asyncio.sleep(0)
        return list(resolver.failures)

    return work


def positions_of(*partitions):
    positions = Positions()
    positions.replace(partitions)
    return positions


async def test_committed_offset_precedes_the_reset_policy(resolve):
    positions, lookup = positions_of(P0, P1), Lookup({EARLIEST: 3})
    assert await resolve(positions, lookup, Committed({P0: OffsetAndMetadata(9)})) == []
    assert [(state.offset, state.fetch_offset) for state in positions.states.values()] == [(9, 9), (3, 3)]
    assert lookup.requests == [{P1: EARLIEST}]


async def test_missing_offset_without_policy_is_reported(resolve):
    positions = positions_of(P0, P1)
    (failure,) = await resolve(positions, Lookup(), Committed({P0: OffsetAndMetadata(9)}), policy="none")
    assert isinstance(failure, NoOffsetForPartitionError)
    assert failure.partitions == (P1,)
    assert positions.states[P0].offset == 9


async def test_duration_without_newer_records_is_the_end(resolve):
    positions, lookup = positions_of(P0), Lookup({1_000_000 - 60_000: -1, LATEST: 77})
    assert await resolve(positions, lookup, policy="by_duration:PT1M") == []
    assert positions.states[P0].offset == 77


async def test_retriable_errors_are_retried(resolve):
    positions, lookup = positions_of(P0), Lookup({EARLIEST: 0}, failures=[broker_error(5), broker_error(6)])
    assert await resolve(positions, lookup) == []
    assert len(lookup.requests) == 3


async def test_fatal_errors_are_reported(resolve):
    (failure,) = await resolve(positions_of(P0), Lookup(failures=[broker_error(29)]))
    assert failure.code == 29


def read_up_to(offset, epoch):
    positions = positions_of(P0)
    positions.states[P0].seek(offset, epoch)
    positions.states[P0].leader_epoch = epoch
    return positions


async def test_position_in_the_new_leaders_log_is_valid(resolve):
    positions = read_up_to(50, 3)
    assert positions.states[P0].on_leader_epoch(4)
    assert not positions.states[P0].is_fetchable
    assert await resolve(positions, Lookup(epochs={P0: EpochEnd(3, 60)})) == []
    assert (positions.states[P0].offset, positions.states[P0].is_fetchable) == (50, True)


async def test_truncated_log_is_read_from_the_divergence(resolve):
    """The new leader's epoch 3 ended at 40: later records were truncated."""
    positions = read_up_to(50, 3)
    positions.states[P0].on_leader_epoch(4)
    assert await resolve(positions, Lookup(epochs={P0: EpochEnd(3, 40)})) == []
    assert (positions.states[P0].offset, positions.states[P0].epoch) == (40, 3)


async def test_truncation_without_policy_is_reported(resolve):
    positions = read_up_to(50, 3)
    positions.states[P0].on_leader_epoch(4)
    (failure,) = await resolve(positions, Lookup(epochs={P0: EpochEnd(3, 40)}), policy="none")
    assert isinstance(failure, LogTruncationError)
    assert (failure.offset, failure.end_offset) == (50, 40)


def test_records_of_an_old_leader_are_fetched_again():
    """Buffered results belong to a position that awaits validation."""
    state = read_up_to(50, 3).states[P0]
    state.fetch_offset, seek_id = 90, state.seek_id
    assert not state.on_leader_epoch(3)
    assert state.on_leader_epoch(5)
    assert (state.fetch_offset, state.seek_id != seek_id) == (50, True)
    assert not state.on_leader_epoch(5)


def test_remaining_partitions_keep_their_position():
    positions = positions_of(P0, P1)
    positions.states[P1].seek(7)
    positions.replace([P1])
    assert [(partition, state.offset) for partition, state in positions.states.items()] == [(P1, 7)]
    with pytest.raises(ValueError, match="t-0 is not assigned"):
        positions.require(P0)


def test_lag_ends_at_the_last_readable_offset():
    positions = positions_of(P0)
    state = positions.states[P0]
    assert positions.lags(read_committed=False) == {}
    state.seek(10)
    state.high_watermark, state.last_stable_offset = 30, 25
    assert (positions.lags(read_committed=False), positions.lags(read_committed=True)) == ({P0: 20}, {P0: 15})


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("earliest", -2),
        ("LATEST", -1),
        ("none", None),
        ("by_duration:PT1.5S", 998_500),
        ("by_duration:P1DT2H", 1_000_000 - 93_600_000),
    ],
)
def test_reset_policies(text, at):
    assert reset_policy(text).at(1_000_000) == at


@pytest.mark.parametrize("text", ["", "soon", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1H"])
def test_unknown_reset_policies_raise(text):
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        reset_policy(text)


def test_readded_partition_gets_a_new_seek_id():
    """A response to a fetch before the removal must not be used."""
    positions = positions_of(P0)
    before = positions.states[P0].seek_id
    states = positions.states
    positions.replace([])
    positions.replace([P0])
    assert positions.states[P0].seek_id != before
    assert states is positions.states
