"""Admin of groups and their committed offsets."""

from collections.abc import Iterable, Mapping

from ottla.client.admin_core import AdminCore, PartitionLike, by_topic, result_or_raise
from ottla.client.admin_results import CommittedOffset, GroupDescription, GroupListing, MemberDescription
from ottla.client.errors import ClientError, broker_error, raise_for
from ottla.client.records import TopicPartition
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.wire.schema import decode

TOPIC_NAME_MAX_VERSION = 9
"""Later versions identify topics by id, which deleted topics do not have."""
MULTI_GROUP_MIN_VERSION = 8
NO_GENERATION = -1


class GroupAdmin(AdminCore):
    async def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> dict[str, GroupListing]:
        """Return the groups of all brokers, optionally only those with certain states ("Stable", "Empty", ...) or types
        ("classic", "consumer", ...).
        """
        request = ListGroupsRequest(list(states), list(types))
        found: dict[str, GroupListing] = {}
        for node in await self._broker_ids():
            response = await self._call(
                request, ListGroupsResponse, node=node, check=lambda response: raise_for(response.error_code)
            )
            for each in response.groups:
                found[each.group_id] = GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type
                )
        return dict(sorted(found.items()))

    async def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        """Return state, members and assignments.

        A group that does not exist fails with GROUP_ID_NOT_FOUND. Brokers without version 6 of the API (Kafka before
        4.0) describe it as a group in state "Dead".
        """
        results: dict[str, GroupDescription] = {}
        errors: dict[str, ClientError] = {}
        for group in groups:

            def check(response: DescribeGroupsResponse) -> None:
                code = response.groups[0].error_code
                if code and broker_error(code).is_retriable:
                    raise broker_error(code)

            response = await self._call_coordinator(
                group, DescribeGroupsRequest([group]), DescribeGroupsResponse, check
            )
            result = response.groups[0]
            if result.error_code:
                errors[group] = broker_error(result.error_code, result.error_message, about=f"group {group!r}")
                continue
            members = tuple(
                MemberDescription(
                    each.member_id,
                    each.group_instance_id,
                    each.client_id,
                    each.client_host,
                    _assignment(result.protocol_type, each.member_assignment),
                )
                for each in result.members
            )
            coordinator = await self._coordinators.find(group)
            results[group] = GroupDescription(
                group, result.group_state, result.protocol_type, result.protocol_data, members, coordinator
            )
        return result_or_raise("describe_groups", results, errors)

    async def delete_groups(self, groups: Iterable[str]) -> None:
        """Delete groups without members, and their offsets."""
        results: dict[str, None] = {}
        errors: dict[str, ClientError] = {}
        for group in groups:

            def check(response: DeleteGroupsResponse, about: str = f"group {group!r}") -> None:
                raise_for(response.results[0].error_code, about=about)

            try:
                await self._call_coordinator(group, DeleteGroupsRequest([group]), DeleteGroupsResponse, check)
                results[group] = None
            except ClientError as error:
                errors[group] = error
        result_or_raise("delete_groups", results, errors)

    # Offsets

    async def list_group_offsets(
        self, group: str, partitions: Iterable[PartitionLike] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return a group's committed offsets, for some partitions or all. Partitions without an offset are left out."""
        grouped = None if partitions is None else by_topic(partitions)
        new_topics = (
            None
            if grouped is None
            else [OffsetFetchRequestTopics(name=topic, partition_indexes=ids) for topic, ids in grouped.items()]
        )
        old_topics = (
            None if grouped is None else [OffsetFetchRequestTopic(topic, ids) for topic, ids in grouped.items()]
        )
        node = await self._core.retrying(
            lambda: self._coordinators.find(group), timeout_ms=self.timeout_ms, what=f"group {group!r}"
        )
        version = (await self._core.get_connection(node)).version_for(OffsetFetchRequest, TOPIC_NAME_MAX_VERSION)
        if version >= MULTI_GROUP_MIN_VERSION:
            request = OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group, topics=new_topics)], require_stable=require_stable
            )
        else:
            request = OffsetFetchRequest(group_id=group, topics=old_topics, require_stable=require_stable)

        def check(response: OffsetFetchResponse) -> None:
            raise_for(
                response.groups[0].error_code if response.groups else response.error_code, about=f"group {group!r}"
            )

        response = await self._call_coordinator(group, request, OffsetFetchResponse, check, version)
        found: dict[TopicPartition, CommittedOffset] = {}
        errors: dict[TopicPartition, ClientError] = {}
        for topic in response.groups[0].topics if response.groups else response.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if each.error_code:
                    errors[partition] = broker_error(each.error_code, about=str(partition))
                elif each.committed_offset >= 0:
                    found[partition] = CommittedOffset(
                        each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                    )
        return result_or_raise("list_group_offsets", found, errors)

    async def alter_group_offsets(self, group: str, offsets: Mapping[PartitionLike, int | CommittedOffset]) -> None:
        """Set a group's committed offsets. The group must have no members."""
        requested = {
            TopicPartition(*partition): offset if isinstance(offset, CommittedOffset) else CommittedOffset(offset)
            for partition, offset in offsets.items()
        }
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(index, result.offset, result.leader_epoch, result.metadata)
                    for index in indexes
                    for result in (requested[TopicPartition(topic, index)],)
                ],
            )
            for topic, indexes in by_topic(requested).items()
        ]
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=NO_GENERATION, topics=topics)

        def check(response: OffsetCommitResponse) -> None:
            codes = [each.error_code for topic in response.topics for each in topic.partitions]
            for code in codes:
                if code and broker_error(code).is_retriable:
                    raise broker_error(code, about=f"group {group!r}")

        response = await self._call_coordinator(group, request, OffsetCommitResponse, check, TOPIC_NAME_MAX_VERSION)
        _raise_failures("alter_group_offsets", group, response)

    async def delete_group_offsets(self, group: str, partitions: Iterable[PartitionLike]) -> None:
        """Delete committed offsets. No member may subscribe to these topics."""
        topics = [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index) for index in indexes])
            for topic, indexes in by_topic(partitions).items()
        ]
        response = await self._call_coordinator(
            group,
            OffsetDeleteRequest(group, topics),
            OffsetDeleteResponse,
            lambda response: raise_for(response.error_code, about=f"group {group!r}"),
        )
        _raise_failures("delete_group_offsets", group, response)


def _raise_failures(what: str, group: str, response: OffsetCommitResponse | OffsetDeleteResponse) -> None:
    codes = {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    errors: dict[TopicPartition, ClientError] = {
        partition: broker_error(code, about=f"{partition} of group {group!r}")
        for partition, code in codes.items()
        if code
    }
    result_or_raise(what, {partition: None for partition, code in codes.items() if not code}, errors)


def _assignment(protocol_type: str, data: bytes) -> tuple[TopicPartition, ...]:
    """Return a consumer's assignment; that of other protocol types is unknown."""
    if protocol_type != "consumer" or len(data) < 2:
        return ()
    version = min(int.from_bytes(data[:2], "big"), ConsumerProtocolAssignment.MAX_VERSION)
    result, _ = decode(ConsumerProtocolAssignment, version, data, 2)
    return tuple(TopicPartition(each.topic, index) for each in result.assigned_partitions for index in each.partitions)
