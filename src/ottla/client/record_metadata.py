"""Where a record went: what the future of a send holds."""

from typing import NamedTuple


class RecordMetadata(NamedTuple):
    """`offset` is -1 where the broker does not say it (acks=0); `timestamp` is the broker's where the topic has its own time."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key_size: int
    value_size: int
