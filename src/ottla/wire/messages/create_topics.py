"""CreateTopics: create topics, with automatic or given replica assignments."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, boolean, i8, i16, i32, string, uuid


class CreatableReplicaAssignment(Message):
    partition_index: int = i32("0+", default=0)
    broker_ids: list[int] = array(i32, "0+", default=())


class CreatableTopicConfig(Message):
    name: str = string("0+", default="")
    value: str | None = string("0+", nullable="0+", default="")


class CreatableTopic(Message):
    name: str = string("0+", default="")
    num_partitions: int = i32("0+", default=0)
    replication_factor: int = i16("0+", default=0)
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment, "0+", default=())
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig, "0+", default=())


class CreateTopicsRequest(Message):
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_FROM = 5

    topics: list[CreatableTopic] = array(CreatableTopic, "0+", default=())
    timeout_ms: int = i32("0+", default=60000)
    validate_only: bool = boolean("1+", default=False)


class CreatableTopicConfigs(Message):
    name: str = string("5+", default="")
    value: str | None = string("5+", nullable="5+", default="")
    read_only: bool = boolean("5+", default=False)
    config_source: int = i8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+", default=False)


class CreatableTopicResult(Message):
    name: str = string("0+", default="")
    topic_id: Uuid = uuid("7+", default=ZERO_UUID, ignorable=True)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("1+", nullable="0+", default="", ignorable=True)
    topic_config_error_code: int = i16("5+", default=0, tag=0, ignorable=True)
    num_partitions: int = i32("5+", default=-1, ignorable=True)
    replication_factor: int = i16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", default=(), ignorable=True
    )


class CreateTopicsResponse(Message):
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_FROM = 5

    throttle_time_ms: int = i32("2+", default=0, ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult, "0+", default=())
