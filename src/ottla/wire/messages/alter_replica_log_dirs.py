"""AlterReplicaLogDirs: move replicas to other log directories of a broker."""

from ottla.wire.schema import Message, array, i16, i32, string


class AlterReplicaLogDirTopic(Message):
    name: str = string("0+", default="")
    partitions: list[int] = array(i32, "0+", default=())


class AlterReplicaLogDir(Message):
    path: str = string("0+", default="")
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic, "0+", default=())


class AlterReplicaLogDirsRequest(Message):
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir, "0+", default=())


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = string("0+", default="")
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult, "0+", default=())


class AlterReplicaLogDirsResponse(Message):
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult, "0+", default=())
