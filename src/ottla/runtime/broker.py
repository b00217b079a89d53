"""What the APIs work on: the image, the partitions that are here, and the way to the controller."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.ids import Uuid
from ottla.base.ports import Clock, Workers
from ottla.metadata.image import ClusterImage
from ottla.runtime.controller_driver import ControllerDriver
from ottla.runtime.partition import Partition
from ottla.runtime.producer_ids import ProducerIds

Partitions = list[Partition | None]
"""The partitions of a topic by their index; None where one is not here."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The configs that requests depend on, as typed values."""

    node_id: int
    request_bytes_max: int
    fetch_bytes_max: int
    is_auto_create_enabled: bool
    static_configs: Mapping[str, str]
    """What the properties file and the command line said, for DescribeConfigs."""


class Broker:
    """One node's broker side. Handlers read it; only the publisher changes what it holds."""

    def __init__(self, *, settings: BrokerSettings, image: ClusterImage, clock: Clock, workers: Workers, controller: ControllerDriver,
                 producer_ids: ProducerIds) -> None:
        self.settings = settings
        self.image = image
        self.clock = clock
        self.workers = workers
        self.controller = controller
        self.producer_ids = producer_ids
        self.loop = asyncio.get_running_loop()
        self.partitions_by_id: dict[bytes, Partitions] = {}
        self.partitions_by_name: dict[bytes, Partitions] = {}
        self.api_ranges: tuple[tuple[int, int, int], ...] = ()
        """Key, first and last version of every API that is served."""

    def partition(self, topic: str, index: int) -> Partition | None:
        partitions = self.partitions_by_name.get(topic.encode())
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def add_partition(self, partition: Partition) -> None:
        """Called by the publisher, in the order of the indexes or not."""
        partitions = self.partitions_by_id.setdefault(partition.topic_id, [])
        while len(partitions) <= partition.index:
            partitions.append(None)
        partitions[partition.index] = partition
        self.partitions_by_name[partition.topic.encode()] = partitions

    def remove_topic(self, name: str, topic_id: Uuid) -> list[Partition]:
        """Called by the publisher: the partitions that were here."""
        partitions = self.partitions_by_id.pop(topic_id, [])
        if self.partitions_by_name.get(name.encode()) is partitions:
            del self.partitions_by_name[name.encode()]
        return [partition for partition in partitions if partition is not None]

    def all_partitions(self) -> list[Partition]:
        return [partition for partitions in self.partitions_by_id.values() for partition in partitions if partition is not None]
