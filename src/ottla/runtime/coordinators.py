"""The coordinators of a node, each created on first use, so that a node without groups starts faster."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.base.ids import Uuid
from ottla.base.ports import Rng
from ottla.metadata.topic_names import OFFSETS_TOPIC
from ottla.runtime.partition import InternalPartition

if TYPE_CHECKING:
    from ottla.runtime.broker import Broker
    from ottla.runtime.group_coordinator import GroupCoordinator


class Coordinators:
    """Owner of the coordinators. Forwards changes of internal partitions and deleted topics to them."""

    def __init__(self, broker: "Broker", rng: Rng) -> None:
        self._broker = broker
        self._rng = rng
        self._group_coordinator: GroupCoordinator | None = None

    @property
    def group_coordinator(self) -> "GroupCoordinator":
        if self._group_coordinator is None:
            from ottla.runtime.group_coordinator import GroupCoordinator  # takes 20 ms, with its message classes

            self._group_coordinator = GroupCoordinator(self._broker, self._rng)
        return self._group_coordinator

    @property
    def group_coordinator_if_loaded(self) -> "GroupCoordinator | None":
        """The group coordinator, or None before its first use."""
        return self._group_coordinator

    def on_partition(self, partition: InternalPartition) -> None:
        """The partition was opened or removed, or its leader changed."""
        if partition.topic == OFFSETS_TOPIC:
            self.group_coordinator.runtime.on_partition(partition)

    def on_topics_deleted(self, topics: Sequence[tuple[str, Uuid]]) -> None:
        if self._group_coordinator is not None:
            self._group_coordinator.on_topics_deleted(topics)

    def close(self) -> None:
        """Stop answering: the node is shutting down."""
        if self._group_coordinator is not None:
            self._group_coordinator.runtime.close()
