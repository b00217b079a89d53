"""Group metrics and stats."""

from ottla.groups.interface import GroupStats
from tests.unit.groups.group_requests import commit, leave, stable_group, start_join
from tests.unit.groups.scenario_runner import SETTINGS, ScenarioRun, ShardBackend

MINUTE_MS = 60_000
NO_GROUPS = {"Empty": 0, "PreparingRebalance": 0, "CompletingRebalance": 0, "Stable": 0}


def counted(backend: ShardBackend) -> dict[str, int]:
    counts = backend.shard._metrics
    return {name: getattr(counts, name) for name in counts.__slots__}


def test_stats_count_groups_by_state() -> None:
    backend = ShardBackend()
    run = ScenarioRun(backend, "x-")
    assert backend.shard.stats() == GroupStats(NO_GROUPS, 0)
    stable_group(run, "stable")
    commit(run, "a", "only-offsets", 8)
    stable_group(run, "grows", 3)
    start_join(run, "b", "grows", 3)
    assert backend.shard.stats() == GroupStats({**NO_GROUPS, "Empty": 1, "Stable": 1, "PreparingRebalance": 1}, 3)


def test_metrics_count_events() -> None:
    """Rejected commits, group tombstones and members that leave are not counted."""
    backend = ShardBackend(
        SETTINGS._replace(offsets_retention_minutes=30, offsets_retention_check_interval_ms=10 * MINUTE_MS)
    )
    run = ScenarioRun(backend, "x-")
    ids = stable_group(run, "g")
    commit(run, "a", "g", 8, ids["a"], 1)
    commit(run, "a", "g", 8, ids["a"], 1, partition=1)
    commit(run, "a", "g", 8, ids["a"], 99)
    assert counted(backend) == {"offset_commits": 2, "expired_offsets": 0, "expired_members": 0, "rebalances": 1}
    leave(run, "a", "g", 3, (ids["a"], None))
    assert counted(backend) == {"offset_commits": 2, "expired_offsets": 0, "expired_members": 0, "rebalances": 2}
    run.wait(40 * MINUTE_MS)
    assert counted(backend) == {"offset_commits": 2, "expired_offsets": 2, "expired_members": 0, "rebalances": 2}
    assert backend.shard.stats() == GroupStats(NO_GROUPS, 0)


def test_metrics_count_expired_members() -> None:
    backend = ShardBackend()
    run = ScenarioRun(backend, "x-")
    stable_group(run, "g", session_ms=30_000)
    run.wait(30_000)
    assert counted(backend) == {"offset_commits": 0, "expired_offsets": 0, "expired_members": 1, "rebalances": 2}
