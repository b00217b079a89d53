"""What a case of the catalog is made of: plain data, with placeholders for what only a run knows.

A case asks one thing in all the versions that can say it. Names of topics and groups are written `$a`, `$b`, ..., ids of members that
the broker gave `@a`, `@b`, ...; the run makes them unique and writes them back into the response. So the same case is requested of any
broker, and its responses can be compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.batches import Record
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.schema import Message

LAST_SESSION = 1_234_567_890
"""In a fetch: the session that the response before gave."""
NODE = 1_234_567_891
"""The broker's id."""
UNKNOWN_ID = Uuid(b"no topic has it!")
START_MS = 1_700_000_000_000


def topic_id(name: str) -> Uuid:
    """Stands for the id of the topic `$name`."""
    return Uuid(b"$id:" + name.encode().ljust(12, b"\0"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Stands for a record batch; a `producer` is one that a `NewProducer` step made. `corrupt` changes the bytes at the end."""

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
    """A request, or how to make it for a version, and its response. Without a version, the one that the case is run in."""

    request: Message | Callable[[int], Message]
    version: int | None = None
    until: Callable[[Any], bool] | None = None
    """Asked again until the response is so: what one request changed, another sees a moment later."""
    on: str = ""
    """The connection, by a name that the case gives it."""
    member: str | None = None
    """The member id in the response is known as `@member` from here on."""


@dataclass(frozen=True, slots=True)
class Start:
    """A request that may have to wait for others; `Await` takes its response."""

    request: Message
    version: int | None = None
    on: str = ""


@dataclass(frozen=True, slots=True)
class Await:
    """The response to what was started on this connection."""

    on: str = ""
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A connection is closed by the client."""

    on: str = ""


@dataclass(frozen=True, slots=True)
class SendOnly:
    """A request that has no response: Produce with acks=0."""

    request: Message
    version: int | None = None


@dataclass(frozen=True, slots=True)
class RawFrame:
    """Bytes of a frame behind its size; what comes back is read as the response to `read_as`, or the connection is closed."""

    contents: bytes
    read_as: type[Message]
    version: int


@dataclass(frozen=True, slots=True)
class NewTopic:
    """Made before, and waited for until its partitions are led."""

    name: str = "a"
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewProducer:
    name: str


@dataclass(frozen=True, slots=True)
class Fill:
    """Records appended before; timestamps as given."""

    batch: Batch
    topic: str = "a"
    partition: int = 0


Step = Call | Start | Await | Disconnect | SendOnly | RawFrame | NewTopic | NewProducer | Fill


@dataclass(frozen=True, slots=True)
class Case:
    """`steps` are recorded, `before` is not. `versions` are all of the first request's where none are given."""

    name: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    versions: Sequence[int] | None = None

    def all_versions(self) -> Sequence[int]:
        if self.versions is not None:
            return self.versions
        first = next(step.request for step in self.steps if isinstance(step, Call))
        assert isinstance(first, Message), f"{self.name}: say the versions"
        return range(type(first).MIN_VERSION, type(first).MAX_VERSION + 1)


def described_topic(name: str, partitions: int) -> Call:
    """The topic's metadata, once it has so many partitions; 0: once it is not there."""

    def is_applied(response: Any) -> bool:
        topic = response.topics[0]
        led = all(partition.leader_id >= 0 for partition in topic.partitions)
        return len(topic.partitions) == partitions and led and (topic.error_code == 0) == (partitions > 0)

    return Call(
        MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False), 12, is_applied
    )


def records(count: int, *, first: int = 0, step_ms: int = 1000, key: bytes | None = b"k") -> list[Record]:
    """Records with times in order: `key`, `v0`, `v1`, ..."""
    return [Record(0, START_MS + step_ms * i, key, b"v%d" % i) for i in range(first, first + count)]
