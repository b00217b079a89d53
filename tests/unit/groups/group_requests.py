"""Requests of group clients and administrators, as one-line calls for the scenarios."""

from typing import Any

from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

RANGE = (("range", b"\x00\x00\x00\x00\x00\x01\x00\x02t1\xff\xff\xff\xff"),)
BOTH = (*RANGE, ("roundrobin", b"\x00\x00\x00\x00\x00\x01\x00\x02t1\xff\xff\xff\xff"))
REVERSED = tuple(reversed(BOTH))
OTHER = (("sticky", b"other"),)
SESSION_MS = 30_000


def join_request(
    run: Any,
    group: str,
    member_id: str = "",
    *,
    protocols: Any = RANGE,
    kind: str = "consumer",
    instance: str | None = None,
    session_ms: int = SESSION_MS,
    rebalance_ms: int = 60_000,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=run.group(group),
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


def start_join(run: Any, client: str, group: str, version: int, **options: Any) -> str:
    """Send a new member's JoinGroup, after requesting its id if the version requires one.

    Does not receive the response.
    """
    member_id = ""
    if version >= 4 and options.get("instance") is None:
        member_id = run.call(client, join_request(run, group, **options), version).member_id
    run.send(client, join_request(run, group, member_id, **options), version)
    return member_id


def sync(
    run: Any,
    client: str,
    group: str,
    member_id: str,
    generation: int,
    version: int,
    assign: dict[str, bytes] | None = None,
    **options: Any,
) -> None:
    if version >= 5:
        options = {"protocol_type": "consumer", "protocol_name": "range", **options}
    assignments = [SyncGroupRequestAssignment(member_id=name, assignment=part) for name, part in (assign or {}).items()]
    run.send(
        client,
        SyncGroupRequest(
            group_id=run.group(group), generation_id=generation, member_id=member_id, assignments=assignments, **options
        ),
        version,
    )


def heartbeat(
    run: Any, client: str, group: str, member_id: str, generation: int, version: int, instance: str | None = None
) -> Any:
    return run.call(
        client,
        HeartbeatRequest(
            group_id=run.group(group), generation_id=generation, member_id=member_id, group_instance_id=instance
        ),
        version,
    )


def leave(run: Any, client: str, group: str, version: int, *members: tuple[str, str | None]) -> Any:
    request = LeaveGroupRequest(group_id=run.group(group))
    if version >= 3:
        request.members = [
            MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members
        ]
    else:
        request.member_id = members[0][0]
    return run.call(client, request, version)


def commit(
    run: Any,
    client: str,
    group: str,
    version: int,
    member_id: str = "",
    generation: int = -1,
    *,
    instance: str | None = None,
    offset: int = 7,
    metadata: str | None = "m",
    topic: str = "t1",
    partition: int = 0,
    retention_ms: int = -1,
) -> Any:
    request = OffsetCommitRequest(
        group_id=run.group(group),
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=run.backend.topic_id(topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata=metadata,
                    )
                ],
            )
        ],
    )
    return run.call(client, request, version)


def fetch(
    run: Any,
    client: str,
    *groups: str,
    version: int = 8,
    topics: tuple[str, ...] | None = ("t1",),
    stable: bool = False,
) -> Any:
    requested = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=name, topic_id=run.backend.topic_id(name), partition_indexes=[0, 1])
            for name in topics
        ]
    )
    return run.call(
        client,
        OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=run.group(group), topics=requested) for group in groups],
            require_stable=stable,
        ),
        version,
    )


def describe(run: Any, client: str, *groups: str, version: int = 5) -> Any:
    return run.call(client, DescribeGroupsRequest(groups=[run.group(group) for group in groups]), version)


def delete(run: Any, client: str, *groups: str, version: int = 2) -> Any:
    return run.call(client, DeleteGroupsRequest(groups_names=[run.group(group) for group in groups]), version)


def delete_offset(run: Any, client: str, group: str, *topics: str) -> Any:
    return run.call(
        client,
        OffsetDeleteRequest(
            group_id=run.group(group),
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1)]
                )
                for topic in topics
            ],
        ),
        0,
    )


def stable_group(
    run: Any, group: str, version: int = 7, clients: tuple[str, ...] = ("a",), **options: Any
) -> dict[str, Any]:
    """Join and sync all clients. Return member ids by client, and "generation"."""
    first = clients[0]
    start_join(run, first, group, version, **options)
    responses = {first: run.receive(first)}
    for client in clients[1:]:
        start_join(run, client, group, version, **options)
    if len(clients) > 1:
        run.send(first, join_request(run, group, responses[first].member_id, **options), version)
        responses = {client: run.receive(client) for client in clients}
    ids = {client: answer.member_id for client, answer in responses.items()}
    generation = responses[first].generation_id
    for client in [*clients[1:], first]:
        assign = (
            {member_id: f"part of {client}".encode() for client, member_id in ids.items()} if client == first else None
        )
        sync(
            run,
            client,
            group,
            ids[client],
            generation,
            min(version, 5),
            assign,
            protocol_type=options.get("kind", "consumer"),
            protocol_name=responses[first].protocol_name,
        )
    for client in clients:
        run.receive(client)
    return {**ids, "generation": generation}
