"""The log refuses, the coordinator moves, the memory is bounded."""

import pytest

import ottla.groups.join_group as join_group
from ottla.base.errors import ErrorCode
from ottla.groups.interface import GroupCall
from ottla.groups.responses import early_rejection, error_response
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from tests.unit.groups.scenario_runner import SETTINGS, ShardSpeaker, Talk
from tests.unit.groups.scenarios import (
    beat,
    commit,
    delete,
    describe,
    fetch,
    join_request,
    leave,
    stable_group,
    start_join,
    sync,
)

ERRORS = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
}


@pytest.fixture
def speaker() -> ShardSpeaker:
    return ShardSpeaker()


@pytest.fixture
def talk(speaker: ShardSpeaker) -> Talk:
    return Talk(speaker, "x-")


def state(talk: Talk) -> str:
    text: str = describe(talk, "o", "g").groups[0].group_state
    return text


@pytest.mark.parametrize(("error", "told"), ERRORS.items())
def test_a_refused_commit_says_so_and_changes_nothing(
    talk: Talk, speaker: ShardSpeaker, error: ErrorCode, told: ErrorCode
) -> None:
    speaker.refuse = error
    assert commit(talk, "a", "g", 8).topics[0].partitions[0].error_code == told
    assert state(talk) == "Dead"
    assert speaker.log == []


def test_a_group_that_could_not_be_stored_does_not_exist(talk: Talk, speaker: ShardSpeaker) -> None:
    speaker.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert talk.ask("a", join_request(talk, "g"), 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(talk) == "Dead"
    assert stable_group(talk, "g")["generation"] == 1


def test_assignments_that_could_not_be_stored_are_not_given_out(talk: Talk, speaker: ShardSpeaker) -> None:
    """Everyone hears of the error and joins again; in the next generation all is well."""
    ids = stable_group(talk, "g", 5, ("a", "b"))
    talk.send("a", join_request(talk, "g", ids["a"]), 5)
    talk.send("b", join_request(talk, "g", ids["b"]), 5)
    talk.receive("a")
    talk.receive("b")
    before = list(speaker.log)
    sync(talk, "b", "g", ids["b"], 3, 5)
    speaker.refuse = ErrorCode.KAFKA_STORAGE_ERROR
    sync(talk, "a", "g", ids["a"], 3, 5, {ids["a"]: b"1", ids["b"]: b"2"})
    assert [talk.receive(who).error_code for who in ("a", "b")] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_COORDINATOR,
    ]
    assert speaker.log == before
    assert state(talk) == "PreparingRebalance"
    talk.send("a", join_request(talk, "g", ids["a"]), 5)
    talk.send("b", join_request(talk, "g", ids["b"]), 5)
    assert [talk.receive(who).generation_id for who in ("a", "b")] == [4, 4]


def test_a_static_member_whose_new_id_could_not_be_stored_keeps_the_old_one(talk: Talk, speaker: ShardSpeaker) -> None:
    start_join(talk, "a", "g", 7, instance="one")
    first = talk.receive("a")
    sync(talk, "a", "g", first.member_id, 1, 5, {first.member_id: b"1"}, group_instance_id="one")
    talk.receive("a")
    speaker.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = talk.ask("b", join_request(talk, "g", instance="one", session_ms=900), 7)
    assert (refused.error_code, refused.member_id, refused.generation_id) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "",
        1,
    )
    assert refused.leader == first.member_id
    assert beat(talk, "a", "g", first.member_id, 1, 4, "one").error_code == 0
    talk.wait(29_999)
    assert state(talk) == "Stable"


def test_a_refused_tombstone_leaves_the_group(talk: Talk, speaker: ShardSpeaker) -> None:
    commit(talk, "a", "g", 8)
    speaker.refuse = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert delete(talk, "o", "g").results[0].error_code == ErrorCode.NOT_COORDINATOR
    assert fetch(talk, "a", "g").groups[0].topics[0].partitions[0].committed_offset == 7


