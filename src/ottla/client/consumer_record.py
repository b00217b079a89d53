"""What a consumer hands out: records, and offsets with what belongs to them."""

from typing import Any, NamedTuple

from ottla.client.partitions import TopicPartition

Headers = tuple[tuple[str, bytes | None], ...]


class ConsumerRecord(NamedTuple):
    """One record. Keys and values are bytes, or what the deserializers make of them."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; -1 where the record has none."""
    timestamp_type: int
    """0 where the timestamp is the producer's, 1 where it is the broker's."""
    key: Any
    value: Any
    headers: Headers = ()
    leader_epoch: int = -1

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read, with a text of the user's."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1
