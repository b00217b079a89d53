"""What Admin takes and gives: values, and the error that says which of several things failed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.ids import Uuid
from ottla.client.cluster_metadata import Node
from ottla.client.errors import ClientError
from ottla.client.records import TopicPartition


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made; -1 takes the broker's default.

    With `assignments`, the brokers of each partition, the numbers do not matter.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    id: Uuid
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicListing:
    name: str
    id: Uuid
    is_internal: bool


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    partition: int
    leader: Node | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """Whose configs: `kind` is "topic", "broker", "broker_logger", "group" or "client_metrics"; a broker "" is the
    default of all.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config's value, and where it comes from: "default", "static", "dynamic_topic", "dynamic_broker" and so on."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[tuple[str, str | None, str], ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source == "default"


@dataclass(frozen=True, slots=True)
class OffsetInfo:
    """An offset that belongs to a time, or an end of a partition; -1 where there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    node: Node
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str
    controller: int
    brokers: tuple[BrokerDescription, ...]


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory of a broker. Sizes of its file system are -1 where the broker does not say them."""

    path: str
    error: ClientError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(frozen=True, slots=True)
class Features:
    """Ranges (least, most) by name: what the brokers could, and what the cluster has agreed on."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, tuple[int, int]]
    epoch: int


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class Quorum:
    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...]
    coordinator: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has come in a partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
