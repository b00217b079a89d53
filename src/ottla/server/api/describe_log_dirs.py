"""DescribeLogDirs (key 35), versions 1–5: the node's log directories, the size of each log in them and, from version 4
on, the space in them.

Partitions that are not here are omitted; null requests all. A partition that is being moved is in both directories,
with its lag in the new one. A directory that has failed gets KAFKA_STORAGE_ERROR.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.runtime.configs import config_value
from ottla.runtime.log_directories import LogDirectory
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

REQUEST = DescribeLogDirsRequest
CORDONED = "cordoned.log.dirs"
ALL_DIRECTORIES = "*"


async def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest, version: int
) -> DescribeLogDirsResponse:
    requested = (
        None
        if request.topics is None
        else {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    )
    cordoned = config_value(broker, CORDONED)
    assert isinstance(cordoned, tuple), cordoned
    response = DescribeLogDirsResponse()
    for directory in broker.log_directories:
        space = await _space(broker, directory)
        if space is None:
            response.results.append(
                DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
            )
            continue
        topics: dict[str, DescribeLogDirsTopic] = {}
        for partition in directory.partitions:
            if requested is None or (partition.topic, partition.index) in requested:
                topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
                topic.partitions.append(
                    DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size_bytes)
                )
        for move in broker.replica_mover.moves():
            partition = move.partition
            if move.directory is directory and (requested is None or (partition.topic, partition.index) in requested):
                topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
                topic.partitions.append(
                    DescribeLogDirsPartition(
                        partition_index=partition.index,
                        partition_size=move.copied_bytes if move.log is None else move.log.size_bytes,
                        offset_lag=move.lag,
                        is_future_key=True,
                    )
                )
        total_bytes, usable_bytes = space
        response.results.append(
            DescribeLogDirsResult(
                log_dir=directory.path,
                topics=list(topics.values()),
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
                is_cordoned=directory.path in cordoned or ALL_DIRECTORIES in cordoned,
            )
        )
    return response


async def _space(broker: Broker, directory: LogDirectory) -> tuple[int, int] | None:
    """Return total and usable bytes, or None if the directory is offline, which may be detected here."""
    if directory.is_online:
        try:
            return await broker.log_directories.space(directory)
        except OSError as error:
            broker.log_directories.on_failure(directory, error)
    return None
