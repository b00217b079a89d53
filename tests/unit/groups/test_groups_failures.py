"""Failed appends, coordinator failover and bounded memory."""

import pytest

import ottla.groups.join_group as join_group
from ottla.base.errors import ErrorCode
from ottla.groups.interface import GroupCall
from ottla.groups.responses import early_rejection, error_response
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from tests.unit.groups.group_requests import (
    commit,
    delete,
    describe,
    fetch,
    heartbeat,
    join_request,
    leave,
    stable_group,
    start_join,
    sync,
)
from tests.unit.groups.scenario_runner import SETTINGS, ScenarioRun, ShardBackend

ERRORS = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
}


@pytest.fixture
def backend() -> ShardBackend:
    return ShardBackend()


@pytest.fixture
def run(backend: ShardBackend) -> ScenarioRun:
    return ScenarioRun(backend, "x-")


def state(run: ScenarioRun) -> str:
    text: str = describe(run, "o", "g").groups[0].group_state
    return text


@pytest.mark.parametrize(("error", "expected"), ERRORS.items())
def test_failed_commit_returns_error_and_changes_nothing(
    run: ScenarioRun, backend: ShardBackend, error: ErrorCode, expected: ErrorCode
) -> None:
    backend.reject_next = error
    assert commit(run, "a", "g", 8).topics[0].partitions[0].error_code == expected
    assert state(run) == "Dead"
    assert backend.log == []


def test_group_does_not_exist_if_storing_it_fails(run: ScenarioRun, backend: ShardBackend) -> None:
    backend.reject_next = ErrorCode.NOT_ENOUGH_REPLICAS
    assert run.call("a", join_request(run, "g"), 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(run) == "Dead"
    assert stable_group(run, "g")["generation"] == 1


def test_assignments_are_not_sent_if_storing_them_fails(run: ScenarioRun, backend: ShardBackend) -> None:
    """All members get the error and rejoin; the next generation succeeds."""
    ids = stable_group(run, "g", 5, ("a", "b"))
    run.send("a", join_request(run, "g", ids["a"]), 5)
    run.send("b", join_request(run, "g", ids["b"]), 5)
    run.receive("a")
    run.receive("b")
    before = list(backend.log)
    sync(run, "b", "g", ids["b"], 3, 5)
    backend.reject_next = ErrorCode.KAFKA_STORAGE_ERROR
    sync(run, "a", "g", ids["a"], 3, 5, {ids["a"]: b"1", ids["b"]: b"2"})
    assert [run.receive(client).error_code for client in ("a", "b")] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_COORDINATOR,
    ]
    assert backend.log == before
    assert state(run) == "PreparingRebalance"
    run.send("a", join_request(run, "g", ids["a"]), 5)
    run.send("b", join_request(run, "g", ids["b"]), 5)
    assert [run.receive(client).generation_id for client in ("a", "b")] == [4, 4]


def test_static_member_keeps_old_id_if_storing_the_new_one_fails(run: ScenarioRun, backend: ShardBackend) -> None:
    start_join(run, "a", "g", 7, instance="one")
    first = run.receive("a")
    sync(run, "a", "g", first.member_id, 1, 5, {first.member_id: b"1"}, group_instance_id="one")
    run.receive("a")
    backend.reject_next = ErrorCode.NOT_ENOUGH_REPLICAS
    rejected = run.call("b", join_request(run, "g", instance="one", session_ms=900), 7)
    assert (rejected.error_code, rejected.member_id, rejected.generation_id) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "",
        1,
    )
    assert rejected.leader == first.member_id
    assert heartbeat(run, "a", "g", first.member_id, 1, 4, "one").error_code == 0
    run.wait(29_999)
    assert state(run) == "Stable"


def test_failed_delete_keeps_group(run: ScenarioRun, backend: ShardBackend) -> None:
    commit(run, "a", "g", 8)
    backend.reject_next = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert delete(run, "o", "g").results[0].error_code == ErrorCode.NOT_COORDINATOR
    assert fetch(run, "a", "g").groups[0].topics[0].partitions[0].committed_offset == 7


