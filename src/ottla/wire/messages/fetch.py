"""Fetch: read record batches, as a consumer or follower."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.base.ports import Buffer
from ottla.wire.schema import Message, array, batches, i8, i16, i32, i64, string, struct, uuid


class ReplicaState(Message):
    replica_id: int = i32("15+", default=-1)
    replica_epoch: int = i64("15+", default=-1)


class FetchPartition(Message):
    partition: int = i32("0+", default=0)
    current_leader_epoch: int = i32("9+", default=-1, ignorable=True)
    fetch_offset: int = i64("0+", default=0)
    last_fetched_epoch: int = i32("12+", default=-1)
    log_start_offset: int = i64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = i32("0+", default=0)
    replica_directory_id: Uuid = uuid("17+", default=ZERO_UUID, tag=0, ignorable=True)
    high_watermark: int = i64("18+", default=9223372036854775807, tag=1, ignorable=True)


class FetchTopic(Message):
    topic: str = string("0-12", default="", ignorable=True)
    topic_id: Uuid = uuid("13+", default=ZERO_UUID, ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition, "0+", default=())


class ForgottenTopic(Message):
    topic: str = string("7-12", default="", ignorable=True)
    topic_id: Uuid = uuid("13+", default=ZERO_UUID, ignorable=True)
    partitions: list[int] = array(i32, "7+", default=())


class FetchRequest(Message):
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_FROM = 12

    cluster_id: str | None = string("12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id: int = i32("0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", factory=ReplicaState, tag=1)
    max_wait_ms: int = i32("0+", default=0)
    min_bytes: int = i32("0+", default=0)
    max_bytes: int = i32("3+", default=2147483647, ignorable=True)
    isolation_level: int = i8("4+", default=0, ignorable=True)
    session_id: int = i32("7+", default=0, ignorable=True)
    session_epoch: int = i32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic, "0+", default=())
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+", default=())
    rack_id: str = string("11+", default="", ignorable=True)


class EpochEndOffset(Message):
    epoch: int = i32("12+", default=-1)
    end_offset: int = i64("12+", default=-1)


class LeaderIdAndEpoch(Message):
    leader_id: int = i32("12+", default=-1)
    leader_epoch: int = i32("12+", default=-1)


class SnapshotId(Message):
    end_offset: int = i64("0+", default=-1)
    epoch: int = i32("0+", default=-1)


class AbortedTransaction(Message):
    producer_id: int = i64("4+", default=0)
    first_offset: int = i64("4+", default=0)


class PartitionData(Message):
    partition_index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    high_watermark: int = i64("0+", default=0)
    last_stable_offset: int = i64("4+", default=-1, ignorable=True)
    log_start_offset: int = i64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", factory=EpochEndOffset, tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", factory=LeaderIdAndEpoch, tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", factory=SnapshotId, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable="4+", default=(), ignorable=True
    )
    preferred_read_replica: int = i32("11+", default=-1)
    records: Buffer | None = batches("0+", nullable="0+", default=None)


class FetchableTopicResponse(Message):
    topic: str = string("0-12", default="", ignorable=True)
    topic_id: Uuid = uuid("13+", default=ZERO_UUID, ignorable=True)
    partitions: list[PartitionData] = array(PartitionData, "0+", default=())


class NodeEndpoint(Message):
    node_id: int = i32("16+", default=0)
    host: str = string("16+", default="")
    port: int = i32("16+", default=0)
    rack: str | None = string("16+", nullable="16+", default=None)


class FetchResponse(Message):
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_FROM = 12

    throttle_time_ms: int = i32("1+", default=0, ignorable=True)
    error_code: int = i16("7+", default=0, ignorable=True)
    session_id: int = i32("7+", default=0)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse, "0+", default=())
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", default=(), tag=0)
