"""OffsetForLeaderEpoch: end offsets of leader epochs."""

from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.compat.catalog.case import Batch, Call, Case, Fill, NewTopic, records

FILLED = (NewTopic("a", 2), Fill(Batch(records(5))), Fill(Batch(records(5, first=5), codec=1)))


def of(epoch: int, *, partition: int = 0, current: int = -1, name: str = "$a", replica: int = -1) -> Call:
    entry = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    return Call(
        OffsetForLeaderEpochRequest(replica_id=replica, topics=[OffsetForLeaderTopic(topic=name, partitions=[entry])])
    )


def of_many(*partitions: int) -> Call:
    entries = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in partitions]
    return Call(
        OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic="$a", partitions=entries)])
    )


CASES = [
    Case("the epoch there is", (of(0),), FILLED),
    Case("an epoch to come", (of(1), of(2**31 - 1)), FILLED),
    Case("no epoch", (of(-1),), FILLED),
    Case("a negative epoch", (of(-2), of(-(2**31))), FILLED),
    Case("of an empty partition", (of(0, partition=1), of(1, partition=1), of(-1, partition=1)), FILLED),
    Case("with the leader's epoch", (of(0, current=0),), FILLED),
    Case("with an epoch of the leader to come", (of(0, current=3),), FILLED),
    Case("with a negative epoch of the leader", (of(0, current=-3),), FILLED),
    Case("of an unknown partition", (of(0, partition=9),), FILLED),
    Case("of a negative partition", (of(0, partition=-1),), FILLED),
    Case("of an unknown topic", (of(0, name="$no"),)),
    Case("of an invalid name", (of(0, name="a/b"),)),
    Case("of an empty name", (of(0, name=""),)),
    Case("of nothing", (Call(OffsetForLeaderEpochRequest(replica_id=-1)),)),
    Case("of two partitions", (of_many(0, 1),), FILLED),
    Case("of a partition twice", (of_many(0, 0),), FILLED),
    Case("of no partitions", (of_many(),), FILLED),
    Case("as a debugging client", (of(0, replica=-2),), FILLED),
    Case("as a follower", (of(0, replica=9),), FILLED),
    Case("as the leader itself", (of(0, replica=1),), FILLED),
]
