"""Value types of the client: partitions, records and offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ottla.client.errors import ClientError

HeaderPairs = Sequence[tuple[str, bytes | str | None]]
"""Header names and values, in order."""
HeadersLike = HeaderPairs | Mapping[str, bytes | str | None]
"""Headers as a user may pass them."""
RecordHeaders = tuple[tuple[str, bytes | None], ...]
"""Headers of a consumed record."""


class TopicPartition(NamedTuple):
    """A partition of a topic. Prints as `topic-partition`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record to send. Interceptors receive it and may replace it."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: HeadersLike | None = None


class RecordMetadata(NamedTuple):
    """Result of a send. `offset` is -1 with acks=0; `timestamp` is the broker's if the topic uses LogAppendTime."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key_size: int
    value_size: int


class ProducerInterceptor(Protocol):
    """Called for each record before serialization and for each outcome.

    Exceptions from `on_acknowledgement` go to the event loop's exception handler.
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord: ...

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: "ClientError | None") -> None: ...


class ConsumerRecord(NamedTuple):
    """A consumed record. Key and value are bytes, or the deserializers' results."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970; -1 if the record has none."""
    timestamp_type: int
    """0: set by the producer (CreateTime); 1: set by the broker (LogAppendTime)."""
    key: Any
    value: Any
    headers: RecordHeaders = ()
    leader_epoch: int = -1

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class OffsetAndMetadata(NamedTuple):
    """A committed offset (that of the next record to read), with the user's metadata text."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """Offset and timestamp of the first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1
