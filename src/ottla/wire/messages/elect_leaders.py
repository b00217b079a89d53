"""ElectLeaders: elect preferred leaders, or any available ones."""

from ottla.wire.schema import Message, array, i8, i16, i32, string


class TopicPartitions(Message):
    topic: str = string("0+", default="")
    partitions: list[int] = array(i32, "0+", default=())


class ElectLeadersRequest(Message):
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    election_type: int = i8("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable="0+", default=())
    timeout_ms: int = i32("0+", default=60000)


class PartitionResult(Message):
    partition_id: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default="")


class ReplicaElectionResult(Message):
    topic: str = string("0+", default="")
    partition_result: list[PartitionResult] = array(PartitionResult, "0+", default=())


class ElectLeadersResponse(Message):
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult, "0+", default=())
