"""FindCoordinator, ListGroups, DescribeGroups and DeleteGroups."""

from collections.abc import Sequence

from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.catalog.case import Batch, Call, Case, NewTopic, Start, records
from tests.compat.catalog.group_steps import (
    COORDINATOR_READY,
    EMPTY,
    JOINED,
    JOINING,
    SECOND,
    STABLE,
    STATIC,
    TWO_JOINED,
    TWO_STABLE,
    heartbeat,
    join,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
OFFSETS = "__consumer_offsets"
THREE = [
    OffsetCommitRequestTopic(
        name="$a", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=3)]
    )
]
COMMITTED = (NewTopic("a"), COORDINATOR_READY, Call(OffsetCommitRequest(group_id="$g", topics=THREE), 8))
NAMELESS = (NewTopic("a"), COORDINATOR_READY, Call(OffsetCommitRequest(group_id="", topics=THREE), 8))
"""The group with an empty name has offsets; other cases may add some too."""
REBALANCED = (
    *SECOND,
    Start(join("@b"), 5, "b"),
    Call(heartbeat("@a"), 3, until=lambda response: response.error_code == 27),
)


def find(*keys: str, kind: int = GROUP) -> Call:
    return Call(
        lambda version: (
            FindCoordinatorRequest(coordinator_keys=list(keys), key_type=kind)
            if version >= 4
            else FindCoordinatorRequest(key=keys[0], **({"key_type": kind} if version else {}))
        )
    )


def listed(*states: str, types: Sequence[str] = ()) -> Call:
    return Call(
        lambda version: ListGroupsRequest(
            **({"states_filter": list(states)} if version >= 4 else {}),
            **({"types_filter": list(types)} if version >= 5 else {}),
        )
    )


def describe(*groups: str, operations: bool = False) -> Call:
    return Call(DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations))


def delete(*groups: str) -> Call:
    return Call(DeleteGroupsRequest(groups_names=list(groups)))


def produce(topic: str, partition: int = 0) -> Call:
    data = [PartitionProduceData(index=partition, records=Batch(records(1)))]
    return Call(
        ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    )


CASES = [
    Case("find: one group", (find("$g"),), (COORDINATOR_READY,), versions=range(7)),
    Case("find: empty key", (find(""),), (COORDINATOR_READY,), versions=range(7)),
    Case("find: several groups", (find("$g", "$h", ""),), (COORDINATOR_READY,), versions=range(4, 7)),
    Case("find: same group twice", (find("$g", "$g"),), (COORDINATOR_READY,), versions=range(4, 7)),
    Case("find: empty request", (find(),), (COORDINATOR_READY,), versions=range(4, 7)),
    Case(
        "find: unknown key type", (find("$g", kind=9), find("$g", kind=-1)), (COORDINATOR_READY,), versions=range(1, 7)
    ),
    Case(
        "find: share group, invalid key",
        (find("$g", kind=SHARE),),
        (COORDINATOR_READY,),
        versions=range(1, 7),
    ),
    Case("list: empty group", (listed(),), EMPTY, versions=range(6)),
    Case("list: stable group", (listed(),), STABLE, versions=range(6)),
    Case("list: group that never had members", (listed(),), COMMITTED, versions=range(6)),
    Case("list: member joining", (listed(),), JOINING, versions=range(6)),
    Case("list: before assignments", (listed(),), JOINED, versions=range(6)),
    Case("list: during a rebalance", (listed(),), REBALANCED, versions=range(6)),
    Case(
        "list: by state",
        (listed("Stable"), listed("Empty"), listed("Empty", "Stable"), listed("stable"), listed("STABLE")),
        STABLE,
        versions=(4, 5),
    ),
    Case("list: by an unknown state", (listed("Nonsense"), listed(""), listed("Dead")), STABLE, versions=(4, 5)),
    Case(
        "list: by each rebalance state",
        (listed("PreparingRebalance"), listed("CompletingRebalance"), listed("Assigning")),
        REBALANCED,
        versions=(4, 5),
    ),
    Case(
        "list: by type",
        (
            listed(types=("classic",)),
            listed(types=("Classic",)),
            listed(types=("consumer",)),
            listed(types=("classic", "consumer")),
        ),
        STABLE,
        versions=(5,),
    ),
    Case(
        "list: by an unknown type",
        (listed(types=("nonsense",)), listed(types=("",)), listed(types=("share",))),
        STABLE,
        versions=(5,),
    ),
    Case(
        "list: by state and type",
        (listed("Stable", types=("classic",)), listed("Empty", types=("classic",))),
        STABLE,
        versions=(5,),
    ),
    Case("describe: stable", (describe("$g"),), STABLE),
    Case("describe: stable, two members", (describe("$g"),), TWO_STABLE),
    Case("describe: static", (describe("$g"),), STATIC),
    Case("describe: empty", (describe("$g"),), EMPTY),
    Case("describe: never had members", (describe("$g"),), COMMITTED),
    Case("describe: member joining", (describe("$g"),), JOINING),
    Case("describe: before assignments", (describe("$g"),), JOINED),
    Case("describe: before assignments, two members", (describe("$g"),), TWO_JOINED),
    Case("describe: during a rebalance", (describe("$g"),), REBALANCED),
    Case("describe: unknown group", (describe("$no"),), (COORDINATOR_READY,)),
    Case("describe: no group id", (describe(""),), NAMELESS),
    Case("describe: empty request", (describe(),), (COORDINATOR_READY,)),
    Case("describe: several groups", (describe("$g", "$no"),), STABLE),
    Case("describe: same group twice", (describe("$g", "$g"),), STABLE),
    Case("describe: with authorized operations", (describe("$g", operations=True),), STABLE, versions=range(3, 7)),
    Case(
        "describe: with authorized operations, unknown group",
        (describe("$no", operations=True),),
        STABLE,
        versions=range(3, 7),
    ),
    Case("delete: empty", (delete("$g"), delete("$g")), EMPTY),
    Case("delete: never had members", (delete("$g"),), COMMITTED),
    Case("delete: with members", (delete("$g"),), STABLE),
    Case("delete: member joining", (delete("$g"),), JOINING),
    Case("delete: unknown group", (delete("$no"),), (COORDINATOR_READY,)),
    Case("delete: no group id", (delete(""),), NAMELESS),
    Case("delete: empty request", (delete(),), (COORDINATOR_READY,)),
    Case("delete: several groups", (delete("$g", "$no"),), EMPTY),
    Case("delete: same group twice", (delete("$g", "$g"),), EMPTY),
    Case("delete: then join again", (delete("$g"), Call(join("@a"), 5), Call(join(), 5)), EMPTY),
    Case("produce to the offsets topic", (produce(OFFSETS),), (COORDINATOR_READY,), versions=range(3, 13)),
    Case(
        "produce to the offsets topic, unknown partition",
        (produce(OFFSETS, 999),),
        (COORDINATOR_READY,),
        versions=(3, 12),
    ),
    Case(
        "metadata of the offsets topic",
        (Call(MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS)])),),
        (COORDINATOR_READY,),
        versions=range(4, 10),
    ),
]
