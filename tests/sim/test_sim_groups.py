"""Groups on a simulated node that crashes at seeded times: partition ownership and committed offsets."""

import pytest

from ottla.runtime import shard_driver
from tests.sim import sim_groups, sim_scenario

pytestmark = pytest.mark.timeout(60)


def test_killed_node_keeps_committed_offsets(sim_seed):
    """Committed offsets stay and only grow; a partition has one owner per generation."""
    sim_scenario.run_seed(sim_seed, keep="page-cache", scenario_type=sim_groups.GroupScenario)


def test_power_loss_leaves_consistent_groups(sim_seed):
    """Unflushed commits may be lost; no other offsets appear, and members rejoin."""
    sim_scenario.run_seed(sim_seed, keep="flushed", scenario_type=sim_groups.GroupScenario)


def test_groups_with_failing_writes(sim_seed):
    """A failed commit is rejected; acknowledged ones stay."""
    sim_scenario.run_seed(sim_seed, keep="page-cache", has_faults=True, scenario_type=sim_groups.GroupScenario)


def test_groups_with_batched_appends_and_failing_writes(sim_seed, monkeypatch):
    """Batched records are replayed before they are appended: if the append fails, the shard is reloaded."""
    monkeypatch.setattr(shard_driver, "IMMEDIATE_APPENDS_MAX", 0)
    sim_scenario.run_seed(sim_seed, keep="page-cache", has_faults=True, scenario_type=sim_groups.GroupScenario)
