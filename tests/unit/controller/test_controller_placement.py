"""Placement: round robin over racks and brokers, even load, no replicas on unusable brokers."""

import random
from collections import Counter

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.ids import Uuid
from ottla.controller.placement import default_directory, place_replicas
from ottla.metadata.directories import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from ottla.metadata.image import BrokerRegistration

HERE, THERE = Uuid(b"h" * 16), Uuid(b"t" * 16)


class SeededRng:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


def broker(
    broker_id: int,
    rack: str | None = None,
    *,
    fenced: bool = False,
    leaving: bool = False,
    dirs: tuple[Uuid, ...] = (HERE,),
    cordoned: tuple[Uuid, ...] = (),
) -> BrokerRegistration:
    return BrokerRegistration(broker_id, 0, HERE, {}, {}, rack, fenced, leaving, dirs, cordoned)


@pytest.mark.parametrize("seed", range(5))
def test_each_rack_gets_a_replica(seed: int) -> None:
    """Three racks of three brokers: every partition is in all racks, and all brokers lead the same number of times."""
    brokers = [broker(number, f"rack{number % 3}") for number in range(9)]
    placed = place_replicas(brokers, 90, 3, SeededRng(seed))
    assert len(placed) == 90
    assert all(len({broker_id % 3 for broker_id in replicas}) == 3 for replicas in placed)
    assert Counter(replicas[0] for replicas in placed) == Counter(dict.fromkeys(range(9), 10))
    load = Counter(broker_id for replicas in placed for broker_id in replicas)
    assert max(load.values()) - min(load.values()) <= 9


@pytest.mark.parametrize("seed", range(5))
def test_load_is_even_without_racks(seed: int) -> None:
    placed = place_replicas([broker(number) for number in range(4)], 40, 2, SeededRng(seed))
    assert all(len(set(replicas)) == 2 for replicas in placed)
    load = Counter(broker_id for replicas in placed for broker_id in replicas)
    assert max(load.values()) - min(load.values()) <= 4
    assert Counter(replicas[0] for replicas in placed) == Counter({0: 10, 1: 10, 2: 10, 3: 10})


def test_same_seed_gives_same_placement() -> None:
    brokers = [broker(number, f"rack{number % 2}") for number in range(6)]
    assert place_replicas(brokers, 20, 3, SeededRng(3)) == place_replicas(brokers, 20, 3, SeededRng(3))
    assert place_replicas(brokers, 20, 3, SeededRng(3)) != place_replicas(brokers, 20, 3, SeededRng(4))


@pytest.mark.parametrize("seed", range(5))
def test_fenced_brokers_come_last_and_never_lead(seed: int) -> None:
    brokers = [broker(1), broker(2), broker(3, fenced=True)]
    assert all(3 not in replicas for replicas in place_replicas(brokers, 10, 2, SeededRng(seed)))
    three = place_replicas(brokers, 10, 3, SeededRng(seed))
    assert all(sorted(replicas) == [1, 2, 3] and replicas[0] != 3 for replicas in three)


def test_rack_of_fenced_brokers_gives_no_leader() -> None:
    brokers = [broker(1, "a", fenced=True), broker(2, "b"), broker(3, "b")]
    for seed in range(5):
        placed = place_replicas(brokers, 6, 2, SeededRng(seed))
        assert all(replicas[0] in (2, 3) and replicas[1] == 1 for replicas in placed)


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        ([broker(1)], 2),
        ([broker(1, fenced=True)], 1),
        ([], 1),
        ([broker(1), broker(2, leaving=True)], 2),
        ([broker(1), broker(2, cordoned=(HERE,))], 2),
    ],
)
def test_too_few_brokers_are_rejected(brokers: list[BrokerRegistration], factor: int) -> None:
    """A broker that is shutting down, or whose directories are all cordoned, does not count."""
    with pytest.raises(ApiError) as caught:
        place_replicas(brokers, 1, factor, SeededRng(0))
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_single_broker_gets_all_replicas() -> None:
    assert place_replicas([broker(7)], 3, 1, SeededRng(0)) == [(7,), (7,), (7,)]


def test_default_directories() -> None:
    assert default_directory(broker(1)) == HERE
    assert default_directory(broker(1, dirs=(HERE, THERE))) == DIRECTORY_UNASSIGNED
    assert default_directory(broker(1, dirs=(HERE, THERE), cordoned=(THERE,))) == HERE
    assert default_directory(broker(1, dirs=())) == DIRECTORY_MIGRATING
    assert default_directory(None) == DIRECTORY_UNASSIGNED
