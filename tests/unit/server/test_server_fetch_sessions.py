"""Fetch sessions: limits, eviction and epochs."""

import pytest

from ottla.server import fetch_sessions
from ottla.server.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_MS,
    NO_SESSION,
    ORPHANED_MS,
    CachedPartition,
    FetchSessionCache,
    next_epoch,
)


class CountingRng:
    """Returns each number several times, so that ids in use must be drawn again."""

    def __init__(self, times: int = 1) -> None:
        self._drawn = 0
        self._times = times

    def random_bytes(self, size: int) -> bytes:
        raise AssertionError("not needed here")

    def below(self, limit: int) -> int:
        self._drawn += 1
        return (self._drawn - 1) // self._times


def cached_partitions(count: int) -> fetch_sessions.CachedPartitions:
    return {(b"t", index): CachedPartition(b"t", (index, -1, 0, -1, 1), None) for index in range(count)}


def opened(sessions: FetchSessionCache, count: int, now_ms: int) -> int:
    return sessions.open(cached_partitions(count), is_by_id=True, now_ms=now_ms)


def test_session_ids_are_unique_and_not_zero():
    sessions = FetchSessionCache(CountingRng(times=2), slots_max=10)
    assert [opened(sessions, 1, 0) for _ in range(3)] == [1, 2, 3]


def test_no_sessions_without_slots():
    assert opened(FetchSessionCache(CountingRng(), slots_max=0), 3, 0) == NO_SESSION


def test_young_sessions_are_not_evicted():
    """However large the new session is."""
    sessions = FetchSessionCache(CountingRng(), slots_max=2)
    assert (opened(sessions, 1, 0), opened(sessions, 1, 0)) == (1, 2)
    assert opened(sessions, 100, EVICTION_MS) == NO_SESSION
    assert len(sessions) == 2


def test_idle_session_is_evicted():
    sessions = FetchSessionCache(CountingRng(), slots_max=2)
    opened(sessions, 5, 0)
    opened(sessions, 5, 1)
    assert sessions.touch(sessions.get(1), 10)  # now the second is the least recently used
    assert opened(sessions, 1, EVICTION_MS + 2) == 3
    assert (sessions.get(1) is None, sessions.get(2) is None) == (False, True)


def test_old_session_in_use_is_evicted_by_a_larger_one_only():
    sessions = FetchSessionCache(CountingRng(), slots_max=2)
    opened(sessions, 5, 0)
    opened(sessions, 4, 0)
    later = EVICTION_MS + 1
    for session_id in (1, 2):
        sessions.touch(sessions.get(session_id), later)
    assert opened(sessions, 4, later) == NO_SESSION
    assert opened(sessions, 5, later) == 3
    assert (sessions.get(1) is None, sessions.get(2) is None) == (False, True)
    assert opened(sessions, 9, later) == 4  # the third is young: the first is evicted, although it is no smaller
    assert (sessions.get(1) is None, sessions.get(3) is None) == (True, False)


def test_sessions_are_ranked_by_current_size():
    sessions = FetchSessionCache(CountingRng(), slots_max=1)
    opened(sessions, 5, 0)
    session = sessions.get(1)
    sessions.touch(session, EVICTION_MS + 1)
    session.partitions.update(cached_partitions(8))
    sessions.touch(session, EVICTION_MS + 2)
    assert opened(sessions, 8, EVICTION_MS + 2) == NO_SESSION
    assert opened(sessions, 9, EVICTION_MS + 2) != NO_SESSION


def test_partitions_of_all_sessions_are_limited(monkeypatch):
    """A new session is not opened, one that grows is closed: both clients continue with full fetches."""
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 10)
    sessions = FetchSessionCache(CountingRng(), slots_max=100)
    assert opened(sessions, 6, 0) == 1
    assert opened(sessions, 5, 0) == NO_SESSION
    assert opened(sessions, 4, 0) == 2
    session = sessions.get(2)
    session.partitions.update(cached_partitions(5))
    assert not sessions.touch(session, 1)
    assert (sessions.get(2), sessions.partition_count) == (None, 6)
    sessions.close(1)
    sessions.close(1)
    assert (len(sessions), sessions.partition_count) == (0, 0)


@pytest.mark.parametrize(("epoch", "next_"), [(0, 1), (1, 2), (EPOCH_MAX - 1, EPOCH_MAX), (EPOCH_MAX, 1)])
def test_epochs_wrap_to_one(epoch, next_):
    """0 would request a new session."""
    assert next_epoch(epoch) == next_


class Client:
    is_closed = False


def test_sessions_of_disconnected_clients_are_removed():
    sessions = FetchSessionCache(CountingRng(), slots_max=10)
    clients = [Client() for _ in range(3)]
    first, second, third = (
        sessions.open(cached_partitions(5), is_by_id=True, now_ms=0, owner=client) for client in clients
    )
    clients[0].is_closed = clients[1].is_closed = True
    assert sessions.orphans(ORPHANED_MS - 1) == []
    session = sessions.get(second)
    session.owner = clients[2]
    sessions.touch(session, ORPHANED_MS)
    assert sessions.orphans(ORPHANED_MS) == [first]
    sessions.close(first)
    assert [sessions.get(each) is not None for each in (first, second, third)] == [False, True, True]
    assert sessions.partition_count == 10
