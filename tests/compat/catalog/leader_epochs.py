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
    Case("current epoch", (of(0),), FILLED),
    Case("future epoch", (of(1), of(2**31 - 1)), FILLED),
    Case("epoch -1", (of(-1),), FILLED),
    Case("epoch below -1", (of(-2), of(-(2**31))), FILLED),
    Case("empty partition", (of(0, partition=1), of(1, partition=1), of(-1, partition=1)), FILLED),
    Case("current leader epoch", (of(0, current=0),), FILLED),
    Case("future leader epoch", (of(0, current=3),), FILLED),
    Case("negative leader epoch", (of(0, current=-3),), FILLED),
    Case("unknown partition", (of(0, partition=9),), FILLED),
    Case("negative partition", (of(0, partition=-1),), FILLED),
    Case("unknown topic", (of(0, name="$no"),)),
    Case("invalid topic name", (of(0, name="a/b"),)),
    Case("empty topic name", (of(0, name=""),)),
    Case("empty request", (Call(OffsetForLeaderEpochRequest(replica_id=-1)),)),
    Case("two partitions", (of_many(0, 1),), FILLED),
    Case("same partition twice", (of_many(0, 0),), FILLED),
    Case("no partitions", (of_many(),), FILLED),
    Case("debugging consumer", (of(0, replica=-2),), FILLED),
    Case("follower", (of(0, replica=9),), FILLED),
    Case("replica id of the leader", (of(0, replica=1),), FILLED),
]
