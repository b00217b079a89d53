"""CreatePartitions: add partitions to topics."""

from ottla.wire.schema import Message, array, boolean, i16, i32, string


class CreatePartitionsAssignment(Message):
    broker_ids: list[int] = array(i32, "0+", default=())


class CreatePartitionsTopic(Message):
    name: str = string("0+", default="")
    count: int = i32("0+", default=0)
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, "0+", nullable="0+", default=()
    )


class CreatePartitionsRequest(Message):
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+", default=())
    timeout_ms: int = i32("0+", default=0)
    validate_only: bool = boolean("0+", default=False)


class CreatePartitionsTopicResult(Message):
    name: str = string("0+", default="")
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default=None)


class CreatePartitionsResponse(Message):
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+", default=())
