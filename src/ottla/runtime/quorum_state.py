"""The file `quorum-state`: the epoch that this node last led or voted in, so that it never forgets one."""

import json
from typing import Any, NamedTuple

from ottla.base.ids import ZERO_UUID, uuid_text
from ottla.base.ports import Disk

FILE_NAME = "quorum-state"
NOBODY = -1


class CorruptQuorumState(Exception):
    """The file is there, but it does not say which epoch the node was in; guessing could elect two leaders."""


class QuorumState(NamedTuple):
    """`version` 0 is that of clusters whose voters stand in the configuration, 1 of those whose voters stand in the log."""

    leader_id: int
    leader_epoch: int
    version: int = 0
    voters: tuple[int, ...] = ()


def read_quorum_state(disk: Disk, directory: str) -> QuorumState | None:
    """None where the node has not been part of a quorum yet."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return None
    try:
        data = json.loads(disk.read(path))
        voters = tuple(int(voter["voterId"]) for voter in data.get("currentVoters") or ())
        return QuorumState(int(data["leaderId"]), int(data["leaderEpoch"]), int(data["data_version"]), voters)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptQuorumState(f"{path} cannot be read: {error!r}") from error


def write_quorum_state(disk: Disk, directory: str, state: QuorumState) -> None:
    """Returns once it is on the disk: nothing may be written in an epoch that could be forgotten."""
    data: dict[str, Any]
    if state.version == 0:
        data = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": NOBODY,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in state.voters],
            "data_version": 0,
        }
    else:
        data = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": NOBODY,
            "votedDirectoryId": uuid_text(ZERO_UUID),
            "data_version": 1,
        }
    disk.write_atomically(f"{directory}/{FILE_NAME}", json.dumps(data, separators=(",", ":")).encode())
