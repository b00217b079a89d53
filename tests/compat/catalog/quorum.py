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
    Case("metadata log", (of((LOG, (0,))),)),
    Case("empty request", (of(),)),
    Case("unknown topic", (of(("no-such-topic", (0,))),)),
    Case("unknown partition", (of((LOG, (1,))),)),
    Case("no partitions", (of((LOG, ())),)),
    Case("same partition twice", (of((LOG, (0, 0))),)),
    Case("same topic twice", (of((LOG, (0,)), (LOG, (0,))),)),
    Case("two topics", (of((LOG, (0,)), ("no-such-topic", (0,))),)),
    Case("known and unknown partition", (of((LOG, (0, 1))),)),
]
