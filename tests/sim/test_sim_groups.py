"""Groups over a simulated node that crashes at seeded moments: who owns what, and what has been committed."""

import pytest

from ottla.runtime import shard_driver
from tests.sim import sim_groups, sim_scenario

pytestmark = pytest.mark.timeout(60)


def test_offsets_outlive_a_killed_node(sim_seed):
    """What was committed is there, and grows; a partition has one owner in a generation."""
    sim_scenario.play(sim_seed, keep="page-cache", kind=sim_groups.GroupScenario)


def test_a_power_cut_leaves_groups_that_make_sense(sim_seed):
    """Commits may be lost with what was not flushed; nothing is there that was not sent, and members find their way back."""
    sim_scenario.play(sim_seed, keep="flushed", kind=sim_groups.GroupScenario)


def test_groups_on_a_failing_disk(sim_seed):
    """A commit that could not be written is refused; what was acknowledged stays."""
    sim_scenario.play(sim_seed, keep="page-cache", has_faults=True, kind=sim_groups.GroupScenario)


def test_groups_whose_records_always_share_batches(sim_seed, monkeypatch):
    """What is held back until a turn's end is replayed before it is written: when the disk then fails, the shard is loaded anew."""
    monkeypatch.setattr(shard_driver, "IMMEDIATE_APPENDS_MAX", 0)
    sim_scenario.play(sim_seed, keep="page-cache", has_faults=True, kind=sim_groups.GroupScenario)
