"""When cycles of objects are looked for."""

from ottla.io.memory import CHECK_SECONDS, COLLECTION_SHARE, FULL_COLLECTION_SECONDS, GcScheduler


class Told:
    """A clock, and a collector that takes as long as it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.takes = 0.0
        self.collected: list[int] = []

    def collect(self, generation: int) -> None:
        self.now += self.takes
        self.collected.append(generation)

    def play(self, collections: GcScheduler, seconds: float) -> list[int]:
        """What was collected meanwhile."""
        self.collected.clear()
        end = self.now + seconds
        while self.now < end:
            self.now += CHECK_SECONDS
            collections.maybe_collect()
        return list(self.collected)


def test_fast_collections_run_at_every_check() -> None:
    told = Told()
    collections = GcScheduler(lambda: told.now, told.collect)
    told.takes = CHECK_SECONDS * COLLECTION_SHARE / 2
    assert told.play(collections, 20 * CHECK_SECONDS) == [1] * 20


def test_slow_collections_stay_within_their_share() -> None:
    told = Told()
    collections = GcScheduler(lambda: told.now, told.collect)
    told.takes = 5 * CHECK_SECONDS * COLLECTION_SHARE
    assert 3 <= len(told.play(collections, 20 * CHECK_SECONDS)) <= 4


def test_full_collection_runs_once_an_hour() -> None:
    told = Told()
    collections = GcScheduler(lambda: told.now, told.collect)
    assert told.play(collections, 2.5 * FULL_COLLECTION_SECONDS).count(2) == 2
