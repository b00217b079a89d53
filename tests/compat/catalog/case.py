"""A case of the catalog: plain data, with placeholders for values that only a run knows.

A case makes one request in all versions that support it. Topic and group names are written `$a`, `$b`, ..., member ids
that the broker assigned `@a`, `@b`, ... A run makes names unique and restores the placeholders in the response, so the
same case can be run against any broker and the responses compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.batches import Record
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.schema import Message

LAST_SESSION = 1_234_567_890
"""In a fetch: the session id of the previous response."""
NODE = 1_234_567_891
"""Placeholder for the broker's id."""
UNKNOWN_ID = Uuid(b"no topic has it!")
START_MS = 1_700_000_000_000


def topic_id(name: str) -> Uuid:
    """Return a placeholder for the id of topic `$name`."""
    return Uuid(b"$id:" + name.encode().ljust(12, b"\0"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Stands for a record batch. `producer` names a `NewProducer` step. `corrupt` changes the final bytes."""

    records: Sequence[Record]
    codec: int = 0
    producer: str | None = None
    producer_epoch: int = 0
    sequence: int = 0
    is_control: bool = False
    is_transactional: bool = False
    corrupt: Callable[[bytearray], bytes | bytearray] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A request (or a function that creates it for a version) with a response. `version` defaults to the case's."""

    request: Message | Callable[[int], Message]
    version: int | None = None
    until: Callable[[Any], bool] | None = None
    """Repeat the request until the response meets this: changes may be visible with a delay."""
    on: str = ""
    """Name of the connection."""
    member: str | None = None
    """The response's member id can be written `@member` from here on."""


@dataclass(frozen=True, slots=True)
class Start:
    """Send a request whose response may be delayed; `Await` receives it."""

    request: Message
    version: int | None = None
    on: str = ""


@dataclass(frozen=True, slots=True)
class Await:
    """Receive the response of the request started on this connection."""

    on: str = ""
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close a connection."""

    on: str = ""


@dataclass(frozen=True, slots=True)
class SendOnly:
    """Send a request without a response: Produce with acks=0."""

    request: Message
    version: int | None = None


@dataclass(frozen=True, slots=True)
class RawFrame:
    """Send a frame's contents; the response is decoded as one to `read_as`, unless the connection is closed."""

    contents: bytes
    read_as: type[Message]
    version: int


@dataclass(frozen=True, slots=True)
class NewTopic:
    """Create a topic and wait for its partitions' leaders."""

    name: str = "a"
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewProducer:
    name: str


@dataclass(frozen=True, slots=True)
class Fill:
    """Append records with the given timestamps."""

    batch: Batch
    topic: str = "a"
    partition: int = 0


Step = Call | Start | Await | Disconnect | SendOnly | RawFrame | NewTopic | NewProducer | Fill


@dataclass(frozen=True, slots=True)
class Case:
    """`steps` are recorded, `before` is not. `versions` default to all versions of the first request."""

    name: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    versions: Sequence[int] | None = None

    def all_versions(self) -> Sequence[int]:
        if self.versions is not None:
            return self.versions
        first = next(step.request for step in self.steps if isinstance(step, Call))
        assert isinstance(first, Message), f"{self.name}: versions are required"
        return range(type(first).MIN_VERSION, type(first).MAX_VERSION + 1)


def described_topic(name: str, partitions: int) -> Call:
    """Return the topic's metadata once it has `partitions` partitions, or, if that is 0, once it is deleted."""

    def is_applied(response: Any) -> bool:
        topic = response.topics[0]
        led = all(partition.leader_id >= 0 for partition in topic.partitions)
        return len(topic.partitions) == partitions and led and (topic.error_code == 0) == (partitions > 0)

    return Call(
        MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False), 12, is_applied
    )


def records(count: int, *, first: int = 0, step_ms: int = 1000, key: bytes | None = b"k") -> list[Record]:
    """Return records `v0`, `v1`, ... with increasing timestamps."""
    return [Record(0, START_MS + step_ms * i, key, b"v%d" % i) for i in range(first, first + count)]
