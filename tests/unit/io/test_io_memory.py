"""Scheduling of garbage collections."""

from ottla.io.memory import CHECK_SECONDS, COLLECTION_SHARE, FULL_COLLECTION_SECONDS, GcScheduler


class FakeCollector:
    """A clock, and a collector whose collections take `duration` seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.duration = 0.0
        self.collected: list[int] = []

    def collect(self, generation: int) -> None:
        self.now += self.duration
        self.collected.append(generation)

    def run(self, scheduler: GcScheduler, seconds: float) -> list[int]:
        """Let time pass and return the generations that were collected."""
        self.collected.clear()
        end = self.now + seconds
        while self.now < end:
            self.now += CHECK_SECONDS
            scheduler.maybe_collect()
        return list(self.collected)


def test_fast_collections_run_at_every_check() -> None:
    fake = FakeCollector()
    scheduler = GcScheduler(lambda: fake.now, fake.collect)
    fake.duration = CHECK_SECONDS * COLLECTION_SHARE / 2
    assert fake.run(scheduler, 20 * CHECK_SECONDS) == [1] * 20


def test_slow_collections_stay_within_their_share() -> None:
    fake = FakeCollector()
    scheduler = GcScheduler(lambda: fake.now, fake.collect)
    fake.duration = 5 * CHECK_SECONDS * COLLECTION_SHARE
    assert 3 <= len(fake.run(scheduler, 20 * CHECK_SECONDS)) <= 4


def test_full_collection_runs_once_an_hour() -> None:
    fake = FakeCollector()
    scheduler = GcScheduler(lambda: fake.now, fake.collect)
    assert fake.run(scheduler, 2.5 * FULL_COLLECTION_SECONDS).count(2) == 2
