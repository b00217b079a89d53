"""Admin of topics and partitions."""

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.base.config_text import ConfigScalar, optional_config_text
from ottla.base.errors import ErrorCode
from ottla.client.admin_core import AdminCore, PartitionLike, by_topic, result_or_raise
from ottla.client.admin_results import (
    CreatedTopic,
    NewTopic,
    OffsetInfo,
    PartitionDescription,
    ProducerState,
    TopicDescription,
    TopicListing,
)
from ottla.client.errors import ClientError, broker_error, raise_for
from ottla.client.records import TopicPartition
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

OFFSET_SPECS = {
    "latest": -1,
    "earliest": -2,
    "max_timestamp": -3,
    "earliest_local": -4,
    "latest_tiered": -5,
    "earliest_pending_upload": -6,
}
"""Ends of a partition, by name. Other timestamps are milliseconds since 1970."""
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
_RETRIED_ERRORS = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def _raise_retriable(numbers: Iterable[int]) -> None:
    """Raise a retriable error that applies to the entire request, so that it is sent again."""
    for number in numbers:
        if number in _RETRIED_ERRORS:
            raise broker_error(number)


class TopicAdmin(AdminCore):
    """Calls about several items return a mapping.

    If some fail, PartialFailureError has their errors and the other results.
    """

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic]:
        """Create topics, or only validate the request. Raises errors such as TOPIC_ALREADY_EXISTS."""
        requested = [
            CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.assignments else topic.partitions,
                replication_factor=-1 if topic.assignments else topic.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(index, list(ids)) for index, ids in (topic.assignments or {}).items()
                ],
                configs=[
                    CreatableTopicConfig(name, optional_config_text(name, value))
                    for name, value in topic.configs.items()
                ],
            )
            for topic in topics
        ]
        request = CreateTopicsRequest(
            topics=requested, timeout_ms=int(self._core.request_timeout_ms), validate_only=validate_only
        )
        response = await self._call(
            request,
            CreateTopicsResponse,
            check=lambda response: _raise_retriable(topic.error_code for topic in response.topics),
        )
        results: dict[str, CreatedTopic] = {}
        errors: dict[str, ClientError] = {}
        for topic in response.topics:
            if topic.error_code:
                errors[topic.name] = broker_error(topic.error_code, topic.error_message, about=f"topic {topic.name!r}")
            else:
                configs = {config.name: config.value for config in topic.configs or ()}
                results[topic.name] = CreatedTopic(
                    topic.name, topic.topic_id, topic.num_partitions, topic.replication_factor, configs
                )
        return result_or_raise("create_topics", results, errors)

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, ConfigScalar | None] | None = None,
    ) -> CreatedTopic:
        """Create one topic."""
        return (await self.create_topics([NewTopic(name, partitions, replication_factor, configs or {})]))[name]

    async def delete_topics(self, names: Iterable[str]) -> None:
        listed = list(names)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in listed],
            topic_names=listed,
            timeout_ms=int(self._core.request_timeout_ms),
        )
        if (
            await self._core.retrying(self._core.get_connection, timeout_ms=self.timeout_ms, what="Metadata")
        ).version_for(DeleteTopicsRequest) < 6:
            request.topics = []
        response = await self._call(
            request,
            DeleteTopicsResponse,
            check=lambda response: _raise_retriable(topic.error_code for topic in response.responses),
        )
        results: dict[str, None] = {}
        errors: dict[str, ClientError] = {}
        for topic in response.responses:
            name = topic.name or ""
            if topic.error_code:
                errors[name] = broker_error(topic.error_code, topic.error_message, about=f"topic {name!r}")
            else:
                results[name] = None
        result_or_raise("delete_topics", results, errors)

    async def list_topics(self, *, include_internal: bool = False) -> dict[str, TopicListing]:
        response = await self._call(
            MetadataRequest(topics=None, allow_auto_topic_creation=False),
            MetadataResponse,
            check=lambda response: raise_for(response.error_code),
        )
        named = [(topic.name or "", topic) for topic in response.topics if include_internal or not topic.is_internal]
        return {
            name: TopicListing(name, topic.topic_id, topic.is_internal)
            for name, topic in sorted(named, key=lambda pair: pair[0])
        }

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Return partitions with their leaders and replicas."""
        requested = [MetadataRequestTopic(name=name) for name in names]
        response = await self._call(
            MetadataRequest(topics=requested, allow_auto_topic_creation=False),
            MetadataResponse,
            check=lambda response: raise_for(response.error_code),
        )
        self._core.cluster.update(response)
        nodes = self._core.cluster.nodes
        results: dict[str, TopicDescription] = {}
        errors: dict[str, ClientError] = {}
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code:
                errors[name] = broker_error(topic.error_code, about=f"topic {name!r}")
                continue
            partitions = tuple(
                PartitionDescription(
                    each.partition_index,
                    nodes.get(each.leader_id),
                    each.leader_epoch,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                    tuple(each.offline_replicas),
                )
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            )
            results[name] = TopicDescription(name, topic.topic_id, topic.is_internal, partitions)
        return result_or_raise("describe_topics", results, errors)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, list[list[int]]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Increase partition counts to new totals.

        New records of a key may go to another partition than its earlier ones.
        """
        requested = [
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=[CreatePartitionsAssignment(ids) for ids in assignments[name]]
                if assignments and name in assignments
                else None,
            )
            for name, count in counts.items()
        ]
        request = CreatePartitionsRequest(
            topics=requested, timeout_ms=int(self._core.request_timeout_ms), validate_only=validate_only
        )
        response = await self._call(
            request,
            CreatePartitionsResponse,
            check=lambda response: _raise_retriable(result.error_code for result in response.results),
        )
        errors: dict[str, ClientError] = {
            result.name: broker_error(result.error_code, result.error_message, about=f"topic {result.name!r}")
            for result in response.results
            if result.error_code
        }
        result_or_raise(
            "create_partitions", {result.name: None for result in response.results if not result.error_code}, errors
        )

    async def list_offsets(
        self, specs: Mapping[PartitionLike, str | int], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, OffsetInfo]:
        """Return offsets of "earliest", "latest", "max_timestamp" and so on, or of milliseconds since 1970."""
        times = {
            TopicPartition(*partition): OFFSET_SPECS[spec] if isinstance(spec, str) else spec
            for partition, spec in specs.items()
        }
        isolation = ISOLATION_LEVELS.index(isolation_level)

        async def call_leader(
            node: int, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, OffsetInfo | ClientError]:
            topics = [
                ListOffsetsTopic(
                    topic, [ListOffsetsPartition(index, -1, times[TopicPartition(topic, index)]) for index in indexes]
                )
                for topic, indexes in by_topic(partitions).items()
            ]
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=int(self._core.request_timeout_ms)
            )
            response = await self._core.call(node, request, ListOffsetsResponse)
            found: dict[TopicPartition, OffsetInfo | ClientError] = {}
            for topic in response.topics:
                for each in topic.partitions:
                    partition = TopicPartition(topic.name, each.partition_index)
                    if each.error_code:
                        found[partition] = broker_error(each.error_code, about=str(partition))
                    else:
                        found[partition] = OffsetInfo(each.offset, each.timestamp, each.leader_epoch)
            return found

        return await self._call_leaders(times, call_leader, "list_offsets")

    async def delete_records(self, before: Mapping[PartitionLike, int]) -> dict[TopicPartition, int]:
        """Delete the records before an offset (-1: all). Returns the new log start offset of each partition."""
        offsets = {TopicPartition(*partition): offset for partition, offset in before.items()}

        async def call_leader(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, int | ClientError]:
            topics = [
                DeleteRecordsTopic(
                    topic, [DeleteRecordsPartition(index, offsets[TopicPartition(topic, index)]) for index in indexes]
                )
                for topic, indexes in by_topic(partitions).items()
            ]
            request = DeleteRecordsRequest(topics=topics, timeout_ms=int(self._core.request_timeout_ms))
            response = await self._core.call(node, request, DeleteRecordsResponse)
            found: dict[TopicPartition, int | ClientError] = {}
            for topic in response.topics:
                for each in topic.partitions:
                    partition = TopicPartition(topic.name, each.partition_index)
                    found[partition] = (
                        broker_error(each.error_code, about=str(partition)) if each.error_code else each.low_watermark
                    )
            return found

        return await self._call_leaders(offsets, call_leader, "delete_records")

    async def describe_producers(
        self, partitions: Iterable[PartitionLike]
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the producer states of partitions, with their sequences."""

        async def call_leader(
            node: int, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, tuple[ProducerState, ...] | ClientError]:
            request = DescribeProducersRequest(
                [TopicRequest(topic, indexes) for topic, indexes in by_topic(partitions).items()]
            )
            response = await self._core.call(node, request, DescribeProducersResponse)
            found: dict[TopicPartition, tuple[ProducerState, ...] | ClientError] = {}
            for topic in response.topics:
                for each in topic.partitions:
                    partition = TopicPartition(topic.name, each.partition_index)
                    if each.error_code:
                        found[partition] = broker_error(each.error_code, each.error_message, about=str(partition))
                    else:
                        found[partition] = tuple(
                            ProducerState(
                                state.producer_id,
                                state.producer_epoch,
                                state.last_sequence,
                                state.last_timestamp,
                                state.coordinator_epoch,
                                state.current_txn_start_offset,
                            )
                            for state in each.active_producers
                        )
            return found

        return await self._call_leaders(
            [TopicPartition(*partition) for partition in partitions], call_leader, "describe_producers"
        )

    async def elect_leaders(
        self, partitions: Iterable[PartitionLike] | None = None, *, election: str = "preferred"
    ) -> dict[TopicPartition, ClientError | None]:
        """Elect the preferred replica of partitions (None: all) as leader, or with "unclean" any live replica.

        Returns None or an error for each (ELECTION_NOT_NEEDED is not a failure).
        """
        types = {"preferred": 0, "unclean": 1}
        grouped: Any = None if partitions is None else by_topic(partitions)
        requested = None if grouped is None else [TopicPartitions(topic, indexes) for topic, indexes in grouped.items()]
        request = ElectLeadersRequest(types[election], requested, int(self._core.request_timeout_ms))
        response = await self._call(
            request, ElectLeadersResponse, check=lambda response: raise_for(response.error_code)
        )
        results: dict[TopicPartition, ClientError | None] = {}
        for topic in response.replica_election_results:
            for each in topic.partition_result:
                partition = TopicPartition(topic.topic, each.partition_id)
                results[partition] = (
                    broker_error(each.error_code, each.error_message, about=str(partition)) if each.error_code else None
                )
        return results
