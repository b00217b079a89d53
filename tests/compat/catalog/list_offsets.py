"""ListOffsets: both ends, by timestamp, by maximum timestamp, unknown partitions."""

from ottla.wire.batches import Record
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.compat.catalog.case import START_MS, Batch, Call, Case, Fill, NewTopic, records

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -2, -1, -3, -4, -5, -6
FILLED = (
    NewTopic("a", 2),
    Fill(Batch(records(5))),
    Fill(Batch(records(5, first=5), codec=1)),
    Fill(Batch(records(2, first=3))),
)


def of(timestamp: int, *, name: str = "$a", partition: int = 0, epoch: int = -1, **fields: int) -> Call:
    entry = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return Call(
        ListOffsetsRequest(**{"replica_id": -1, **fields}, topics=[ListOffsetsTopic(name=name, partitions=[entry])])
    )


def listed(*positions: tuple[int, int]) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name="$a", partitions=[ListOffsetsPartition(partition_index=at, timestamp=value) for at, value in positions]
    )


def of_positions(*positions: tuple[int, int], **fields: int) -> Call:
    return Call(ListOffsetsRequest(**{"replica_id": -1, **fields}, topics=[listed(*positions)]))


def of_many(*timestamps: int, **fields: int) -> Call:
    return of_positions(*enumerate(timestamps), **fields)


TWICE = ListOffsetsRequest(replica_id=-1, topics=[listed((0, LATEST)), listed((1, LATEST))])
SAME_TWICE = ListOffsetsRequest(replica_id=-1, topics=[listed((0, LATEST), (1, LATEST)), listed((0, EARLIEST))])
_TIMES = (3000, 9000, 1000, 9000, 5000)
SHUFFLED = (
    NewTopic("a"),
    Fill(Batch([Record(0, START_MS + time, None, b"v") for time in _TIMES])),
    Fill(Batch(records(3))),
)
TIMELESS = (NewTopic("a"), Fill(Batch([Record(0, -1, None, b"v")] * 2)))


SOME = (1, 4, 7, 10, 11)
CASES = [
    Case("latest", (of(LATEST),), FILLED),
    Case("earliest", (of(EARLIEST),), FILLED),
    Case("empty partition", (of(LATEST, partition=1), of(EARLIEST, partition=1), of(START_MS, partition=1)), FILLED),
    Case("timestamp of a record", (of(START_MS + 3000),), FILLED),
    Case("timestamp between two records", (of(START_MS + 6500),), FILLED),
    Case("timestamp before all records", (of(0), of(START_MS - 1)), FILLED, versions=SOME),
    Case("last timestamp", (of(START_MS + 9000),), FILLED, versions=SOME),
    Case("timestamp after all records", (of(START_MS + 9001), of(2**62)), FILLED, versions=SOME),
    Case("max timestamp", (of(MAX_TIMESTAMP),), FILLED, versions=range(7, 12)),
    Case("max timestamp in a version without it", (of(MAX_TIMESTAMP),), FILLED, versions=range(1, 7)),
    Case("max timestamp of an empty partition", (of(MAX_TIMESTAMP, partition=1),), FILLED, versions=range(7, 12)),
    Case("earliest local", (of(EARLIEST_LOCAL),), FILLED, versions=range(1, 12)),
    Case("latest tiered", (of(LATEST_TIERED),), FILLED, versions=range(1, 12)),
    Case("earliest pending upload", (of(EARLIEST_PENDING),), FILLED, versions=range(1, 12)),
    Case("unknown negative timestamp", (of(-7), of(-100)), FILLED, versions=SOME),
    Case("unknown partition", (of(LATEST, partition=9),), FILLED),
    Case("negative partition", (of(LATEST, partition=-1),), FILLED, versions=SOME),
    Case("unknown topic", (of(LATEST, name="$no"),)),
    Case("invalid topic name", (of(LATEST, name="a/b"),), versions=SOME),
    Case("empty request", (Call(ListOffsetsRequest(replica_id=-1)),)),
    Case("two partitions", (of_many(LATEST, LATEST),), FILLED),
    Case("two partitions, one unknown", (of_many(LATEST, EARLIEST, LATEST),), FILLED, versions=SOME),
    Case(
        "read_committed",
        (of(LATEST, isolation_level=1), of(START_MS + 3000, isolation_level=1)),
        FILLED,
        versions=range(2, 12),
    ),
    Case("unknown isolation level", (of(LATEST, isolation_level=7),), FILLED, versions=(2, 11)),
    Case(
        "unknown isolation level, follower",
        (of(LATEST, isolation_level=7, replica_id=-2), of(LATEST, isolation_level=7, replica_id=4)),
        FILLED,
        versions=(2, 11),
    ),
    Case(
        "unknown isolation level, unknown partition",
        (of(LATEST, name="$no", isolation_level=7),),
        versions=(2, 11),
    ),
    Case(
        "unknown isolation level, two partitions, one unknown",
        (of_many(LATEST, EARLIEST, -100, isolation_level=-1),),
        FILLED,
        versions=(2, 4, 11),
    ),
    Case("same partition twice", (of_positions((0, LATEST), (0, EARLIEST), (1, LATEST)),), FILLED, versions=SOME),
    Case(
        "same unknown partition three times",
        (of_positions((9, LATEST), (9, EARLIEST), (9, -100)),),
        FILLED,
        versions=SOME,
    ),
    Case("same topic twice", (Call(TWICE),), FILLED, versions=SOME),
    Case("same topic twice with the same partition", (Call(SAME_TWICE),), FILLED, versions=SOME),
    Case(
        "timestamp with a future leader epoch",
        (of(START_MS, epoch=5), of(MAX_TIMESTAMP, epoch=5), of(EARLIEST, epoch=5)),
        FILLED,
        versions=range(4, 12),
    ),
    Case("negative leader epoch", (of(LATEST, epoch=-9),), FILLED, versions=(4, 11)),
    Case(
        "special timestamps of an empty partition",
        (of(EARLIEST_LOCAL, partition=1), of(LATEST_TIERED, partition=1), of(EARLIEST_PENDING, partition=1)),
        FILLED,
        versions=SOME,
    ),
    Case(
        "special timestamps of an unknown partition",
        (
            of(EARLIEST_LOCAL, partition=7),
            of(LATEST_TIERED, partition=7),
            of(EARLIEST_PENDING, partition=7),
            of(-100, partition=7),
        ),
        FILLED,
        versions=SOME,
    ),
    Case(
        "timestamps out of order",
        (of(START_MS + 5000), of(START_MS + 5001), of(START_MS), of(START_MS + 10_000)),
        SHUFFLED,
        versions=SOME,
    ),
    Case("max timestamp of several partitions", (of(MAX_TIMESTAMP),), SHUFFLED, versions=(7, 11)),
    Case("records without timestamps", (of(0), of(START_MS), of(LATEST)), TIMELESS, versions=SOME),
    Case("max timestamp of records without timestamps", (of(MAX_TIMESTAMP),), TIMELESS, versions=(7, 11)),
    Case("timeout", (of(LATEST, timeout_ms=0), of(START_MS, timeout_ms=-1)), FILLED, versions=(10, 11)),
    Case("current leader epoch", (of(LATEST, epoch=0),), FILLED, versions=range(4, 12)),
    Case("future leader epoch", (of(LATEST, epoch=5),), FILLED, versions=range(4, 12)),
    Case("debugging consumer", (of(LATEST, replica_id=-2),), FILLED, versions=(1, 11)),
    Case("follower", (of(LATEST, replica_id=9),), FILLED, versions=(1, 11)),
]
