"""A simulated node that crashes at seeded times. Replay a failure with `pytest tests/sim --seed N`."""

import os
import subprocess
import sys

import pytest

from tests.sim import sim_scenario

pytestmark = pytest.mark.timeout(60)  # a seed takes less than a second; stop one that does not end


def test_killed_node_keeps_acked_records(sim_seed):
    """The page cache survives the process, and with it everything that was acknowledged."""
    world = sim_scenario.run_seed(sim_seed, keep="page-cache")
    assert world.trace.count > 1000


def test_power_loss_leaves_consistent_log(sim_seed):
    """Unflushed records may be lost; the rest is complete, in order and without gaps, and all topics exist."""
    sim_scenario.run_seed(sim_seed, keep="flushed")


def test_failing_writes_lose_only_rejected_batches(sim_seed):
    """On a full or failing disk a batch is rejected, or the node stops; acknowledged records stay."""
    sim_scenario.run_seed(sim_seed, keep="page-cache", has_faults=True)


def test_equal_seeds_give_equal_traces():
    """In separate processes with different hash seeds: nothing depends on set order or addresses."""
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
