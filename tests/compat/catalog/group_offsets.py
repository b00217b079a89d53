"""OffsetCommit, OffsetFetch and OffsetDelete."""

from collections.abc import Sequence

from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.compat.catalog.case import UNKNOWN_ID, Call, Case, NewTopic, Start, topic_id
from tests.compat.catalog.group_steps import (
    COORDINATOR_READY,
    EMPTY,
    JOINED,
    JOINING,
    NO_SUCH_MEMBER,
    SECOND,
    STABLE,
    STATIC,
    TWO_STABLE,
    heartbeat,
    join,
    subscription,
)

COMMITS, FETCHES = range(2, 11), range(1, 11)
A, B = NewTopic("a", 2), NewTopic("b", 1)
Offsets = Sequence[tuple[int, int]]


def commit_request(
    version: int,
    *topics: tuple[str, Offsets],
    group: str = "$g",
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    metadata: str | None = "m",
    epoch: int = -1,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        group_instance_id=instance,
        topics=[
            OffsetCommitRequestTopic(
                **({"topic_id": _id(name)} if version >= 10 else {"name": name}),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_metadata=metadata,
                        **({"committed_leader_epoch": epoch} if version >= 6 else {}),
                    )
                    for index, offset in offsets
                ],
            )
            for name, offsets in topics
        ],
    )


def _id(name: str) -> bytes:
    return topic_id(name[1:]) if name in ("$a", "$b") else UNKNOWN_ID


def commit(
    *topics: tuple[str, Offsets],
    version: int | None = None,
    group: str = "$g",
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    metadata: str | None = "m",
    epoch: int = -1,
) -> Call:
    return Call(
        lambda requested: commit_request(
            requested,
            *topics,
            group=group,
            member=member,
            generation=generation,
            instance=instance,
            metadata=metadata,
            epoch=epoch,
        ),
        version,
    )


def fetch(
    *topics: tuple[str, Sequence[int]],
    version: int | None = None,
    group: str = "$g",
    stable: bool = False,
    everything: bool = False,
    member: str | None = None,
    member_epoch: int = -1,
) -> Call:
    def request(requested: int) -> OffsetFetchRequest:
        if requested < 8:
            older = [OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes)) for name, indexes in topics]
            return OffsetFetchRequest(group_id=group, topics=None if everything else older, require_stable=stable)
        newer = [
            OffsetFetchRequestTopics(
                **({"topic_id": _id(name)} if requested >= 10 else {"name": name}),
                partition_indexes=list(indexes),
            )
            for name, indexes in topics
        ]
        one = OffsetFetchRequestGroup(group_id=group, topics=None if everything else newer)
        if requested >= 9:
            one.member_id, one.member_epoch = member, member_epoch
        return OffsetFetchRequest(groups=[one], require_stable=stable)

    return Call(request, version)


def fetch_groups(*groups: str) -> Call:
    def request(requested: int) -> OffsetFetchRequest:
        topic = OffsetFetchRequestTopics(
            **({"topic_id": _id("$a")} if requested >= 10 else {"name": "$a"}),
            partition_indexes=[0, 1],
        )
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic]) for group in groups])

    return Call(request)


def delete(*topics: tuple[str, Sequence[int]], group: str = "$g") -> Call:
    return Call(
        OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(index) for index in indexes]
                )
                for name, indexes in topics
            ],
        )
    )


def assigned(member: str) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="$g", generation_id=1, member_id=member, assignments=[SyncGroupRequestAssignment(member, b"x")]
    )


BOTH_OF_A = ("$a", [(0, 5), (1, 7)])
ALL_OF_A = fetch(("$a", [0, 1]), version=7)
COMMITTED = (A, B, COORDINATOR_READY, commit(BOTH_OF_A, ("$b", [(0, 9)]), version=8))
"""Committed by a non-member."""
SUBSCRIBED = (
    A,
    B,
    COORDINATOR_READY,
    Call(join(), 5, member="a"),
    Call(join("@a", protocols=(("range", subscription("$a")),)), 5),
    Call(assigned("@a"), 3),
    commit(BOTH_OF_A, ("$b", [(0, 9)]), version=8, member="@a", generation=1),
)

