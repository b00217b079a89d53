"""What is counted of groups."""

from ottla.groups.interface import GroupStats
from tests.unit.groups.scenario_runner import SETTINGS, ShardSpeaker, Talk
from tests.unit.groups.scenarios import commit, leave, stable_group, start_join

MINUTE_MS = 60_000
NO_GROUPS = {"Empty": 0, "PreparingRebalance": 0, "CompletingRebalance": 0, "Stable": 0}


def counted(speaker: ShardSpeaker) -> dict[str, int]:
    counts = speaker.shard._metrics
    return {name: getattr(counts, name) for name in counts.__slots__}


def test_groups_are_counted_by_state() -> None:
    speaker = ShardSpeaker()
    talk = Talk(speaker, "x-")
    assert speaker.shard.stats() == GroupStats(NO_GROUPS, 0)
    stable_group(talk, "stable")
    commit(talk, "a", "only-offsets", 8)
    stable_group(talk, "grows", 3)
    start_join(talk, "b", "grows", 3)
    assert speaker.shard.stats() == GroupStats({**NO_GROUPS, "Empty": 1, "Stable": 1, "PreparingRebalance": 1}, 3)


def test_what_happens_is_counted() -> None:
    """A commit that is refused is none; the tombstone of a group is no expired offset; who leaves has not expired."""
    speaker = ShardSpeaker(
        SETTINGS._replace(offsets_retention_minutes=30, offsets_retention_check_interval_ms=10 * MINUTE_MS)
    )
    talk = Talk(speaker, "x-")
    ids = stable_group(talk, "g")
    commit(talk, "a", "g", 8, ids["a"], 1)
    commit(talk, "a", "g", 8, ids["a"], 1, partition=1)
    commit(talk, "a", "g", 8, ids["a"], 99)
    assert counted(speaker) == {"offset_commits": 2, "expired_offsets": 0, "expired_members": 0, "rebalances": 1}
    leave(talk, "a", "g", 3, (ids["a"], None))
    assert counted(speaker) == {"offset_commits": 2, "expired_offsets": 0, "expired_members": 0, "rebalances": 2}
    talk.wait(40 * MINUTE_MS)
    assert counted(speaker) == {"offset_commits": 2, "expired_offsets": 2, "expired_members": 0, "rebalances": 2}
    assert speaker.shard.stats() == GroupStats(NO_GROUPS, 0)


def test_a_member_that_is_not_heard_of_is_counted() -> None:
    speaker = ShardSpeaker()
    talk = Talk(speaker, "x-")
    stable_group(talk, "g", session_ms=30_000)
    talk.wait(30_000)
    assert counted(speaker) == {"offset_commits": 0, "expired_offsets": 0, "expired_members": 1, "rebalances": 2}