def test_leave_returns_error_if_storing_it_fails(run: ScenarioRun, backend: ShardBackend) -> None:
    ids = stable_group(run, "g")
    backend.reject_next = ErrorCode.NOT_ENOUGH_REPLICAS
    assert leave(run, "a", "g", 4, (ids["a"], None)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(run) == "Empty"


def test_members_of_loaded_group_get_full_session_timeout(run: ScenarioRun, backend: ShardBackend) -> None:
    """They keep the stored generation and their member ids."""
    ids = stable_group(run, "g", 5, ("a", "b"))
    run.wait(29_000)
    backend.restart()
    run.wait(29_000)
    assert heartbeat(run, "a", "g", ids["a"], ids["generation"], 4).error_code == 0
    assert commit(run, "a", "g", 8, ids["a"], ids["generation"]).topics[0].partitions[0].error_code == 0
    run.wait(1_500)
    assert heartbeat(run, "b", "g", ids["b"], ids["generation"], 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(run, "a", "g", ids["a"], ids["generation"], 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_pending_requests_fail_when_coordinator_moves(run: ScenarioRun, backend: ShardBackend) -> None:
    ids = stable_group(run, "g", 5, ("a", "b"))
    run.send("b", join_request(run, "g", ids["b"], session_ms=20_000, protocols=(("range", b"changed"),)), 7)
    start_join(run, "c", "h", 5)
    waiting = run.receive("c").member_id
    start_join(run, "d", "h", 3)
    run.send("c", join_request(run, "h", waiting), 5)
    run.receive("c")
    follower = run.receive("d").member_id
    sync(run, "d", "h", follower, 2, 4)
    backend.restart()
    joined = run.receive("b")
    assert (joined.error_code, joined.member_id) == (ErrorCode.NOT_COORDINATOR, ids["b"])
    assert run.receive("d").error_code == ErrorCode.NOT_COORDINATOR


def test_loaded_group_above_size_limit_rebalances(run: ScenarioRun, backend: ShardBackend) -> None:
    ids = stable_group(run, "g", 5, ("a", "b", "c"))
    backend._settings = SETTINGS._replace(group_max_size=2)
    backend.restart()
    assert heartbeat(run, "a", "g", ids["a"], ids["generation"], 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    run.send("a", join_request(run, "g", ids["a"]), 5)
    run.send("b", join_request(run, "g", ids["b"]), 5)
    assert run.call("c", join_request(run, "g", ids["c"]), 5).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_pending_member_ids_are_bounded(
    run: ScenarioRun, backend: ShardBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the oldest is dropped, so one client cannot lock others out of a group."""
    monkeypatch.setattr(join_group, "PENDING_MEMBERS_MAX", 3)
    given = [run.call("a", join_request(run, "g"), 4).member_id for _ in range(5)]
    assert list(backend.shard._groups["x-g"].pending_members) == given[2:]
    assert run.call("a", join_request(run, "g", given[0]), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_second_join_replaces_pending_join(run: ScenarioRun, backend: ShardBackend) -> None:
    """The member's connection broke and it rejoins on another; the first request is answered with an error."""
    ids = stable_group(run, "g", 5, ("a", "b"))
    run.send("b", join_request(run, "g", ids["b"], protocols=(("range", b"changed"),)), 5)
    run.send("b again", join_request(run, "g", ids["b"], protocols=(("range", b"changed"),)), 5)
    assert run.receive("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    run.send("a", join_request(run, "g", ids["a"]), 5)
    assert run.receive("b again").generation_id == run.receive("a").generation_id == 3


def test_heartbeats_succeed_while_loading() -> None:
    assert error_response(HeartbeatRequest(group_id="g"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) == HeartbeatResponse()
    assert error_response(HeartbeatRequest(group_id="g"), ErrorCode.NOT_COORDINATOR) == HeartbeatResponse(error_code=16)


def test_early_rejection() -> None:
    call = GroupCall(JoinGroupRequest(group_id="g", session_timeout_ms=30_000), 5)
    assert early_rejection(call, SETTINGS) is None
    assert early_rejection(GroupCall(JoinGroupRequest(group_id="g", session_timeout_ms=1), 5), SETTINGS) is not None
