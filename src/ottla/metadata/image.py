"""Immutable image of the metadata log. Consecutive images share unchanged parts.

The parts are named tuples: loading a large cluster creates tens of thousands of partitions, at 0.5 µs each instead of
1.4 µs for a frozen dataclass, and defining a named tuple takes 0.06 ms of startup instead of 0.5 ms.
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
    """Type of a config resource, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A broker resource with an empty name holds the cluster-wide defaults."""

    type: int
    name: str


CLUSTER_DEFAULTS = ConfigResource(ResourceType.BROKER, "")


class LeaderRecovery(IntEnum):
    """RECOVERING: the leader was elected uncleanly and has not confirmed its log yet."""

    RECOVERED = 0
    RECOVERING = 1


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    """Feature levels that a node supports."""

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
        """Whether the broker may lead partitions or join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerRegistration(NamedTuple):
    controller_id: int
    incarnation_id: Uuid
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]


class PartitionImage(NamedTuple):
    """`directories` is parallel to `replicas`. `elr` are the eligible leader replicas of KIP-966."""

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
    """Partitions are sorted by number."""

    name: str
    topic_id: Uuid
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """State after `last_offset` of the metadata log. Mappings are never modified; a delta produces the next image.

    `passthrough` holds records that are not served, by type; they are written to the next snapshot unchanged.
    `open_transaction` holds the records of an unfinished metadata transaction.
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
        """0 before the bootstrap records are replayed."""
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
        """Return replicas whose broker is unavailable or lost their directory."""
        return [
            node
            for node, directory in zip(partition.replicas, partition.directories, strict=True)
            if (broker := self.brokers.get(node)) is None
            or broker.fenced
            or not may_be_online(directory, broker.log_dirs)
        ]

    def passthrough_counts(self) -> dict[str, int]:
        """Return the number of stored but unserved records by type, which is logged at startup."""
        return {name: len(records) for name, records in sorted(self.passthrough.items())}
