"""A node over simulated ports, crashed at seeded moments. A failure is replayed by `pytest tests/sim --seed N`."""

import os
import subprocess
import sys

import pytest

from tests.sim import sim_scenario

pytestmark = pytest.mark.timeout(60)  # a seed takes less than a second: one that spins should not hold up the others


def test_killed_node_keeps_acked_records(sim_seed):
    """The page cache survives a dead process, and so does everything that was answered."""
    world = sim_scenario.run_seed(sim_seed, keep="page-cache")
    assert world.trace.count > 1000


def test_power_loss_leaves_consistent_log(sim_seed):
    """What was not flushed may be lost, but what is left was sent, whole, in order, without gaps; topics are all there."""
    sim_scenario.run_seed(sim_seed, keep="flushed")


def test_failing_writes_lose_only_rejected_batches(sim_seed):
    """A full or failing disk: the one batch is not acked, or the node says that it cannot leave on; what was acked stays."""
    sim_scenario.run_seed(sim_seed, keep="page-cache", has_faults=True)


def test_equal_seeds_give_equal_traces():
    """In processes of their on_assigned, with hashes of their on_assigned: nothing depends on the order of a set or on an address."""
    digests = []
    for hash_seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-m", "tests.sim.sim_scenario", "--seed", "1"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        digests.append(result.stdout)
    assert digests[0] == digests[1]
