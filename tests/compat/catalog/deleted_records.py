"""DeleteRecords: the log start offset moves, and earlier offsets are out of range."""

from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.compat.catalog.case import START_MS, Batch, Call, Case, Fill, NewTopic, records
from tests.compat.catalog.sending import fetch_partition, fetch_request

FILLED = (NewTopic("a", 2), Fill(Batch(records(5))), Fill(Batch(records(5, first=5), codec=1)))
SMALL = (
    NewTopic("a", 1, {"segment.bytes": "1048576"}),
    *(Fill(Batch(records(1, first=i, key=b"k" * 400_000))) for i in range(6)),
)


def delete(*parts: tuple[int, int], name: str = "$a", timeout_ms: int = 10_000) -> Call:
    entries = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in parts]
    return Call(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=entries)], timeout_ms=timeout_ms))


def at(timestamp: int) -> Call:
    entry = ListOffsetsPartition(timestamp=timestamp)
    return Call(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="$a", partitions=[entry])]), 7)


def fetched(offset: int) -> Call:
    return Call(fetch_request(fetch_partition(offset, partition_max_bytes=1)), 12)


START, END_OFFSET, BY_TIME, MAX_TIMESTAMP = at(-2), at(-1), at(START_MS), at(-3)
CASES = [
    Case("some records", (delete((0, 7)), START, END_OFFSET, fetched(6), fetched(7), fetched(10)), FILLED),
    Case("all records of a batch", (delete((0, 5)), START, END_OFFSET, fetched(4), fetched(5)), FILLED),
    Case("offset inside a batch", (delete((0, 3)), START, fetched(2), fetched(3), BY_TIME), FILLED),
    Case(
        "list offsets by timestamp afterwards",
        (delete((0, 7)), BY_TIME, at(START_MS + 6500), at(START_MS + 8500), MAX_TIMESTAMP),
        FILLED,
    ),
    Case("all records", (delete((0, 10)), START, END_OFFSET, fetched(9), fetched(10), BY_TIME, MAX_TIMESTAMP), FILLED),
    Case("up to the high watermark", (delete((0, -1)), START, END_OFFSET, fetched(9)), FILLED),
    Case("offset 0", (delete((0, 0)), START, END_OFFSET), FILLED),
    Case("offset after the log end", (delete((0, 11)), START), FILLED),
    Case("negative offset", (delete((0, -2)), delete((0, -(2**63))), START), FILLED),
    Case("offset before the log start offset", (delete((0, 7)), delete((0, 3)), START), FILLED),
    Case("offset at the log start offset", (delete((0, 7)), delete((0, 7)), START), FILLED),
    Case("empty partition", (delete((1, 0)), delete((1, -1)), delete((1, 1))), FILLED),
    Case("two partitions", (delete((0, 4), (1, 0)), START), FILLED),
    Case("two partitions, one unknown", (delete((0, 4), (9, 4)), START), FILLED),
    Case("same partition twice", (delete((0, 4), (0, 6)), START), FILLED),
    Case("unknown partition", (delete((9, 4)),), FILLED),
    Case("negative partition", (delete((-1, 4)),), FILLED),
    Case("unknown topic", (delete((0, 4), name="$no"),)),
    Case("invalid topic name", (delete((0, 4), name="a/b"),)),
    Case("empty topic name", (delete((0, 4), name=""),)),
    Case("metadata log", (delete((0, 4), name="__cluster_metadata"),)),
    Case("empty request", (Call(DeleteRecordsRequest(timeout_ms=1000)),)),
    Case("no partitions", (delete(),), FILLED),
    Case("zero timeout", (delete((0, 4), timeout_ms=0), START), FILLED),
    Case("negative timeout", (delete((0, 4), timeout_ms=-1), START), FILLED),
    Case(
        "compacted topic",
        (delete((0, 0)), delete((0, -1)), START),
        (NewTopic("a", 1, {"cleanup.policy": "compact"}), FILLED[1]),
    ),
    Case(
        "topic with cleanup.policy compact,delete",
        (delete((0, 2)), START),
        (NewTopic("a", 1, {"cleanup.policy": "compact,delete"}), FILLED[1]),
    ),
    Case(
        "topic with an empty cleanup.policy",
        (delete((0, 2)), START),
        (NewTopic("a", 1, {"cleanup.policy": ""}), FILLED[1]),
    ),
    Case("several segments", (delete((0, 5)), START, END_OFFSET, fetched(4)), SMALL, versions=(2,)),
]
