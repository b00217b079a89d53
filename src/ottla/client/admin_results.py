"""Arguments and results of Admin."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.config_text import ConfigScalar
from ottla.base.ids import Uuid
from ottla.client.cluster_metadata import Node
from ottla.client.errors import ClientError
from ottla.client.records import TopicPartition


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 means the broker's default.

    `assignments` (brokers of each partition) replaces the numbers.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, ConfigScalar | None] = field(default_factory=dict)
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
    """A resource with configs. `kind` is "topic", "broker", "broker_logger", "group" or "client_metrics"; the broker
    name "" is the default of all brokers.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config's value and its source: "default", "static", "dynamic_topic", "dynamic_broker" and so on."""

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
    """The offset of a timestamp or of an end of a partition; -1 if there is none."""

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
    """A log directory of a broker. File system sizes are -1 if the broker does not report them."""

    path: str
    error: ClientError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class ProducerState:
    """State of a producer in a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(frozen=True, slots=True)
class Features:
    """Version ranges (min, max) by feature: supported by the brokers, and finalized by the cluster."""

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
    """A group's committed offset in a partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
