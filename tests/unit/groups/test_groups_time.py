"""What time does to groups: the first rebalance waits for more members, and offsets are forgotten."""

import pytest

from ottla.groups.interface import GroupSettings
from ottla.wire.records.group import CommittedOffset, group_key, offset_key, offset_value
from tests.unit.groups.scenario_runner import SETTINGS, START_MS, TOPIC_IDS, ShardSpeaker, Talk
from tests.unit.groups.scenarios import commit, fetch, leave, stable_group, start_join

MINUTE_MS = 60_000
RETENTION = SETTINGS._replace(offsets_retention_minutes=30, offsets_retention_check_interval_ms=10 * MINUTE_MS)


def talking(settings: GroupSettings = RETENTION) -> tuple[Talk, ShardSpeaker]:
    speaker = ShardSpeaker(settings)
    return Talk(speaker, "x-"), speaker


def committed(talk: Talk) -> dict[str, int]:
    """The offsets that a group has, by topic and partition."""
    response = fetch(talk, "f", "g", topics=None)
    return {
        f"{topic.name}-{part.partition_index}": part.committed_offset
        for topic in response.groups[0].topics
        for part in topic.partitions
    }


def known(speaker: ShardSpeaker) -> list[str]:
    return sorted(speaker.shard._groups)


def test_the_first_rebalance_waits_for_more_members_but_not_for_ever() -> None:
    """Each member that comes extends it by the delay, up to the rebalance timeout."""
    talk, speaker = talking(SETTINGS._replace(group_initial_rebalance_delay_ms=3_000))
    start_join(talk, "a", "g", 3, rebalance_ms=7_000)
    for at, who in enumerate(("b", "c")):
        talk.wait(2_900)
        assert not speaker.answers, at
        start_join(talk, who, "g", 3, rebalance_ms=7_000)
    talk.wait(1_199)  # 6,999 ms since the first: 3,000 + 3,000 + 1,000 are allowed
    assert not speaker.answers
    talk.wait(1)
    assert sorted(speaker.answers) == ["a", "b", "c"]
    assert len(talk.receive("a").members) == 3


def test_the_first_rebalance_ends_after_the_delay_where_nobody_else_comes() -> None:
    talk, speaker = talking(SETTINGS._replace(group_initial_rebalance_delay_ms=3_000))
    start_join(talk, "a", "g", 3)
    talk.wait(2_999)
    assert not speaker.answers
    talk.wait(1)
    assert talk.receive("a").generation_id == 1


def test_a_member_in_its_first_join_is_given_up_after_five_minutes() -> None:
    """It does not know its id, so it cannot be heard of; the group goes back to having no members."""
    talk, speaker = talking()
    ids = stable_group(talk, "g", 3, rebalance_ms=1_000_000)
    start_join(talk, "b", "g", 3)
    for _ in range(15):
        talk.wait(19_999)
        assert "b" not in speaker.answers
        commit(talk, "a", "g", 8, ids["a"], 1)  # keeps the session without joining
    talk.wait(15)
    assert talk.receive("b").error_code == 25


def test_offsets_of_an_empty_group_expire_when_it_has_been_empty_for_the_retention() -> None:
    talk, speaker = talking()
    ids = stable_group(talk, "g")
    commit(talk, "a", "g", 8, ids["a"], 1)
    for _ in range(20):
        talk.wait(20_000)
        commit(talk, "a", "g", 8, ids["a"], 1, partition=1)
    leave(talk, "a", "g", 3, (ids["a"], None))
    talk.wait(20 * MINUTE_MS)
    assert committed(talk) == {"t1-0": 7, "t1-1": 7}
    talk.wait(20 * MINUTE_MS)
    assert committed(talk) == {}
    assert known(speaker) == []
    assert [record.key for record in speaker.log[-3:]] == [
        offset_key("x-g", "t1", 0),
        offset_key("x-g", "t1", 1),
        group_key("x-g"),
    ]
    assert [record.value for record in speaker.log[-3:]] == [None, None, None]


def test_offsets_of_topics_that_members_read_are_kept_and_others_expire() -> None:
    """A stable consumer group that stopped reading a topic loses its offsets there, counted from their commits."""
    talk, _ = talking()
    ids = stable_group(talk, "g", session_ms=1_800_000)
    commit(talk, "a", "g", 8, ids["a"], 1, topic="t1")
    commit(talk, "a", "g", 8, ids["a"], 1, topic="t2")
    talk.wait(20 * MINUTE_MS)
    commit(talk, "a", "g", 8, ids["a"], 1, topic="t2", partition=1)
    assert committed(talk) == {"t1-0": 7, "t2-0": 7, "t2-1": 7}
    talk.wait(20 * MINUTE_MS)
    assert committed(talk) == {"t1-0": 7, "t2-1": 7}


