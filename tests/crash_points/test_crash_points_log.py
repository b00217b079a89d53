"""Appends, rolls, flushes and checkpoints, crashed in each of their calls."""

import random
from abc import ABC, abstractmethod
from typing import ClassVar

import pytest

from ottla.log import offset_checkpoint_file
from ottla.sim.disk import SimulatedDisk
from ottla.sim.storage import Keep
from ottla.wire.batches import Record, build_batch
from tests.crash_points.harness import explore
from tests.crash_points.log_model import DIRECTORY, PARTITION, ROOT, LogModel, check_log, new_model
from tests.unit.log.log_fixtures import NOW

pytestmark = pytest.mark.timeout(120)


class LogScenario(ABC):
    """A log with some records, and steps in an order given by the seed."""

    name = "log"

    def prepare(self, disk: SimulatedDisk, source: random.Random) -> LogModel:
        model = new_model(disk, source)
        for _ in range(source.randint(0, 6)):
            model.append()
        if source.random() < 0.5:
            model.flush()
            model.checkpoint()
        return model

    @abstractmethod
    def run(self, disk: SimulatedDisk, state: LogModel) -> None: ...

    def check(self, disk: SimulatedDisk, state: LogModel, keep: Keep) -> None:
        check_log(disk, state, keep)


class Appends(LogScenario):
    name = "appends and rolls"

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for at in range(24):
            state.append(leader_epoch=at // 9)
            if at % 10 == 7:
                state.flush(to_end=False)


class Flushes(LogScenario):
    name = "flushes"

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for at in range(16):
            state.append(leader_epoch=at // 5)
            state.flush(to_end=at % 3 != 2)
            if at % 4 == 1:
                state.checkpoint()


class StartOffsets(LogScenario):
    name = "beginnings"

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for at in range(14):
            state.append(leader_epoch=at // 6)
            if at % 4 == 3:
                state.flush()
                state.checkpoint()
                state.advance_start(state.source.randint(state.start_offset, state.log.log_end_offset))


class CleanStops(LogScenario):
    name = "stops"

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for _ in range(8):
            state.append()
        state.log.close()
        state.flushed_end = state.appended_end
        state.checkpoint()


class Transactions(LogScenario):
    name = "transactions"

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for at in range(20):
            state.append_transactional(20 + at % 2)
            if at % 5 == 4:
                state.append_transactional(20 + state.source.randint(0, 1), mark=state.source.randint(0, 1))
                state.flush(to_end=state.source.random() < 0.5)
            if at % 7 == 6:
                state.checkpoint()


class FormerlyCompacted(LogScenario):
    """Kafka's cleaner has left gaps, the topic is no longer compacted, and there is no recovery point."""

    name = "once compacted"
    segments: ClassVar[dict[int, tuple[tuple[int, ...], ...]]] = {0: ((0,), (1, 2)), 5: ((5,),), 9: ((9,), (10, 11))}

    def prepare(self, disk: SimulatedDisk, source: random.Random) -> LogModel:
        new_model(disk, source).log.close()
        for base_offset, batches in self.segments.items():
            file = disk.open(f"{DIRECTORY}/{base_offset:020d}.log", create=True)
            for offsets in batches:
                records = [Record(timestamp=NOW, value=b"%d" % offset) for offset in offsets]
                file.append([build_batch(records, base_offset=offsets[0], leader_epoch=0)])
            file.fsync()
            file.close()
        disk.fsync_directory(DIRECTORY)
        offset_checkpoint_file.write(disk, f"{ROOT}/{offset_checkpoint_file.CLEAN_OFFSETS_FILE}", {PARTITION: 9})
        state = new_model(disk, source)
        state.sent = [b"%d" % offset for offset in range(12)]
        state.compacted = dict.fromkeys((3, 4, 6, 7, 8))
        state.appended_end = state.flushed_end = 12
        return state

    def run(self, disk: SimulatedDisk, state: LogModel) -> None:
        for at in range(16):
            state.append()
            if at % 10 == 7:
                state.flush(to_end=False)


@pytest.mark.parametrize(
    "scenario",
    [Appends(), Flushes(), StartOffsets(), CleanStops(), Transactions(), FormerlyCompacted()],
    ids=lambda scenario: scenario.name,
)
def test_log_is_consistent_after_a_crash_at_any_point(scenario: LogScenario, sim_seed: int) -> None:
    assert explore(scenario, sim_seed) > 100
