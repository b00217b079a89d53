"""The client's copy of the cluster metadata: brokers, topics and partition leaders.

Topics are immutable and replaced as a whole, so other threads may look them up during an update.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.client.errors import error_code
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

__all__ = ["NO_LEADER", "ClusterMetadata", "Node", "PartitionInfo", "TopicInfo"]

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Node:
    """A broker and its address."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Leader (-1: none), leader epoch (-1: unknown) and replicas of a partition."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic. `partitions[n]` is partition n; `available` are the partitions that have a leader."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]
    available: tuple[int, ...]


class ClusterMetadata:
    """The latest metadata. `errors` has the error codes of topics without metadata."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.topic_names: dict[Uuid, str] = {}
        self.errors: dict[str, ErrorCode] = {}
        self.updates = 0

    def topic(self, name: str) -> TopicInfo | None:
        return self.topics.get(name)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader's id, or -1 if there is none or it is unknown."""
        info = self.topics.get(topic)
        if info is None or not 0 <= partition < len(info.partitions):
            return NO_LEADER
        return info.partitions[partition].leader

    def update(self, response: MetadataResponse, *, is_complete: bool = False) -> None:
        """Apply a response. With `is_complete`, remove topics that it does not contain."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        if response.brokers:
            self.nodes = {
                broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
                for broker in response.brokers
            }
        named: dict[str, None] = {}
        for topic in response.topics:
            name = topic.name or self.topic_names.get(topic.topic_id, "")
            named[name] = None
            self._apply_topic(name, topic)
        if is_complete:
            for name in list(self.topics):
                if name not in named:
                    self._remove_topic(name)
        self.updates += 1

    def _apply_topic(self, name: str, topic: MetadataResponseTopic) -> None:
        code = error_code(topic.error_code)
        if code != ErrorCode.NONE:
            self.errors[name] = code
            if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                self._remove_topic(name)
            return
        self.errors.pop(name, None)
        before = self.topics.get(name)
        if before is not None and before.id != topic.topic_id:
            self._remove_topic(name)  # recreated: the known partitions belong to another topic
            before = None
        ordered = sorted(topic.partitions, key=lambda each: each.partition_index)
        infos = []
        for each in ordered:
            info = PartitionInfo(
                name,
                each.partition_index,
                each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
                tuple(each.offline_replicas),
            )
            if before is not None and each.partition_index < len(before.partitions):
                known = before.partitions[each.partition_index]
                if known.leader_epoch > info.leader_epoch >= 0:
                    info = known  # a broker with older metadata must not restore an old leader
            infos.append(info)
        available = tuple(info.partition for info in infos if info.leader >= 0)
        self.topics[name] = TopicInfo(name, topic.topic_id, topic.is_internal, tuple(infos), available)
        if topic.topic_id != ZERO_UUID:
            self.topic_names[topic.topic_id] = name

    def set_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, nodes: Iterable[Node] = ()
    ) -> bool:
        """Apply a leader reported by a former leader. Returns True if it is newer than the known one."""
        info = self.topics.get(topic)
        for node in nodes:
            self.nodes[node.id] = node
        if info is None or not 0 <= partition < len(info.partitions) or leader not in self.nodes:
            return False
        known = info.partitions[partition]
        if leader_epoch <= known.leader_epoch:
            return False
        changed = PartitionInfo(topic, partition, leader, leader_epoch, known.replicas, known.in_sync, known.offline)
        partitions = (*info.partitions[:partition], changed, *info.partitions[partition + 1 :])
        available = tuple(each.partition for each in partitions if each.leader >= 0)
        self.topics[topic] = TopicInfo(info.name, info.id, info.is_internal, partitions, available)
        return True

    def _remove_topic(self, name: str) -> None:
        removed = self.topics.pop(name, None)
        if removed is not None:
            self.topic_names.pop(removed.id, None)
