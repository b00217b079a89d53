"""The quorum state file as a message, used by tests. `runtime/metadata_log_loader.py` reads and writes the file."""

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
    """Return the content of the file. Raises ValueError if the version cannot express a value."""
    import json  # only starting and voting nodes need it

    encode(state, version)  # rejects what the version cannot express on the wire either
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
    """Parse the file; also return its version. Raises MalformedMessage if it is not a quorum state file."""
    import json  # only starting and voting nodes need it

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
"""The JSON names of each version, in the order of Kafka's file."""


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
    encode(state, version)  # rejects values of the wrong type or size
    return state
