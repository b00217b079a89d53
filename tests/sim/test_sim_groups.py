"""Groups over a simulated node that crashes at seeded moments: who owns what, and what has been committed."""

import pytest

from ottla.runtime import shard_driver
from tests.sim import sim_groups, sim_scenario

pytestmark = pytest.mark.timeout(60)


def test_killed_node_keeps_committed_offsets(sim_seed):
    """What was committed is there, and grows; a partition has one owner in a generation."""
    sim_scenario.run_seed(sim_seed, keep="page-cache", scenario_type=sim_groups.GroupScenario)


def test_power_loss_leaves_consistent_groups(sim_seed):
    """Commits may be lost with what was not flushed; nothing is there that was not sent, and members find their way back."""
    sim_scenario.run_seed(sim_seed, keep="flushed", scenario_type=sim_groups.GroupScenario)


def test_groups_with_failing_writes(sim_seed):
    """A commit that could not be written is error; what was acknowledged stays."""
    sim_scenario.run_seed(sim_seed, keep="page-cache", has_faults=True, scenario_type=sim_groups.GroupScenario)


def test_groups_with_batched_appends_and_failing_writes(sim_seed, monkeypatch):
    """What is held back until a turn's end is replayed before it is written: when the disk then fails, the shard is loaded anew."""
    monkeypatch.setattr(shard_driver, "IMMEDIATE_APPENDS_MAX", 0)
    sim_scenario.run_seed(sim_seed, keep="page-cache", has_faults=True, scenario_type=sim_groups.GroupScenario)
