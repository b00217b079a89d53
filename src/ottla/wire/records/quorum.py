"""The quorum state file: whom a node voted for and in which epoch; on disk it is one line of JSON."""

from typing import Any

from ottla.base.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_text
from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import Message, array, encode, i32, i64, string, uuid


class Voter(Message):
    voter_id: int = i32("0", default=0)


class QuorumStateData(Message):
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0

    cluster_id: str = string("0", default="")
    leader_id: int = i32("0+", default=-1)
    leader_epoch: int = i32("0+", default=-1)
    voted_id: int = i32("0+", default=-1)
    voted_directory_id: Uuid = uuid("1+", default=ZERO_UUID)
    applied_offset: int = i64("0", default=0)
    current_voters: list[Voter] | None = array(Voter, "0", nullable="0", default=())


def write_quorum_state(state: QuorumStateData, version: int) -> bytes:
    """The content of the file; ValueError where the version has no place for a value."""
    import json  # only the file of a starting or voting node needs it

    encode(state, version)  # refuses what the version cannot hold, by the rules that hold on the wire
    known = {
        "clusterId": state.cluster_id,
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": uuid_text(state.voted_directory_id),
        "appliedOffset": state.applied_offset,
        "currentVoters": None
        if state.current_voters is None
        else [{"voterId": voter.voter_id} for voter in state.current_voters],
    }
    values = {name: known[name] for name in _NAMES[version]}
    return json.dumps({**values, "data_version": version}, separators=(",", ":")).encode()


def read_quorum_state(content: bytes) -> tuple[QuorumStateData, int]:
    """The state in a file and the version it was written in; MalformedMessage where it is not such a file."""
    import json  # as above

    try:
        values = json.loads(content)
        version = values["data_version"]
        names = _NAMES[version]
        return _state({name: values[name] for name in names}), version
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MalformedMessage(f"not a quorum state: {error!r}") from error


_NAMES = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}
"""What the file of a version holds, in the order in which it is written."""


def _state(values: dict[str, Any]) -> QuorumStateData:
    state = QuorumStateData(
        leader_id=values["leaderId"], leader_epoch=values["leaderEpoch"], voted_id=values["votedId"]
    )
    version = 1
    if "clusterId" in values:
        version = 0
        state.cluster_id = values["clusterId"]
        state.applied_offset = values["appliedOffset"]
        voters = values["currentVoters"]
        state.current_voters = None if voters is None else [Voter(voter["voterId"]) for voter in voters]
    else:
        state.voted_directory_id = uuid_from_text(values["votedDirectoryId"])
    encode(state, version)  # a value of the wrong type or size is found here
    return state
