"""The quorum state file: whom a node voted for and in which epoch; on disk it is JSON."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, i32, i64, string, uuid


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