CASES = [
    # OffsetCommit
    Case("commit: group without members", (commit(BOTH_OF_A), ALL_OF_A), (A, COORDINATOR_READY), versions=COMMITS),
    Case(
        "commit: twice, smaller offset",
        (commit(BOTH_OF_A), commit(("$a", [(0, 3)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: two topics",
        (commit(BOTH_OF_A, ("$b", [(0, 1)])), fetch(everything=True, version=7)),
        (A, B, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: same topic twice",
        (commit(("$a", [(0, 1)]), ("$a", [(1, 2)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: same partition twice",
        (commit(("$a", [(0, 1), (0, 2)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case("commit: no metadata", (commit(BOTH_OF_A, metadata=None), ALL_OF_A), (A, COORDINATOR_READY), versions=COMMITS),
    Case(
        "commit: empty metadata",
        (commit(BOTH_OF_A, metadata=""), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=(2, 8, 10),
    ),
    Case(
        "commit: metadata of the maximum size",
        (commit(("$a", [(0, 1)]), metadata="x" * 4096), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=(2, 8, 10),
    ),
    Case(
        "commit: metadata too large",
        (commit(("$a", [(0, 1)]), metadata="x" * 4097), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: metadata too large in bytes",
        (commit(("$a", [(0, 1)]), metadata="ž" * 2049), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=(2, 8, 10),
    ),
    Case(
        "commit: with a leader epoch",
        (commit(BOTH_OF_A, epoch=3), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=range(6, 11),
    ),
    Case(
        "commit: negative offsets",
        (commit(("$a", [(0, -1), (1, -9)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=(2, 8, 10),
    ),
    Case(
        "commit: a very large offset",
        (commit(("$a", [(0, 2**63 - 1)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=(2, 8, 10),
    ),
    Case("commit: empty request", (commit(),), (COORDINATOR_READY,), versions=COMMITS),
    Case("commit: no partitions", (commit(("$a", [])),), (A, COORDINATOR_READY), versions=COMMITS),
    Case("commit: unknown topic", (commit(("$no", [(0, 1)])),), (A, COORDINATOR_READY), versions=COMMITS),
    Case(
        "commit: known and unknown topic",
        (commit(("$no", [(0, 1), (1, 1)]), ("$a", [(0, 4)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case("commit: unknown partition", (commit(("$a", [(9, 1)])),), (A, COORDINATOR_READY), versions=COMMITS),
    Case(
        "commit: known and unknown partition",
        (commit(("$a", [(9, 1), (0, 4), (-1, 3)])), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: invalid topic name",
        (commit(("a/b", [(0, 1)])), commit(("", [(0, 1)]))),
        (A, COORDINATOR_READY),
        versions=(2, 8, 9),
    ),
    Case(
        "commit: no group id",
        (commit(BOTH_OF_A, group=""), fetch(("$a", [0]), group="", version=7)),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: member of an unknown group",
        (commit(BOTH_OF_A, member="m", generation=1),),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: generation without a member id",
        (commit(BOTH_OF_A, generation=1),),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case(
        "commit: member id without a generation",
        (commit(BOTH_OF_A, member="m"), ALL_OF_A),
        (A, COORDINATOR_READY),
        versions=COMMITS,
    ),
    Case("commit: member", (commit(BOTH_OF_A, member="@a", generation=1), ALL_OF_A), (A, *STABLE), versions=COMMITS),
    Case(
        "commit: member, unknown topic",
        (commit(("$no", [(0, 1)]), BOTH_OF_A, member="@a", generation=1),),
        (A, *STABLE),
        versions=COMMITS,
    ),
    Case(
        "commit: member, metadata too large",
        (commit(BOTH_OF_A, member="@a", generation=1, metadata="x" * 4097), ALL_OF_A),
        (A, *STABLE),
        versions=(2, 8, 10),
    ),
    Case("commit: no member id, group with members", (commit(BOTH_OF_A),), (A, *STABLE), versions=COMMITS),
    Case(
        "commit: unknown member",
        (commit(BOTH_OF_A, member=NO_SUCH_MEMBER, generation=1),),
        (A, *STABLE),
        versions=COMMITS,
    ),
    Case(
        "commit: wrong generation",
        (
            commit(BOTH_OF_A, member="@a", generation=0),
            commit(BOTH_OF_A, member="@a", generation=2),
            commit(BOTH_OF_A, member="@a", generation=-1),
        ),
        (A, *STABLE),
        versions=COMMITS,
    ),
    Case(
        "commit: before joining",
        (commit(BOTH_OF_A, member="@a", generation=-1), commit(BOTH_OF_A, member="@a", generation=0)),
        (A, *JOINING),
        versions=COMMITS,
    ),
    Case("commit: before assignments", (commit(BOTH_OF_A, member="@a", generation=1),), (A, *JOINED), versions=COMMITS),
    Case(
        "commit: during a rebalance",
        (commit(BOTH_OF_A, member="@a", generation=1), commit(BOTH_OF_A, member="@b", generation=1), ALL_OF_A),
        (
            A,
            *SECOND,
            Start(join("@b"), 5, "b"),
            Call(heartbeat("@a"), 3, until=lambda response: response.error_code == 27),
        ),
        versions=COMMITS,
    ),
    Case(
        "commit: both of two members",
        (
            commit(("$a", [(0, 1)]), member="@a", generation=2),
            commit(("$a", [(1, 2)]), member="@b", generation=2),
            ALL_OF_A,
        ),
        (A, *TWO_STABLE),
        versions=COMMITS,
    ),
    Case("commit: empty group", (commit(BOTH_OF_A), ALL_OF_A), (A, *EMPTY), versions=COMMITS),
    Case(
        "commit: empty group, id of a former member",
        (commit(BOTH_OF_A, member="@a", generation=1),),
        (A, *EMPTY),
        versions=COMMITS,
    ),
    Case(
        "commit: static",
        (commit(BOTH_OF_A, member="@a", generation=1, instance="i"), ALL_OF_A),
        (A, *STATIC),
        versions=range(7, 11),
    ),
    Case(
        "commit: static, unknown instance",
        (commit(BOTH_OF_A, member="@a", generation=1, instance="j"),),
        (A, *STATIC),
        versions=range(7, 11),
    ),
    Case(
        "commit: static, fenced",
        (commit(BOTH_OF_A, member="@a", generation=1, instance="i"),),
        (A, *STATIC, Call(join(instance="i"), 5, member="b")),
        versions=range(7, 11),
    ),
    Case("commit: static, no member id", (commit(BOTH_OF_A, instance="i"),), (A, *STATIC), versions=range(7, 11)),
    Case(
        "commit: more offsets than fit into a batch",
        (
            Call(
                lambda requested: commit_request(requested, ("$a", [(0, i) for i in range(400)]), metadata="x" * 4000)
            ),
            ALL_OF_A,
        ),
        (A, COORDINATOR_READY),
        versions=(2, 8, 10),
    ),
    # OffsetFetch
    Case("fetch: committed offsets", (fetch(("$a", [0, 1])),), COMMITTED, versions=FETCHES),
    Case("fetch: some partitions", (fetch(("$a", [1])), fetch(("$a", [1]), ("$b", [0]))), COMMITTED, versions=FETCHES),
    Case("fetch: all topics", (fetch(everything=True),), COMMITTED, versions=range(2, 11)),
    Case(
        "fetch: all topics of an unknown group",
        (fetch(everything=True, group="$no"),),
        COMMITTED,
        versions=range(2, 11),
    ),
    Case("fetch: empty request", (fetch(),), COMMITTED, versions=FETCHES),
    Case("fetch: no partitions", (fetch(("$a", [])),), COMMITTED, versions=FETCHES),
    Case(
        "fetch: partition without a committed offset",
        (fetch(("$a", [0, 1])),),
        (A, COORDINATOR_READY, commit(("$a", [(0, 5)]), version=8)),
        versions=FETCHES,
    ),
    Case("fetch: unknown partition", (fetch(("$a", [0, 9, -1])),), COMMITTED, versions=FETCHES),
    Case("fetch: unknown topic", (fetch(("$no", [0]), ("$a", [0])),), COMMITTED, versions=FETCHES),
    Case("fetch: unknown group", (fetch(("$a", [0]), group="$no"),), COMMITTED, versions=FETCHES),
    Case("fetch: no group id", (fetch(("$a", [0]), group=""),), COMMITTED, versions=FETCHES),
    Case("fetch: invalid topic name", (fetch(("a/b", [0])), fetch(("", [0]))), COMMITTED, versions=(1, 5, 8, 9)),
    Case("fetch: same topic twice", (fetch(("$a", [0]), ("$a", [1])),), COMMITTED, versions=FETCHES),
    Case("fetch: same partition twice", (fetch(("$a", [0, 0])),), COMMITTED, versions=FETCHES),
    Case("fetch: require stable", (fetch(("$a", [0, 1]), stable=True),), COMMITTED, versions=range(7, 11)),
    Case("fetch: all topics, require stable", (fetch(everything=True, stable=True),), COMMITTED, versions=range(7, 11)),
    Case("fetch: several groups", (fetch_groups("$g", "$no", ""),), COMMITTED, versions=range(8, 11)),
    Case("fetch: same group twice", (fetch_groups("$g", "$g"),), COMMITTED, versions=range(8, 11)),
    Case("fetch: no groups", (fetch_groups(),), COMMITTED, versions=range(8, 11)),
    Case("fetch: member", (fetch(("$a", [0]), member="@a", member_epoch=1),), SUBSCRIBED, versions=(9, 10)),
    Case(
        "fetch: unknown member",
        (fetch(("$a", [0]), member="x", member_epoch=1), fetch(("$a", [0]), member="", member_epoch=0)),
        SUBSCRIBED,
        versions=(9, 10),
    ),
    Case(
        "fetch: member of an unknown group",
        (fetch(("$a", [0]), group="$no", member="x", member_epoch=1),),
        SUBSCRIBED,
        versions=(9, 10),
    ),
    Case(
        "fetch: wrong member epoch",
        (fetch(("$a", [0]), member="@a", member_epoch=7),),
        SUBSCRIBED,
        versions=(9, 10),
    ),
    # OffsetDelete
    Case("delete offsets: one partition", (delete(("$a", [0])), ALL_OF_A), COMMITTED),
    Case(
        "delete offsets: two topics",
        (delete(("$a", [0, 1]), ("$b", [0])), fetch(everything=True, version=7)),
        COMMITTED,
    ),
    Case("delete offsets: twice", (delete(("$a", [0])), delete(("$a", [0]))), COMMITTED),
    Case(
        "delete offsets: partition without a committed offset",
        (delete(("$a", [0, 1])),),
        (A, COORDINATOR_READY, commit(("$a", [(0, 5)]), version=8)),
    ),
    Case("delete offsets: empty request", (delete(), delete(("$a", []))), COMMITTED),
    Case(
        "delete offsets: unknown topic",
        (delete(("$no", [0])), delete(("$no", [0]), ("$a", [1])), ALL_OF_A),
        COMMITTED,
    ),
    Case("delete offsets: unknown partition", (delete(("$a", [9, 0])), ALL_OF_A), COMMITTED),
    Case(
        "delete offsets: unknown group",
        (delete(("$a", [0]), group="$no"), delete(("$no", [0]), group="$no")),
        COMMITTED,
    ),
    Case("delete offsets: no group id", (delete(("$a", [0]), group=""),), COMMITTED),
    Case(
        "delete offsets: subscribed topic",
        (delete(("$a", [0]), ("$b", [0])), fetch(everything=True, version=7)),
        SUBSCRIBED,
    ),
    Case("delete offsets: group with members", (delete(("$a", [0])),), (A, *STABLE)),
    Case("delete offsets: same topic twice", (delete(("$a", [0]), ("$a", [1])), ALL_OF_A), COMMITTED),
]
