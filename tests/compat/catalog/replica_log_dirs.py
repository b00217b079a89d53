"""AlterReplicaLogDirs: rejected requests. Moves need two directories and have their own tests."""

from collections.abc import Sequence

from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.compat.catalog.case import Call, Case, NewTopic

MADE = (NewTopic("a", 2), NewTopic("b"))


def to(*moves: tuple[str, Sequence[tuple[str, Sequence[int]]]]) -> Call:
    return Call(
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=name, partitions=list(requested)) for name, requested in topics
                    ],
                )
                for path, topics in moves
            ]
        )
    )


CASES = [
    Case("unknown directory", (to(("/nowhere", [("$a", [0])])),), MADE),
    Case("relative path", (to(("nowhere", [("$a", [0])])),), MADE),
    Case("empty path", (to(("", [("$a", [0])])),), MADE),
    Case("two topics", (to(("/nowhere", [("$a", [0, 1]), ("$b", [0])])),), MADE),
    Case("unknown partition, unknown directory", (to(("/nowhere", [("$a", [7])])),), MADE),
    Case("negative partition", (to(("/nowhere", [("$a", [-1])])),), MADE),
    Case("unknown topic, unknown directory", (to(("/nowhere", [("$no", [0])])),)),
    Case("invalid topic name", (to(("/nowhere", [("a/b", [0])])),)),
    Case("metadata log", (to(("/nowhere", [("__cluster_metadata", [0])])),)),
    Case("empty request", (to(),)),
    Case("no topics", (to(("/nowhere", [])),)),
    Case("no partitions", (to(("/nowhere", [("$a", [])])),), MADE),
    Case("same partition twice", (to(("/nowhere", [("$a", [0, 0])])),), MADE),
    Case("one partition to two directories", (to(("/nowhere", [("$a", [0])]), ("/elsewhere", [("$a", [0])])),), MADE),
]
