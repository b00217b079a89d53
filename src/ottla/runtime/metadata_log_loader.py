"""What a metadata log finds on the disk when it is opened: its newest snapshot, the last epoch, the segments that are still needed."""

import logging
from itertools import pairwise

from ottla.base.ids import METADATA_TOPIC_ID
from ottla.base.ports import Clock, Disk
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.runtime.quorum_state import CorruptQuorumState, QuorumState, read_quorum_state
from ottla.runtime.snapshot_writer import KEPT_MAX
from ottla.runtime.snapshots import CorruptSnapshot, Snapshot, SnapshotId, decode_snapshot, list_snapshots

log = logging.getLogger("ottla.metadata")


class CorruptMetadataLog(Exception):
    """The log or its newest snapshot cannot be read, or belongs to a quorum of which this node is not the only voter."""


def load_snapshot(disk: Disk, directory: str) -> tuple[SnapshotId | None, Snapshot | None]:
    """The newest that is whole. The log is kept from the one before it on, so that one damaged file costs time but no data."""
    damage = None
    for snapshot_id in reversed(list_snapshots(disk, directory)):
        path = f"{directory}/{snapshot_id.file_name}"
        try:
            return snapshot_id, decode_snapshot(disk.read(path))
        except CorruptSnapshot as error:
            log.warning("%s is damaged and passed over: %s", path, error)
            damage = damage or CorruptMetadataLog(f"{path} is damaged, and there is no other: {error}")
    if damage is not None:
        raise damage
    return None, None


def load_quorum_state(disk: Disk, directory: str, node_id: int, snapshot: Snapshot | None) -> QuorumState:
    try:
        state = read_quorum_state(disk, directory)
    except CorruptQuorumState as error:
        raise CorruptMetadataLog(str(error)) from error
    if state is None:
        version = 1 if snapshot is not None and snapshot.kraft_version > 0 else 0
        state = QuorumState(node_id, 0, version)
    voters = list(state.voters)
    if snapshot is not None and snapshot.voters is not None:
        voters += [voter.voter_id for voter in snapshot.voters.voters]
    others = sorted({voter for voter in voters if voter != node_id})
    if others:
        raise CorruptMetadataLog(
            f"{directory} belongs to a quorum with the nodes {others}, and node {node_id} cannot decide without them"
        )
    return state


def open_log(
    disk: Disk, directory: str, config: LogConfig, clock: Clock, clean: bool, snapshot_id: SnapshotId | None
) -> PartitionLog:
    def opened() -> PartitionLog:
        return PartitionLog.open(
            disk, directory, config=config, topic_id=METADATA_TOPIC_ID, now_ms=clock.now_ms(), clean=clean
        )

    _remove_covered(disk, directory)
    found = opened()
    if snapshot_id is None or found.log_end_offset >= snapshot_id.end_offset:
        return found
    # The log ends before its snapshot: all that it holds is in the snapshot, and it goes on from there.
    found.delete()
    for name in disk.list(directory):
        if _is_segment_file(name):
            disk.remove(f"{directory}/{name}")
    disk.open(f"{directory}/{snapshot_id.end_offset:020d}.log", create=True).close()
    return opened()


def _remove_covered(disk: Disk, directory: str) -> None:
    """Segments that the older of the kept snapshots stands for are not needed any more."""
    kept = list_snapshots(disk, directory)[-KEPT_MAX:]
    if len(kept) < KEPT_MAX:
        return
    names = [name for name in disk.list(directory) if _is_segment_file(name)]
    bases = sorted(int(name[:20]) for name in names if name.endswith(".log"))
    covered = {base for base, following in pairwise(bases) if following <= kept[0].end_offset}
    for name in names:
        if int(name[:20]) in covered:
            disk.remove(f"{directory}/{name}")


def _is_segment_file(name: str) -> bool:
    """Whether a file belongs to a segment of the log."""
    stem, dot, suffix = name.partition(".")
    return bool(dot) and len(stem) == 20 and stem.isdecimal() and suffix in ("log", "index", "timeindex", "snapshot")
