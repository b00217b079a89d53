"""Open a metadata log: its newest valid snapshot, its `quorum-state` file, and the segments after the snapshot."""

import json
import logging
from itertools import pairwise
from typing import Any, NamedTuple

from ottla.base.ids import METADATA_TOPIC_ID, ZERO_UUID, uuid_text
from ottla.base.ports import Clock, Disk
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.runtime.snapshot_writer import SNAPSHOTS_RETAINED
from ottla.runtime.snapshots import CorruptSnapshot, Snapshot, SnapshotId, decode_snapshot, list_snapshots

QUORUM_STATE_FILE = "quorum-state"
NOT_VOTED = -1

log = logging.getLogger("ottla.metadata")


class CorruptMetadataLog(Exception):
    """The log, its newest snapshot or its quorum state cannot be read, or it belongs to a quorum with other voters."""


class CorruptQuorumState(CorruptMetadataLog):
    """The file `quorum-state` exists, but its epoch cannot be read. Guessing an epoch could elect two leaders."""


def load_snapshot(disk: Disk, directory: str) -> tuple[SnapshotId | None, Snapshot | None]:
    """Return the newest valid snapshot.

    The log is retained from the end of the previous snapshot, so falling back to that one costs time but loses no data.
    """
    corrupt = None
    for snapshot_id in reversed(list_snapshots(disk, directory)):
        path = f"{directory}/{snapshot_id.file_name}"
        try:
            return snapshot_id, decode_snapshot(disk.read(path))
        except CorruptSnapshot as error:
            log.warning("ignoring corrupt snapshot %s: %s", path, error)
            corrupt = corrupt or CorruptMetadataLog(f"snapshot {path} is corrupt and there is no older one: {error}")
    if corrupt is not None:
        raise corrupt
    return None, None


def open_log(
    disk: Disk, directory: str, config: LogConfig, clock: Clock, clean: bool, snapshot_id: SnapshotId | None
) -> PartitionLog:
    """Open the log, after deleting the segments that the older retained snapshot covers."""

    def open_segments() -> PartitionLog:
        return PartitionLog.open(
            disk, directory, config=config, topic_id=METADATA_TOPIC_ID, now_ms=clock.now_ms(), clean=clean
        )

    _delete_covered_segments(disk, directory)
    found = open_segments()
    if snapshot_id is None or found.log_end_offset >= snapshot_id.end_offset:
        return found
    # The log ends before its snapshot, which contains all its records: start a new log at the end of the snapshot.
    found.release_files()
    for name in disk.list(directory):
        if _is_segment_file(name):
            disk.remove(f"{directory}/{name}")
    disk.open(f"{directory}/{snapshot_id.end_offset:020d}.log", create=True).close()
    return open_segments()


def _delete_covered_segments(disk: Disk, directory: str) -> None:
    """Delete the segments whose records are all in the older retained snapshot."""
    retained = list_snapshots(disk, directory)[-SNAPSHOTS_RETAINED:]
    if len(retained) < SNAPSHOTS_RETAINED:
        return
    names = [name for name in disk.list(directory) if _is_segment_file(name)]
    bases = sorted(int(name[:20]) for name in names if name.endswith(".log"))
    covered = {base for base, following in pairwise(bases) if following <= retained[0].end_offset}
    for name in names:
        if int(name[:20]) in covered:
            disk.remove(f"{directory}/{name}")


def _is_segment_file(name: str) -> bool:
    stem, dot, suffix = name.partition(".")
    return bool(dot) and len(stem) == 20 and stem.isdecimal() and suffix in ("log", "index", "timeindex", "snapshot")


# The file quorum-state


class QuorumState(NamedTuple):
    """The epoch that this node last led or voted in.

    In `version` 0 the cluster's voters are in its configuration and in this file, in version 1 they are in the log.
    """

    leader_id: int
    leader_epoch: int
    version: int = 0
    voters: tuple[int, ...] = ()


def load_quorum_state(disk: Disk, directory: str, node_id: int, snapshot: Snapshot | None) -> QuorumState:
    """Return the state from the file, or epoch 0 for a new node. CorruptMetadataLog if the quorum has other voters."""
    state = read_quorum_state(disk, directory)
    if state is None:
        version = 1 if snapshot is not None and snapshot.kraft_version > 0 else 0
        state = QuorumState(node_id, 0, version)
    voters = list(state.voters)
    if snapshot is not None and snapshot.voters is not None:
        voters += [voter.voter_id for voter in snapshot.voters.voters]
    others = sorted({voter for voter in voters if voter != node_id})
    if others:
        raise CorruptMetadataLog(
            f"{directory} belongs to a quorum with other voters {others}; "
            f"node {node_id} supports only a quorum of itself"
        )
    return state


def read_quorum_state(disk: Disk, directory: str) -> QuorumState | None:
    """Return None if the node has not been part of a quorum yet."""
    path = f"{directory}/{QUORUM_STATE_FILE}"
    if not disk.exists(path):
        return None
    try:
        data = json.loads(disk.read(path))
        voters = tuple(int(voter["voterId"]) for voter in data.get("currentVoters") or ())
        return QuorumState(int(data["leaderId"]), int(data["leaderEpoch"]), int(data["data_version"]), voters)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptQuorumState(f"{path} is corrupt: {error!r}") from error


def write_quorum_state(disk: Disk, directory: str, state: QuorumState) -> None:
    """Write and fsync the file. Call before writing anything in a new epoch, so that the epoch cannot be lost."""
    data: dict[str, Any]
    if state.version == 0:
        data = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": NOT_VOTED,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in state.voters],
            "data_version": 0,
        }
    else:
        data = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": NOT_VOTED,
            "votedDirectoryId": uuid_text(ZERO_UUID),
            "data_version": 1,
        }
    disk.write_atomically(f"{directory}/{QUORUM_STATE_FILE}", json.dumps(data, separators=(",", ":")).encode())
