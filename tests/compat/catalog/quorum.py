"""DescribeQuorum: one voter, which is the leader."""

from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.compat.catalog.case import Call, Case


def of(*topics: tuple[str, tuple[int, ...]]) -> Call:
    requested = {name: [PartitionData(partition_index=index) for index in requested] for name, requested in topics}
    return Call(
        DescribeQuorumRequest(topics=[TopicData(topic_name=name, partitions=requested[name]) for name, _ in topics])
    )


LOG = "__cluster_metadata"
CASES = [
    Case("of the metadata log", (of((LOG, (0,))),)),
    Case("of nothing", (of(),)),
    Case("of an unknown topic", (of(("no-such-topic", (0,))),)),
    Case("of an unknown partition", (of((LOG, (1,))),)),
    Case("of no partition", (of((LOG, ())),)),
    Case("of one partition twice", (of((LOG, (0, 0))),)),
    Case("of one topic twice", (of((LOG, (0,)), (LOG, (0,))),)),
    Case("of two topics", (of((LOG, (0,)), ("no-such-topic", (0,))),)),
    Case("of a known and an unknown partition", (of((LOG, (0, 1))),)),
]
