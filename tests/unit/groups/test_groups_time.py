"""Initial rebalance delay and offset expiration."""

import pytest

from ottla.groups.interface import GroupSettings
from ottla.wire.records.group import CommittedOffset, group_key, offset_key, offset_value
from tests.unit.groups.group_requests import commit, fetch, leave, stable_group, start_join
from tests.unit.groups.scenario_runner import SETTINGS, START_MS, TOPIC_IDS, ScenarioRun, ShardBackend

MINUTE_MS = 60_000
RETENTION = SETTINGS._replace(offsets_retention_minutes=30, offsets_retention_check_interval_ms=10 * MINUTE_MS)


def new_run(settings: GroupSettings = RETENTION) -> tuple[ScenarioRun, ShardBackend]:
    backend = ShardBackend(settings)
    return ScenarioRun(backend, "x-"), backend


def committed(run: ScenarioRun) -> dict[str, int]:
    """Return the group's offsets by topic-partition."""
    response = fetch(run, "f", "g", topics=None)
    return {
        f"{topic.name}-{part.partition_index}": part.committed_offset
        for topic in response.groups[0].topics
        for part in topic.partitions
    }


def known(backend: ShardBackend) -> list[str]:
    return sorted(backend.shard._groups)


def test_initial_delay_is_extended_up_to_rebalance_timeout() -> None:
    """Each joining member extends the wait by the delay."""
    run, backend = new_run(SETTINGS._replace(group_initial_rebalance_delay_ms=3_000))
    start_join(run, "a", "g", 3, rebalance_ms=7_000)
    for at, client in enumerate(("b", "c")):
        run.wait(2_900)
        assert not backend.responses, at
        start_join(run, client, "g", 3, rebalance_ms=7_000)
    run.wait(1_199)  # 6,999 ms since the first: 3,000 + 3,000 + 1,000 are allowed
    assert not backend.responses
    run.wait(1)
    assert sorted(backend.responses) == ["a", "b", "c"]
    assert len(run.receive("a").members) == 3


def test_initial_rebalance_ends_after_delay() -> None:
    run, backend = new_run(SETTINGS._replace(group_initial_rebalance_delay_ms=3_000))
    start_join(run, "a", "g", 3)
    run.wait(2_999)
    assert not backend.responses
    run.wait(1)
    assert run.receive("a").generation_id == 1


def test_member_in_first_join_is_removed_after_five_minutes() -> None:
    """It does not know its id, so it cannot send heartbeats."""
    run, backend = new_run()
    ids = stable_group(run, "g", 3, rebalance_ms=1_000_000)
    start_join(run, "b", "g", 3)
    for _ in range(15):
        run.wait(19_999)
        assert "b" not in backend.responses
        commit(run, "a", "g", 8, ids["a"], 1)  # keeps the session alive without rejoining
    run.wait(15)
    assert run.receive("b").error_code == 25


def test_offsets_of_empty_group_expire_after_retention() -> None:
    run, backend = new_run()
    ids = stable_group(run, "g")
    commit(run, "a", "g", 8, ids["a"], 1)
    for _ in range(20):
        run.wait(20_000)
        commit(run, "a", "g", 8, ids["a"], 1, partition=1)
    leave(run, "a", "g", 3, (ids["a"], None))
    run.wait(20 * MINUTE_MS)
    assert committed(run) == {"t1-0": 7, "t1-1": 7}
    run.wait(20 * MINUTE_MS)
    assert committed(run) == {}
    assert known(backend) == []
    assert [record.key for record in backend.log[-3:]] == [
        offset_key("x-g", "t1", 0),
        offset_key("x-g", "t1", 1),
        group_key("x-g"),
    ]
    assert [record.value for record in backend.log[-3:]] == [None, None, None]


def test_offsets_of_unsubscribed_topics_expire() -> None:
    """In a stable group, offsets of topics no member subscribes to expire, counted from their commits."""
    run, _ = new_run()
    ids = stable_group(run, "g", session_ms=1_800_000)
    commit(run, "a", "g", 8, ids["a"], 1, topic="t1")
    commit(run, "a", "g", 8, ids["a"], 1, topic="t2")
    run.wait(20 * MINUTE_MS)
    commit(run, "a", "g", 8, ids["a"], 1, topic="t2", partition=1)
    assert committed(run) == {"t1-0": 7, "t2-0": 7, "t2-1": 7}
    run.wait(20 * MINUTE_MS)
    assert committed(run) == {"t1-0": 7, "t2-1": 7}


