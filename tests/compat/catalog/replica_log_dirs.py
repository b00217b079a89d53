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
    Case("to an unknown directory", (to(("/nowhere", [("$a", [0])])),), MADE),
    Case("to a relative path", (to(("nowhere", [("$a", [0])])),), MADE),
    Case("to an empty path", (to(("", [("$a", [0])])),), MADE),
    Case("of two topics", (to(("/nowhere", [("$a", [0, 1]), ("$b", [0])])),), MADE),
    Case("of an unknown partition to an unknown directory", (to(("/nowhere", [("$a", [7])])),), MADE),
    Case("of a negative partition", (to(("/nowhere", [("$a", [-1])])),), MADE),
    Case("of an unknown topic to an unknown directory", (to(("/nowhere", [("$no", [0])])),)),
    Case("of an invalid name", (to(("/nowhere", [("a/b", [0])])),)),
    Case("of the metadata log", (to(("/nowhere", [("__cluster_metadata", [0])])),)),
    Case("of nothing", (to(),)),
    Case("of no topics", (to(("/nowhere", [])),)),
    Case("of no partitions", (to(("/nowhere", [("$a", [])])),), MADE),
    Case("of one partition twice", (to(("/nowhere", [("$a", [0, 0])])),), MADE),
    Case(
        "of one partition to two directories", (to(("/nowhere", [("$a", [0])]), ("/elsewhere", [("$a", [0])])),), MADE
    ),
]
