"""The cluster as the metadata log describes it: frozen, and shared between versions wherever nothing changed.

The parts are named tuples: when a large cluster's log is read there are tens of thousands of partitions to make, for 0.5 µs each instead
of the 1.4 µs of a frozen dataclass; and such a class costs a start 0.06 ms instead of 0.5 ms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.base.ids import Uuid
from ottla.metadata.directories import may_be_online

NO_LEADER = -1
METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"


class ResourceType(IntEnum):
    """What a config belongs to; the numbers are Kafka's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A broker resource without a name holds the defaults of all brokers."""

    type: int
    name: str


CLUSTER_DEFAULTS = ConfigResource(ResourceType.BROKER, "")


class LeaderRecovery(IntEnum):
    """Whether the leader was elected uncleanly and has not yet settled what its log holds."""

    RECOVERED = 0
    RECOVERING = 1


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    """The levels of a feature that a node can work at."""

    min: int
    max: int


class BrokerRegistration(NamedTuple):
    broker_id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None

    @property
    def active(self) -> bool:
        """Only an active broker may lead a partition or join its in-sync replicas."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerRegistration(NamedTuple):
    controller_id: int
    incarnation_id: Uuid
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]


class PartitionImage(NamedTuple):
    """`directories` runs beside `replicas`; `elr` holds the eligible leader replicas of KIP-966."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[Uuid, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery: int = LeaderRecovery.RECOVERED
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class TopicImage(NamedTuple):
    """Partitions are kept in the order of their numbers."""

    name: str
    topic_id: Uuid
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """State after `last_offset` of the metadata log. Mappings are never changed in place: a delta makes the next image.

    `passthrough` holds, by record type, what was read and is not served here: it goes into the next snapshot as it came.
    `open_transaction` holds the records of a metadata transaction whose end has not been seen.
    """

    cluster_id: str
    features: Mapping[str, int] = field(default_factory=dict)
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    controllers: Mapping[int, ControllerRegistration] = field(default_factory=dict)
    topics_by_id: Mapping[Uuid, TopicImage] = field(default_factory=dict)
    topics_by_name: Mapping[str, TopicImage] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    passthrough: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    open_transaction: tuple[tuple[int, Any], ...] | None = None
    last_offset: int = -1

    @property
    def metadata_version(self) -> int:
        """0 until the bootstrap records have been replayed."""
        return self.features.get(METADATA_VERSION, 0)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs.get(ConfigResource(ResourceType.TOPIC, name), {})

    def broker_configs(self, broker_id: int) -> Mapping[str, str]:
        return self.configs.get(ConfigResource(ResourceType.BROKER, str(broker_id)), {})

    def cluster_configs(self) -> Mapping[str, str]:
        return self.configs.get(CLUSTER_DEFAULTS, {})

    def offline_replicas(self, partition: PartitionImage) -> list[int]:
        """Replicas whose broker is away, or has lost the directory that they are in."""
        return [
            node
            for node, directory in zip(partition.replicas, partition.directories, strict=True)
            if (broker := self.brokers.get(node)) is None
            or broker.fenced
            or not may_be_online(directory, broker.log_dirs)
        ]

    def passthrough_counts(self) -> dict[str, int]:
        """What to name at start: how many records of which types are stored but not served."""
        return {name: len(records) for name, records in sorted(self.passthrough.items())}
