"""AlterReplicaLogDirs (key 34), versions 1–2: move partitions to another of the node's log directories while they are
in use.

The response is sent when the move has started; DescribeLogDirs shows its progress. If a partition occurs twice the
last directory counts. Skipped: the directory of a partition that is not here yet is not stored for later.
"""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

REQUEST = AlterReplicaLogDirsRequest


def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest, version: int
) -> AlterReplicaLogDirsResponse:
    requested: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                requested.setdefault(topic.name, {})[index] = directory.path
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=_move(broker, name, index, path)
                    )
                    for index, path in parts.items()
                ],
            )
            for name, parts in requested.items()
        ]
    )


def _move(broker: Broker, topic: str, index: int, path: str) -> ErrorCode:
    partition = broker.partition(topic, index)
    if partition is None:
        known = next((each for each in broker.log_directories if each.path == path), None)
        return ErrorCode.LOG_DIR_NOT_FOUND if known is None else broker.missing_error(topic, index)
    return broker.replica_mover.move(partition, path)
