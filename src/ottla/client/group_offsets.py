"""Fetching and committing a group's offsets."""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ErrorCode
from ottla.base.ids import ZERO_UUID
from ottla.client.cluster_client import ClusterClient
from ottla.client.connection import BrokerConnection
from ottla.client.coordinator_finder import CoordinatorFinder
from ottla.client.errors import ClientError, DisconnectedError, broker_error
from ottla.client.positions import by_topic
from ottla.client.records import OffsetAndMetadata, TopicPartition
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

MULTI_GROUP_MIN_VERSION = 8
"""From this version on, OffsetFetch has several groups per request."""
TOPIC_NAME_MAX_VERSION = 9
"""Up to this version, both APIs identify topics by name, which needs no metadata lookup."""
COORDINATOR_MOVED_ERRORS = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
COORDINATOR_PURPOSE = "group"
"""Connection for group requests, separate from fetches."""


class ConsumerGroupMetadata:
    """The member that commits, or a non-member."""

    __slots__ = ("generation", "instance_id", "member_id")

    def __init__(self, member_id: str = "", generation: int = -1, instance_id: str | None = None) -> None:
        self.member_id = member_id
        self.generation = generation
        self.instance_id = instance_id


class GroupOffsetsClient:
    """Each call makes one attempt. After errors that may mean a new coordinator, the next call looks it up again."""

    def __init__(
        self, core: ClusterClient, coordinators: CoordinatorFinder, group: str, *, read_committed: bool
    ) -> None:
        self._core = core
        self._coordinators = coordinators
        self._group = group
        self._read_committed = read_committed

    async def fetch(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the partitions that have one."""
        connection = await self._connection()
        topics = by_topic(partitions)
        version = min(connection.version_for(OffsetFetchRequest), TOPIC_NAME_MAX_VERSION)
        request = OffsetFetchRequest(require_stable=self._read_committed)
        if version >= MULTI_GROUP_MIN_VERSION:
            requested = [
                OffsetFetchRequestTopics(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()
            ]
            request.groups = [OffsetFetchRequestGroup(group_id=self._group, topics=requested)]
        else:
            request.group_id = self._group
            request.topics = [
                OffsetFetchRequestTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()
            ]
        if version < 7:
            request.require_stable = False
        try:
            response = await connection.call(
                request, OffsetFetchResponse, timeout_ms=self._core.request_timeout_ms, version_max=version
            )
        except DisconnectedError:
            self._coordinators.mark_unknown(self._group)
            raise
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        if version >= MULTI_GROUP_MIN_VERSION:
            self._check(response.groups[0].error_code)
            for topic in response.groups[0].topics:
                self._take(topic.name, topic.partitions, found)
        else:
            self._check(response.error_code)
            for old in response.topics:
                self._take(old.name, old.partitions, found)
        return found

    def _take(
        self,
        topic: str,
        partitions: "Sequence[OffsetFetchResponsePartition | OffsetFetchResponsePartitions]",
        found: dict[TopicPartition, OffsetAndMetadata],
    ) -> None:
        for each in partitions:
            self._check(each.error_code)
            if each.committed_offset >= 0:
                partition = TopicPartition(topic, each.partition_index)
                found[partition] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: ConsumerGroupMetadata) -> None:
        """Commit all offsets. Raises the first partition's error."""
        connection = await self._connection()
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=ZERO_UUID,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(list(offsets)).items()
        ]
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=topics,
        )
        try:
            response = await connection.call(
                request,
                OffsetCommitResponse,
                timeout_ms=self._core.request_timeout_ms,
                version_max=TOPIC_NAME_MAX_VERSION,
            )
        except DisconnectedError:
            self._coordinators.mark_unknown(self._group)
            raise
        for topic in response.topics:
            for each in topic.partitions:
                self._check(each.error_code, f"offset of {topic.name}-{each.partition_index}")

    async def _connection(self) -> BrokerConnection:
        node = await self._coordinators.find(self._group)
        try:
            return await self._core.get_connection(node, purpose=COORDINATOR_PURPOSE)
        except ClientError:
            self._coordinators.mark_unknown(self._group)
            raise

    def _check(self, number: int, about: str = "") -> None:
        if number:
            if number in COORDINATOR_MOVED_ERRORS:
                self._coordinators.mark_unknown(self._group)
            raise broker_error(number, about=about or f"group {self._group!r}")
