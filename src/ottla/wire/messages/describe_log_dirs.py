"""DescribeLogDirs: the log directories of a broker, with the size and lag of each replica in them."""

from ottla.wire.schema import Message, array, boolean, i16, i32, i64, string


class DescribableLogDirTopic(Message):
    topic: str = string("0+", default="")
    partitions: list[int] = array(i32, "0+", default=())


class DescribeLogDirsRequest(Message):
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, "0+", nullable="0+", default=())


class DescribeLogDirsPartition(Message):
    partition_index: int = i32("0+", default=0)
    partition_size: int = i64("0+", default=0)
    offset_lag: int = i64("0+", default=0)
    is_future_key: bool = boolean("0+", default=False)


class DescribeLogDirsTopic(Message):
    name: str = string("0+", default="")
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition, "0+", default=())


class DescribeLogDirsResult(Message):
    error_code: int = i16("0+", default=0)
    log_dir: str = string("0+", default="")
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic, "0+", default=())
    total_bytes: int = i64("4+", default=-1, ignorable=True)
    usable_bytes: int = i64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", default=False, ignorable=True)


class DescribeLogDirsResponse(Message):
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("3+", default=0, ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult, "0+", default=())
