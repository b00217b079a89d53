"""Control records: written by brokers between data records, and never returned to applications."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import NEVER, Message, array, i16, i32, i64, string, struct, u16, uuid


class ControlRecordTypeSchema(Message):
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    type: int = i16("0+", default=0)


class EndTxnMarker(Message):
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = NEVER

    coordinator_epoch: int = i32("0+", default=0)


class Voter(Message):
    voter_id: int = i32("0+", default=0)
    voter_directory_id: Uuid = uuid("1+", default=ZERO_UUID)


class LeaderChangeMessage(Message):
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0

    version: int = i16("0+", default=0)
    leader_id: int = i32("0+", default=0)
    voters: list[Voter] = array(Voter, "0+", default=())
    granting_voters: list[Voter] = array(Voter, "0+", default=())


class SnapshotHeaderRecord(Message):
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    version: int = i16("0+", default=0)
    last_contained_log_timestamp: int = i64("0+", default=0)


class SnapshotFooterRecord(Message):
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    version: int = i16("0+", default=0)


class KRaftVersionRecord(Message):
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    version: int = i16("0+", default=0)
    k_raft_version: int = i16("0+", default=0)


class Endpoint(Message):
    name: str = string("0+", default="")
    host: str = string("0+", default="")
    port: int = u16("0+", default=0)


class KRaftVersionFeature(Message):
    min_supported_version: int = i16("0+", default=0)
    max_supported_version: int = i16("0+", default=0)


class VotersRecord(Message):
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    class Voter(Message):
        voter_id: int = i32("0+", default=0)
        voter_directory_id: Uuid = uuid("0+", default=ZERO_UUID)
        endpoints: list[Endpoint] = array(Endpoint, "0+", default=())
        k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature, "0+", factory=KRaftVersionFeature)

    version: int = i16("0+", default=0)
    voters: list[Voter] = array(Voter, "0+", default=())
