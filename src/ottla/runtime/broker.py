"""The broker state that API handlers use: the metadata image, this node's partitions and the controller."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Clock, Processes, Workers
from ottla.metadata.configs import merged_broker_config
from ottla.metadata.image import ClusterImage, TopicImage, VersionRange
from ottla.runtime.controller_driver import ControllerDriver, ProducerIdAllocator
from ottla.runtime.encoded_topics import EncodedTopicCache
from ottla.runtime.internal_topics import InternalTopics, internal_topic
from ottla.runtime.log_directories import LogDirectories
from ottla.runtime.partition import Partition
from ottla.runtime.slice_scheduler import SliceScheduler
from ottla.runtime.unsupported_features import UnsupportedFeatures
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from ottla.runtime.coordinators import Coordinators
    from ottla.runtime.group_coordinator import GroupCoordinator
    from ottla.runtime.log_cleaner import LogCleaner
    from ottla.runtime.replica_mover import ReplicaMover

CREATION_TIMEOUT_MS = 30_000
PENDING_CREATIONS_MAX = 1_000
"""Topics being auto-created at any time. Others are skipped until their clients retry."""
CREATION_BATCH_SIZE = 10

log = logging.getLogger("ottla.broker")

Partitions = list[Partition | None]
"""A topic's partitions by index; None for a partition that is not on this node."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Static configs that request handlers use, as typed values."""

    node_id: int
    request_bytes_max: int
    fetch_bytes_max: int
    is_auto_create_enabled: bool
    auto_created_topics_max: int
    """Auto-creation stops at this number of topics."""
    static_configs: Mapping[str, str]
    """Configs from the properties file and the command line, for DescribeConfigs."""


