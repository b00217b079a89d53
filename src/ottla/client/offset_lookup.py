"""Offsets from partition leaders: by timestamp, and the end offset of a leader epoch."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode
from ottla.client.cluster_client import ClusterClient
from ottla.client.errors import BrokerError, ClientError, broker_error
from ottla.client.positions import by_topic
from ottla.client.records import TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

T = TypeVar("T")
CONSUMER_REPLICA_ID = -1
"""Replica id of clients that are not replicas."""


class FoundOffset(NamedTuple):
    """`offset` is -1 if there is no record at or after the timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """End offset of the largest epoch up to the requested one; -1 if the leader does not know it."""

    leader_epoch: int
    end_offset: int


class Outcome(Generic[T]):
    """Results of some partitions and errors of others."""

    __slots__ = ("failed", "found")

    def __init__(self) -> None:
        self.found: dict[TopicPartition, T] = {}
        self.failed: dict[TopicPartition, ClientError] = {}

    def take(self, responses: Iterable[tuple[TopicPartition, int, T]], about: str) -> None:
        """Add results; an error code other than 0 becomes an error."""
        for partition, error, value in responses:
            if error:
                self.failed[partition] = broker_error(error, about=f"{about} of {partition}")
            else:
                self.found[partition] = value

    def all_or_raise(self) -> dict[TopicPartition, T]:
        """Return the results. Raises if any partition failed, with fatal errors first."""
        for error in sorted(self.failed.values(), key=lambda error: error.is_retriable):
            raise error
        return self.found


class OffsetLookup:
    """Each call makes one attempt at every leader involved."""

    def __init__(self, core: ClusterClient, *, read_committed: bool) -> None:
        self._core = core
        self._isolation = int(read_committed)

    async def by_timestamp(self, requested: Mapping[TopicPartition, int]) -> Outcome[FoundOffset]:
        """Look up milliseconds, or the special timestamps of ListOffsets."""

        async def call_leader(node: int, partitions: Sequence[TopicPartition], outcome: Outcome[FoundOffset]) -> None:
            topics = [
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=self._epoch(topic, index),
                            timestamp=requested[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ]
            request = ListOffsetsRequest(
                replica_id=CONSUMER_REPLICA_ID,
                isolation_level=self._isolation,
                topics=topics,
                timeout_ms=int(self._core.request_timeout_ms),
            )
            response = await self._core.call(node, request, ListOffsetsResponse)
            outcome.take(
                (
                    (
                        TopicPartition(topic.name, each.partition_index),
                        each.error_code,
                        FoundOffset(each.offset, each.timestamp, each.leader_epoch),
                    )
                    for topic in response.topics
                    for each in topic.partitions
                ),
                "offsets",
            )

        return await self._call_leaders(list(requested), call_leader)

    async def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> Outcome[EpochEnd]:
        async def call_leader(node: int, partitions: Sequence[TopicPartition], outcome: Outcome[EpochEnd]) -> None:
            topics = [
                OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=index,
                            current_leader_epoch=self._epoch(topic, index),
                            leader_epoch=epochs[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ]
            request = OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA_ID, topics=topics)
            response = await self._core.call(node, request, OffsetForLeaderEpochResponse)
            outcome.take(
                (
                    (
                        TopicPartition(topic.topic, each.partition),
                        each.error_code,
                        EpochEnd(each.leader_epoch, each.end_offset),
                    )
                    for topic in response.topics
                    for each in topic.partitions
                ),
                "epochs",
            )

        return await self._call_leaders(list(epochs), call_leader)

    async def _call_leaders(
        self, partitions: Sequence[TopicPartition], call_leader: Callable[..., object]
    ) -> Outcome[T]:
        outcome: Outcome[T] = Outcome()

        async def call_one(node: int, group: Sequence[TopicPartition]) -> None:
            try:
                await call_leader(node, group, outcome)  # type: ignore[misc]
            except ClientError as error:
                outcome.failed |= dict.fromkeys(group, error)

        groups = await self._by_leader(partitions, outcome)
        await asyncio.gather(*(call_one(node, group) for node, group in groups.items()))
        return outcome

    def _epoch(self, topic: str, partition: int) -> int:
        info = self._core.cluster.topics.get(topic)
        return -1 if info is None or partition >= len(info.partitions) else info.partitions[partition].leader_epoch

    async def _by_leader(
        self, partitions: Sequence[TopicPartition], outcome: Outcome[T]
    ) -> dict[int, list[TopicPartition]]:
        cluster = self._core.cluster
        unknown = [partition for partition in partitions if cluster.leader(*partition) < 0]
        if unknown:
            self._core.track_topics(partition.topic for partition in unknown)
            await self._core.update_metadata()
        groups: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader = cluster.leader(*partition)
            if leader < 0:
                outcome.failed[partition] = self._leaderless(partition)
            else:
                groups.setdefault(leader, []).append(partition)
        return groups

    def _leaderless(self, partition: TopicPartition) -> BrokerError:
        cluster = self._core.cluster
        topic = cluster.topics.get(partition.topic)
        if topic is None:
            code = cluster.errors.get(partition.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return broker_error(code, about=f"topic {partition.topic!r}")
        is_unknown = partition.partition >= len(topic.partitions)
        return broker_error(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_unknown else ErrorCode.LEADER_NOT_AVAILABLE, about=str(partition)
        )