def test_offsets_are_kept_while_a_group_rebalances() -> None:
    """What its members will read is not known then (KAFKA-13636)."""
    talk, speaker = talking()
    ids = stable_group(talk, "g", session_ms=1_800_000, rebalance_ms=100 * MINUTE_MS)
    commit(talk, "a", "g", 8, ids["a"], 1, topic="t2")
    start_join(talk, "b", "g", 3, rebalance_ms=100 * MINUTE_MS)
    for _ in range(10):
        talk.wait(4 * MINUTE_MS)
        commit(talk, "a", "g", 8, ids["a"], 1, topic="t1")
        if "b" in speaker.answers:  # it was given up, as it has waited for five minutes
            talk.receive("b")
            start_join(talk, "b", "g", 3, rebalance_ms=100 * MINUTE_MS)
    assert committed(talk) == {"t1-0": 7, "t2-0": 7}


def test_offsets_of_groups_without_members_expire_by_their_commits() -> None:
    talk, speaker = talking()
    commit(talk, "a", "g", 8)
    talk.wait(25 * MINUTE_MS)
    commit(talk, "a", "g", 8, partition=1)
    talk.wait(10 * MINUTE_MS)
    assert committed(talk) == {"t1-1": 7}
    talk.wait(30 * MINUTE_MS)
    assert known(speaker) == []


def test_offsets_with_a_time_of_their_own_expire_then() -> None:
    """As old clients could ask; the retention of the broker does not count for them."""
    talk, _ = talking()
    commit(talk, "a", "g", 2, retention_ms=5 * MINUTE_MS)
    commit(talk, "a", "g", 2, partition=1, retention_ms=100 * MINUTE_MS)
    talk.wait(10 * MINUTE_MS)
    assert committed(talk) == {"t1-1": 7}
    talk.wait(80 * MINUTE_MS)
    assert committed(talk) == {"t1-1": 7}


def test_offsets_of_an_open_transaction_keep_offset_and_group() -> None:
    """Neither the offset nor its group goes while a transaction may still commit it (KAFKA-19163)."""
    talk, speaker = talking()
    commit(talk, "a", "g", 8)
    value = offset_value(CommittedOffset(9, 0, "", START_MS))
    speaker.shard.replay(100, offset_key("x-g", "t1", 0), value, 5)
    assert fetch(talk, "f", "g", stable=True).groups[0].topics[0].partitions[0].error_code == 88
    talk.wait(100 * MINUTE_MS)
    assert committed(talk) == {"t1-0": 7}
    speaker.shard.end_transaction(5, committed=True)
    assert committed(talk) == {"t1-0": 9}
    talk.wait(10 * MINUTE_MS)
    assert known(speaker) == []


@pytest.mark.parametrize("committed_last", [True, False])
def test_of_two_ways_to_commit_the_later_record_counts(committed_last: bool) -> None:
    """Whenever the transaction ends (KAFKA-17306)."""
    talk, speaker = talking()
    pending = (offset_key("x-g", "t1", 0), offset_value(CommittedOffset(9, 0, "", START_MS)))
    plain = (offset_key("x-g", "t1", 0), offset_value(CommittedOffset(4, 0, "", START_MS)))
    first, second = ((pending, 5), (plain, -1)) if not committed_last else ((plain, -1), (pending, 5))
    for offset, ((key, value), producer_id) in enumerate((first, second)):
        speaker.shard.replay(offset, key, value, producer_id)
    speaker.shard.end_transaction(5, committed=True)
    assert committed(talk) == {"t1-0": 9 if committed_last else 4}


def test_an_aborted_transaction_leaves_nothing() -> None:
    talk, speaker = talking()
    speaker.shard.replay(0, offset_key("x-g", "t1", 0), offset_value(CommittedOffset(9, 0, "", START_MS)), 5)
    speaker.shard.end_transaction(5, committed=False)
    assert committed(talk) == {}


def test_offsets_of_a_deleted_topic_are_forgotten_and_those_of_its_successor_kept() -> None:
    """A topic that is made again under its name begins without offsets (KAFKA-12257)."""
    talk, speaker = talking()
    commit(talk, "a", "g", 9, topic="t1")
    commit(talk, "a", "g", 9, topic="t2")
    speaker.shard.replay(
        99, offset_key("x-g", "t1", 1), offset_value(CommittedOffset(3, 0, "", START_MS, -1, b"n" * 16))
    )
    decision = speaker.shard.on_topics_deleted([("t1", TOPIC_IDS["t1"])])
    assert decision.records == ((offset_key("x-g", "t1", 0), None),)
    response = fetch(talk, "f", "g", topics=("t1",), version=10)  # asked by the id of the deleted one
    assert [part.committed_offset for part in response.groups[0].topics[0].partitions] == [7, -1]


def test_expiry_goes_through_many_groups_in_parts() -> None:
    speaker = ShardSpeaker(RETENTION)
    for at in range(1_200):
        speaker.shard.replay(at, offset_key(f"group-{at}", "t1", 0), offset_value(CommittedOffset(1, 0, "", START_MS)))
    now_ms = START_MS + 50 * MINUTE_MS
    sizes = [len(speaker.shard.on_deadline(now_ms).records) for _ in range(4)]
    assert sizes == [1_000, 1_000, 400, 0]
    assert speaker.shard.next_deadline_ms() == now_ms + 10 * MINUTE_MS