def test_a_leave_that_could_not_be_stored_says_so(talk: Talk, speaker: ShardSpeaker) -> None:
    ids = stable_group(talk, "g")
    speaker.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert leave(talk, "a", "g", 4, (ids["a"], None)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(talk) == "Empty"


def test_members_of_a_loaded_group_get_a_full_session(talk: Talk, speaker: ShardSpeaker) -> None:
    """They go on with the generation that was stored, under the ids they had."""
    ids = stable_group(talk, "g", 5, ("a", "b"))
    talk.wait(29_000)
    speaker.restart()
    talk.wait(29_000)
    assert beat(talk, "a", "g", ids["a"], ids["generation"], 4).error_code == 0
    assert commit(talk, "a", "g", 8, ids["a"], ids["generation"]).topics[0].partitions[0].error_code == 0
    talk.wait(1_500)
    assert beat(talk, "b", "g", ids["b"], ids["generation"], 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(talk, "a", "g", ids["a"], ids["generation"], 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_those_who_wait_hear_that_the_coordinator_moved(talk: Talk, speaker: ShardSpeaker) -> None:
    ids = stable_group(talk, "g", 5, ("a", "b"))
    talk.send("b", join_request(talk, "g", ids["b"], session_ms=20_000, protocols=(("range", b"changed"),)), 7)
    start_join(talk, "c", "h", 5)
    waiting = talk.receive("c").member_id
    start_join(talk, "d", "h", 3)
    talk.send("c", join_request(talk, "h", waiting), 5)
    talk.receive("c")
    follower = talk.receive("d").member_id
    sync(talk, "d", "h", follower, 2, 4)
    speaker.restart()
    joined = talk.receive("b")
    assert (joined.error_code, joined.member_id) == (ErrorCode.NOT_COORDINATOR, ids["b"])
    assert talk.receive("d").error_code == ErrorCode.NOT_COORDINATOR


def test_a_loaded_group_above_the_limit_is_rebalanced(talk: Talk, speaker: ShardSpeaker) -> None:
    ids = stable_group(talk, "g", 5, ("a", "b", "c"))
    speaker._settings = SETTINGS._replace(group_max_size=2)
    speaker.restart()
    assert beat(talk, "a", "g", ids["a"], ids["generation"], 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    talk.send("a", join_request(talk, "g", ids["a"]), 5)
    talk.send("b", join_request(talk, "g", ids["b"]), 5)
    assert talk.ask("c", join_request(talk, "g", ids["c"]), 5).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_ids_that_nobody_uses_are_bounded(talk: Talk, speaker: ShardSpeaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the oldest is forgotten, so that one client cannot lock a group for others."""
    monkeypatch.setattr(join_group, "PENDING_MEMBERS_MAX", 3)
    given = [talk.ask("a", join_request(talk, "g"), 4).member_id for _ in range(5)]
    assert list(speaker.shard._groups["x-g"].pending_members) == given[2:]
    assert talk.ask("a", join_request(talk, "g", given[0]), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_twice_waits_once(talk: Talk, speaker: ShardSpeaker) -> None:
    """Its connection broke and it asks again on another; what asked first is answered, as nobody may wait for ever."""
    ids = stable_group(talk, "g", 5, ("a", "b"))
    talk.send("b", join_request(talk, "g", ids["b"], protocols=(("range", b"changed"),)), 5)
    talk.send("b again", join_request(talk, "g", ids["b"], protocols=(("range", b"changed"),)), 5)
    assert talk.receive("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    talk.send("a", join_request(talk, "g", ids["a"]), 5)
    assert talk.receive("b again").generation_id == talk.receive("a").generation_id == 3


def test_while_a_group_is_loading_heartbeats_are_well() -> None:
    assert error_response(HeartbeatRequest(group_id="g"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) == HeartbeatResponse()
    assert error_response(HeartbeatRequest(group_id="g"), ErrorCode.NOT_COORDINATOR) == HeartbeatResponse(error_code=16)


def test_what_no_shard_need_be_asked() -> None:
    call = GroupCall(JoinGroupRequest(group_id="g", session_timeout_ms=30_000), 5)
    assert early_rejection(call, SETTINGS) is None
    assert early_rejection(GroupCall(JoinGroupRequest(group_id="g", session_timeout_ms=1), 5), SETTINGS) is not None