def test_offsets_do_not_expire_during_rebalance() -> None:
    """The members' subscriptions are unknown during a rebalance (KAFKA-13636)."""
    run, backend = new_run()
    ids = stable_group(run, "g", session_ms=1_800_000, rebalance_ms=100 * MINUTE_MS)
    commit(run, "a", "g", 8, ids["a"], 1, topic="t2")
    start_join(run, "b", "g", 3, rebalance_ms=100 * MINUTE_MS)
    for _ in range(10):
        run.wait(4 * MINUTE_MS)
        commit(run, "a", "g", 8, ids["a"], 1, topic="t1")
        if "b" in backend.responses:  # removed after five minutes in its first join
            run.receive("b")
            start_join(run, "b", "g", 3, rebalance_ms=100 * MINUTE_MS)
    assert committed(run) == {"t1-0": 7, "t2-0": 7}


def test_offsets_without_members_expire_by_commit_time() -> None:
    run, backend = new_run()
    commit(run, "a", "g", 8)
    run.wait(25 * MINUTE_MS)
    commit(run, "a", "g", 8, partition=1)
    run.wait(10 * MINUTE_MS)
    assert committed(run) == {"t1-1": 7}
    run.wait(30 * MINUTE_MS)
    assert known(backend) == []


def test_offsets_expire_at_requested_retention_time() -> None:
    """A retention time in the request (old clients) overrides the broker's."""
    run, _ = new_run()
    commit(run, "a", "g", 2, retention_ms=5 * MINUTE_MS)
    commit(run, "a", "g", 2, partition=1, retention_ms=100 * MINUTE_MS)
    run.wait(10 * MINUTE_MS)
    assert committed(run) == {"t1-1": 7}
    run.wait(80 * MINUTE_MS)
    assert committed(run) == {"t1-1": 7}


def test_open_transaction_prevents_offset_expiration() -> None:
    """Neither the offset nor its group expires while a transaction may commit it (KAFKA-19163)."""
    run, backend = new_run()
    commit(run, "a", "g", 8)
    value = offset_value(CommittedOffset(9, 0, "", START_MS))
    backend.shard.replay(100, offset_key("x-g", "t1", 0), value, 5)
    assert fetch(run, "f", "g", stable=True).groups[0].topics[0].partitions[0].error_code == 88
    run.wait(100 * MINUTE_MS)
    assert committed(run) == {"t1-0": 7}
    backend.shard.end_transaction(5, committed=True)
    assert committed(run) == {"t1-0": 9}
    run.wait(10 * MINUTE_MS)
    assert known(backend) == []


@pytest.mark.parametrize("committed_last", [True, False])
def test_later_record_of_transactional_and_plain_commit_wins(committed_last: bool) -> None:
    """Regardless of when the transaction ends (KAFKA-17306)."""
    run, backend = new_run()
    pending = (offset_key("x-g", "t1", 0), offset_value(CommittedOffset(9, 0, "", START_MS)))
    plain = (offset_key("x-g", "t1", 0), offset_value(CommittedOffset(4, 0, "", START_MS)))
    first, second = ((pending, 5), (plain, -1)) if not committed_last else ((plain, -1), (pending, 5))
    for offset, ((key, value), producer_id) in enumerate((first, second)):
        backend.shard.replay(offset, key, value, producer_id)
    backend.shard.end_transaction(5, committed=True)
    assert committed(run) == {"t1-0": 9 if committed_last else 4}


def test_aborted_transaction_commits_no_offsets() -> None:
    run, backend = new_run()
    backend.shard.replay(0, offset_key("x-g", "t1", 0), offset_value(CommittedOffset(9, 0, "", START_MS)), 5)
    backend.shard.end_transaction(5, committed=False)
    assert committed(run) == {}


def test_topic_deletion_removes_only_offsets_of_its_id() -> None:
    """A topic recreated with the same name starts without offsets (KAFKA-12257)."""
    run, backend = new_run()
    commit(run, "a", "g", 9, topic="t1")
    commit(run, "a", "g", 9, topic="t2")
    backend.shard.replay(
        99, offset_key("x-g", "t1", 1), offset_value(CommittedOffset(3, 0, "", START_MS, -1, b"n" * 16))
    )
    decision = backend.shard.on_topics_deleted([("t1", TOPIC_IDS["t1"])])
    assert decision.records == ((offset_key("x-g", "t1", 0), None),)
    response = fetch(run, "f", "g", topics=("t1",), version=10)  # by the deleted topic's id
    assert [part.committed_offset for part in response.groups[0].topics[0].partitions] == [7, -1]


def test_offset_expiration_is_split_over_calls() -> None:
    backend = ShardBackend(RETENTION)
    for at in range(1_200):
        backend.shard.replay(at, offset_key(f"group-{at}", "t1", 0), offset_value(CommittedOffset(1, 0, "", START_MS)))
    now_ms = START_MS + 50 * MINUTE_MS
    sizes = [len(backend.shard.on_deadline(now_ms).records) for _ in range(4)]
    assert sizes == [1_000, 1_000, 400, 0]
    assert backend.shard.next_deadline_ms() == now_ms + 10 * MINUTE_MS
