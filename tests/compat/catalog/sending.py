"""Requests that several catalogs share: produce to topic `$a`, fetch and list its end offset."""

from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.catalog.case import Batch, Call, topic_id

Records = Batch | bytes | None


def produce_request(
    *partitions: tuple[int, Records], acks: int = -1, name: str = "$a", topic_uuid: Uuid | None = None, **more: Any
) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    topic = TopicProduceData(
        name=name, topic_id=topic_id("a") if topic_uuid is None else topic_uuid, partition_data=data
    )
    return ProduceRequest(**{"acks": acks, "timeout_ms": 10_000, "topic_data": [topic], **more})


def produce(records: Records, *, partition: int = 0, version: int | None = None, **more: Any) -> Call:
    return Call(produce_request((partition, records), **more), version)


def fetch_request(
    *partitions: FetchPartition, name: str = "$a", topic_uuid: Uuid | None = None, **more: Any
) -> FetchRequest:
    topic = FetchTopic(
        topic=name, topic_id=topic_id("a") if topic_uuid is None else topic_uuid, partitions=list(partitions)
    )
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "topics": [topic], **more})


def fetch_partition(offset: int = 0, partition: int = 0, **more: int) -> FetchPartition:
    return FetchPartition(**{"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **more})


READ_BACK = Call(fetch_request(fetch_partition()), 12)
"""Fetch the first partition of `$a`."""

END_OFFSET = Call(
    ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="$a", partitions=[ListOffsetsPartition(timestamp=-1)])]
    ),
    7,
)
"""End offset of the first partition of `$a`."""
