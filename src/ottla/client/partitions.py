"""A partition of a topic, by name and number."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Sorts by topic, then by number; prints as logs print it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