class BrokerEndpoint(NamedTuple):
    """A broker's address on one listener."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class Broker:
    """State of this node's broker. Handlers read it; only the MetadataPublisher changes the image and partitions."""

    def __init__(
        self,
        *,
        settings: BrokerSettings,
        image: ClusterImage,
        clock: Clock,
        workers: Workers,
        processes: Processes,
        controller: ControllerDriver,
    ) -> None:
        self.settings = settings
        self.image = image
        self.clock = clock
        self.workers = workers
        self.processes = processes
        self.controller = controller
        self.log_directories: LogDirectories
        """Set by the publisher."""
        self.replica_mover: ReplicaMover
        """Set by the publisher."""
        self.producer_ids: ProducerIdAllocator
        """Set when the broker is registered, before the first request."""
        self.coordinators: Coordinators
        """Set when the node is assembled."""
        self.log_cleaner: LogCleaner | None = None
        """Set when the node has started, unless `log.cleaner.enable` is false."""
        self.internal_topics = InternalTopics(self)
        self.unsupported_features = UnsupportedFeatures()
        self.loop = asyncio.get_running_loop()
        self.scheduler = SliceScheduler(self.loop, clock)
        """Runs long work in time slices."""
        self.encoded_topics = EncodedTopicCache()
        """Encoded topics of Metadata responses."""
        self.supported_features: Mapping[str, VersionRange] = {}
        self.flushes_in_flight: dict[str, asyncio.Future[Any]] = {}
        """Flush in progress, by the directory of the log."""
        self._creating: dict[str, None] = {}
        self._background: dict[asyncio.Future[Any], None] = {}
        self.partitions_by_id: dict[bytes, Partitions] = {}
        self.partitions_by_name: dict[bytes, Partitions] = {}
        self.offline: dict[bytes, dict[int, None]] = {}
        """Partitions, by topic id, that are assigned to this node but whose directory has failed."""
        self.api_ranges: tuple[tuple[int, int, int], ...] = ()
        """API key, first and last version of every supported API."""

    def configs(self) -> Mapping[str, str]:
        """Return the configs set for this broker: static, cluster-wide and per broker."""
        image, settings = self.image, self.settings
        return merged_broker_config(
            settings.static_configs, image.cluster_configs(), image.broker_configs(settings.node_id)
        )

    @property
    def group_coordinator(self) -> "GroupCoordinator":
        return self.coordinators.group_coordinator

    def endpoints(self, listener: str, *, include_fenced: bool = False) -> list[BrokerEndpoint]:
        """Return the brokers that have a listener of this name, by id."""
        return [
            BrokerEndpoint(broker_id, endpoint.host, endpoint.port, registration.rack, registration.fenced)
            for broker_id, registration in sorted(self.image.brokers.items())
            if (endpoint := registration.endpoints.get(listener)) is not None
            and (include_fenced or not registration.fenced)
        ]

    def auto_create_topics(self, topics: Sequence[str]) -> None:
        """Create topics in the background. A client whose topic is rejected finds it still missing when it retries."""
        allowed = min(PENDING_CREATIONS_MAX, self.settings.auto_created_topics_max - len(self.image.topics_by_name))
        names = [name for name in dict.fromkeys(topics) if name not in self._creating]
        names = names[: max(allowed - len(self._creating), 0)]
        if names:
            self._creating.update(dict.fromkeys(names))
            self.spawn(self._create(names))

    async def _create(self, names: list[str]) -> None:
        """Create topics in small batches: deciding about many at once would block the event loop."""
        try:
            for first in range(0, len(names), CREATION_BATCH_SIZE):
                topics = [
                    internal_topic(self, name) or CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
                    for name in names[first : first + CREATION_BATCH_SIZE]
                ]
                await self.controller.submit(CreateTopicsRequest(topics=topics, timeout_ms=CREATION_TIMEOUT_MS))
        finally:
            for name in names:
                del self._creating[name]

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine in the background and log its failure."""
        task = self.loop.create_task(work)
        self._background[task] = None
        task.add_done_callback(self._on_background_done)

    def run_in_background(self, work: Callable[[], Any]) -> None:
        """Run blocking work in a worker thread, in the background, and log its failure."""
        future = self.workers.run(work)
        self._background[future] = None
        future.add_done_callback(self._on_background_done)

    def cancel_background(self) -> None:
        """Cancel all background work, as in a crash."""
        for future in list(self._background):
            future.cancel()

    def _on_background_done(self, future: asyncio.Future[Any]) -> None:
        del self._background[future]
        if not future.cancelled() and future.exception() is not None:
            log.error("background task failed", exc_info=future.exception())

    def partition(self, topic: str, index: int) -> Partition | None:
        partitions = self.partitions_by_name.get(topic.encode())
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def add_partition(self, partition: Partition) -> None:
        """Add an open partition. Called by the publisher, in any order of indexes."""
        partitions = self.partitions_by_id.setdefault(partition.topic_id, [])
        while len(partitions) <= partition.index:
            partitions.append(None)
        partitions[partition.index] = partition
        if self.offline:
            self.offline.get(partition.topic_id, {}).pop(partition.index, None)
        self.partitions_by_name[partition.topic.encode()] = partitions

    def set_offline(self, topic: str, topic_id: Uuid, index: int) -> None:
        """Mark a partition of this node as offline. Called by the publisher."""
        partitions = self.partitions_by_id.setdefault(topic_id, [])
        while len(partitions) <= index:
            partitions.append(None)
        partitions[index] = None
        self.partitions_by_name[topic.encode()] = partitions
        self.offline.setdefault(topic_id, {})[index] = None

    def topic_image(self, topic: str | bytes) -> TopicImage | None:
        """Look a topic up by name or id."""
        return (
            self.image.topics_by_name.get(topic) if isinstance(topic, str) else self.image.topics_by_id.get(Uuid(topic))
        )

    def missing_error(self, topic: str | bytes, index: int) -> ErrorCode:
        """Return the error code for a partition that was not found, of a topic given by name or id."""
        return self.missing_error_in(self.topic_image(topic), index)

    def missing_error_in(self, topic: TopicImage | None, index: int) -> ErrorCode:
        """Like `missing_error`, of a topic that was looked up.

        A partition that is not open yet gets NOT_LEADER_OR_FOLLOWER, so that the client retries.
        """
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if index in self.offline.get(topic.topic_id, ()):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if index in topic.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def remove_topic(self, name: str, topic_id: Uuid) -> list[Partition]:
        """Remove a topic and return its partitions on this node. Called by the publisher."""
        self.offline.pop(topic_id, None)
        partitions = self.partitions_by_id.pop(topic_id, [])
        if self.partitions_by_name.get(name.encode()) is partitions:
            del self.partitions_by_name[name.encode()]
        return [partition for partition in partitions if partition is not None]

    def all_partitions(self) -> list[Partition]:
        return [
            partition
            for partitions in self.partitions_by_id.values()
            for partition in partitions
            if partition is not None
        ]
