"""What the APIs work on: the image, the partitions that are here, and the way to the controller."""

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
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from ottla.runtime.coordinators import Coordinators
    from ottla.runtime.group_coordinator import GroupCoordinator
    from ottla.runtime.log_cleaner import LogCleaner
    from ottla.runtime.replica_mover import ReplicaMover

CREATION_TIMEOUT_MS = 30_000
PENDING_CREATIONS_MAX = 1_000
"""Topics that are being created because somebody asked for them; a client whose topic was left out asks again."""
CREATION_BATCH_SIZE = 10

log = logging.getLogger("ottla.broker")

Partitions = list[Partition | None]
"""The partitions of a topic by their index; None where one is not here."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The configs that requests depend on, as typed values."""

    node_id: int
    request_bytes_max: int
    fetch_bytes_max: int
    is_auto_create_enabled: bool
    auto_created_topics_max: int
    """No topic is created by being asked for once there are so many."""
    static_configs: Mapping[str, str]
    """What the properties file and the command line said, for DescribeConfigs."""


class BrokerEndpoint(NamedTuple):
    """A broker as clients of one listener reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class Broker:
    """One node's broker side. Handlers read it; only the publisher changes what it holds."""

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
        """Set by the publisher, which keeps partitions in them."""
        self.replica_mover: ReplicaMover
        """Set by the publisher: partitions on their way from one directory to another."""
        self.producer_ids: ProducerIdAllocator
        """There once the broker is registered, and so before the first request."""
        self.coordinators: Coordinators
        """Set when the node is put together."""
        self.log_cleaner: LogCleaner | None = None
        """There once the node serves, unless logs are not to be compacted."""
        self.internal_topics = InternalTopics(self)
        self.loop = asyncio.get_running_loop()
        self.scheduler = SliceScheduler(self.loop, clock)
        """For what is done in slices."""
        self.metadata_bytes = EncodedTopicCache()
        """Topics as Metadata answers them."""
        self.supported_features: Mapping[str, VersionRange] = {}
        self.flushes_in_flight: dict[str, asyncio.Future[Any]] = {}
        """Directories of logs that a worker is writing to right now."""
        self._creating: dict[str, None] = {}
        self._background: dict[asyncio.Future[Any], None] = {}
        self.partitions_by_id: dict[bytes, Partitions] = {}
        self.partitions_by_name: dict[bytes, Partitions] = {}
        self.offline: dict[bytes, dict[int, None]] = {}
        """Partitions, by topic id, that should be here but whose directory cannot be used."""
        self.api_ranges: tuple[tuple[int, int, int], ...] = ()
        """Key, first and last version of every API that is served."""

    def configs(self) -> Mapping[str, str]:
        """What is set for this broker: in its file, for all brokers, and for it alone."""
        image, settings = self.image, self.settings
        return merged_broker_config(
            settings.static_configs, image.cluster_configs(), image.broker_configs(settings.node_id)
        )

    @property
    def group_coordinator(self) -> "GroupCoordinator":
        """The coordinator of groups."""
        return self.coordinators.group_coordinator

    def endpoints(self, listener: str, *, include_fenced: bool = False) -> list[BrokerEndpoint]:
        """The brokers that can be reached at a listener of this name, by their ids."""
        return [
            BrokerEndpoint(broker_id, endpoint.host, endpoint.port, registration.rack, registration.fenced)
            for broker_id, registration in sorted(self.image.brokers.items())
            if (endpoint := registration.endpoints.get(listener)) is not None
            and (include_fenced or not registration.fenced)
        ]

    def auto_create_topics(self, topics: Sequence[str]) -> None:
        """Auto-creation: nobody waits for the answer; a name that was refused is simply not there when the client asks again."""
        room = min(PENDING_CREATIONS_MAX, self.settings.auto_created_topics_max - len(self.image.topics_by_name)) - len(
            self._creating
        )
        wanted = [name for name in dict.fromkeys(topics) if name not in self._creating][: max(room, 0)]
        if wanted:
            self._creating.update(dict.fromkeys(wanted))
            self.spawn(self._create(wanted))

    async def _create(self, names: list[str]) -> None:
        """A few at a time: to decide on many at once would hold up the loop."""
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
        """Run something that no request waits for; a failure is said in the log."""
        task = self.loop.create_task(work)
        self._background[task] = None
        task.add_done_callback(self._on_background_done)

    def run_in_background(self, work: Callable[[], Any]) -> None:
        """The same for work that blocks."""
        future = self.workers.run(work)
        self._background[future] = None
        future.add_done_callback(self._on_background_done)

    def _on_background_done(self, future: asyncio.Future[Any]) -> None:
        del self._background[future]
        if not future.cancelled() and future.exception() is not None:
            log.error("work in the background failed", exc_info=future.exception())

    def partition(self, topic: str, index: int) -> Partition | None:
        partitions = self.partitions_by_name.get(topic.encode())
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def add_partition(self, partition: Partition) -> None:
        """Called by the publisher, in the order of the indexes or not."""
        partitions = self.partitions_by_id.setdefault(partition.topic_id, [])
        while len(partitions) <= partition.index:
            partitions.append(None)
        partitions[partition.index] = partition
        if self.offline:
            self.offline.get(partition.topic_id, {}).pop(partition.index, None)
        self.partitions_by_name[partition.topic.encode()] = partitions

    def set_offline(self, topic: str, topic_id: Uuid, index: int) -> None:
        """Called by the publisher: a partition that was here, or should be, cannot be used."""
        partitions = self.partitions_by_id.setdefault(topic_id, [])
        while len(partitions) <= index:
            partitions.append(None)
        partitions[index] = None
        self.partitions_by_name[topic.encode()] = partitions
        self.offline.setdefault(topic_id, {})[index] = None

    def topic_image(self, topic: str | bytes) -> TopicImage | None:
        """A topic by its name or its id."""
        return (
            self.image.topics_by_name.get(topic) if isinstance(topic, str) else self.image.topics_by_id.get(Uuid(topic))
        )

    def missing_error(self, topic: str | bytes, index: int) -> ErrorCode:
        """What is said of a partition that was not found, of a topic by its name or its id."""
        return self.missing_error_in(self.topic_image(topic), index)

    def missing_error_in(self, topic: TopicImage | None, index: int) -> ErrorCode:
        """The same of a topic that was looked up. A partition that is still to be opened has no leader yet; who hears that asks again."""
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if index in self.offline.get(topic.topic_id, ()):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if index in topic.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def remove_topic(self, name: str, topic_id: Uuid) -> list[Partition]:
        """Called by the publisher: the partitions that were here."""
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
