"""Runs a Membership: sends its requests to the coordinator, computes assignments as the leader, keeps its timer."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client.assignors import Topics
from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import ClusterMetadata
from ottla.client.consumer_protocol import decode_subscription, encode_assignment
from ottla.client.coordinator_finder import CoordinatorFinder
from ottla.client.errors import ClientClosedError, ClientError, broker_error
from ottla.client.group_offsets import COORDINATOR_PURPOSE, ConsumerGroupMetadata
from ottla.client.membership import Membership
from ottla.client.membership_events import (
    ApplyAssignment,
    AssignmentComputed,
    ComputeAssignment,
    Effect,
    Event,
    Fail,
    Leave,
    MarkCoordinatorUnknown,
    MemberSettings,
    Polled,
    PrepareJoin,
    RequestFailed,
    ResponseReceived,
    Send,
    Tick,
    TopicsChanged,
    Wake,
)
from ottla.client.records import TopicPartition
from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.schema import Message

JOIN_PURPOSE = "join"
"""JoinGroup and SyncGroup wait for other members, so they must not delay heartbeats and commits."""
JOIN_TIMEOUT_MARGIN_MS = 5_000
"""Time for the response after the coordinator's own wait for members."""
BATCH_LEAVE_MIN_VERSION = 3
"""From this version on, LeaveGroup has a list of members."""
_RESPONSE_TYPES: Mapping[type[Message], type[Message]] = {
    JoinGroupRequest: JoinGroupResponse, SyncGroupRequest: SyncGroupResponse, HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
}  # fmt: skip


class GroupDriver:
    """`rebalance_effects` has rebalance steps that involve the user (PrepareJoin, ApplyAssignment), `failures` has
    errors.

    Calls `on_update` when either changes.
    """

    def __init__(
        self,
        core: ClusterClient,
        coordinators: CoordinatorFinder,
        settings: MemberSettings,
        on_update: Callable[[], None],
    ) -> None:
        self._core = core
        self._coordinators = coordinators
        self._on_update = on_update
        self.member = Membership(settings)
        self.rebalance_effects: deque[PrepareJoin | ApplyAssignment] = deque()
        self.failures: deque[Exception] = deque()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._assigned_counts: dict[str, int] | None = None
        """Partition counts of the topics that this member assigned as the leader."""
        self.rebalances = 0
        core.update_callbacks.append(self._on_metadata)

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """The member data sent with commits."""
        member = self.member
        return ConsumerGroupMetadata(
            member.member_id, member.generation, member.settings.instance_id if member.is_member else None
        )

    def step(self, event: Event, *, now_ms_min: float = 0) -> None:
        """Pass an event to the state machine and run its effects."""
        for effect in self.member.step(event, max(self._core.now_ms(), now_ms_min)):
            self._run(effect)
        self._arm()

    def poll(self) -> None:
        self.step(Polled())

    def _run(self, effect: Effect) -> None:
        match effect:
            case Send(request):
                self._start(self._send(request))
            case PrepareJoin() | ApplyAssignment():
                self.rebalances += isinstance(effect, ApplyAssignment)
                self.rebalance_effects.append(effect)
                self._on_update()
            case ComputeAssignment():
                self._start(self._compute_assignment(effect))
            case MarkCoordinatorUnknown():
                self._coordinators.mark_unknown(self.member.settings.group_id)
            case Wake():
                self._on_update()
            case Fail(error):
                self.failures.append(error)
                self._on_update()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._core.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):  # a bug in this client or an assignor: raise it from the next poll
            self.failures.append(failure)
            self._on_update()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self.member.deadline_ms
        if due_ms is not None and not self._core.is_closed:
            self._timer = self._core.loop.call_at(due_ms / 1000, self._on_timer, due_ms)

    def _on_timer(self, due_ms: float) -> None:
        self._timer = None
        self.step(Tick(), now_ms_min=due_ms)  # rounding to seconds and back may give an earlier time

    async def _send(self, request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest) -> None:
        settings = self.member.settings
        is_waiting = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        timeout_ms = self._core.request_timeout_ms
        if is_waiting:
            timeout_ms = max(timeout_ms, settings.poll_interval_ms_max + JOIN_TIMEOUT_MARGIN_MS)
        elif isinstance(request, HeartbeatRequest):
            timeout_ms = min(timeout_ms, settings.session_timeout_ms)
        try:
            node = await self._coordinators.find(settings.group_id)
            connection = await self._core.get_connection(
                node, purpose=JOIN_PURPOSE if is_waiting else COORDINATOR_PURPOSE
            )
            if (
                isinstance(request, LeaveGroupRequest)
                and connection.version_for(LeaveGroupRequest) < BATCH_LEAVE_MIN_VERSION
            ):
                request = LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
            response = await connection.call(request, _RESPONSE_TYPES[type(request)], timeout_ms=timeout_ms)
        except ClientClosedError:
            return
        except ClientError as error:
            if not isinstance(request, LeaveGroupRequest):
                self.step(RequestFailed(request, error))
            return
        if isinstance(response, JoinGroupResponse | SyncGroupResponse | HeartbeatResponse) and not isinstance(
            request, LeaveGroupRequest
        ):
            self.step(ResponseReceived(request, response))

    # Group leader

    async def _compute_assignment(self, effect: ComputeAssignment) -> None:
        tries = 0
        while self.member.generation == effect.generation and not self._core.is_closed:
            try:
                self.step(AssignmentComputed(effect.generation, await self._run_assignor(effect)))
                return
            except ClientClosedError:
                return
            except ClientError as error:
                if not error.is_retriable:
                    self._run(Fail(error))
                    return
                tries += 1
                await asyncio.sleep(self._core.retry_backoff.delay_ms(tries) / 1000)

    async def _run_assignor(self, effect: ComputeAssignment) -> dict[str, bytes]:
        assignor = next((each for each in self.member.settings.assignors if each.name == effect.protocol), None)
        if assignor is None:
            reason = f"the group chose assignor {effect.protocol!r}, which this member does not support"
            raise broker_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        try:
            members = [
                decode_subscription(each.metadata, each.member_id, each.group_instance_id) for each in effect.members
            ]
        except MalformedMessage as error:
            raise broker_error(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"invalid subscription of a member: {error}"
            ) from error
        topics = sorted({topic for member in members for topic in member.topics})
        self._core.track_topics(topics)
        cluster = self._core.cluster
        if any(topic not in cluster.topics for topic in topics):
            await self._core.update_metadata()
        known = self._topics(cluster, topics)
        self._assigned_counts = {topic: known.counts.get(topic, 0) for topic in topics}
        assignment = assignor.assign(members, known)
        return {member_id: encode_assignment(partitions) for member_id, partitions in assignment.items()}

    @staticmethod
    def _topics(cluster: ClusterMetadata, names: list[str]) -> Topics:
        known = [cluster.topics[name] for name in names if name in cluster.topics]
        racks: dict[TopicPartition, tuple[str, ...]] = {}
        if any(node.rack for node in cluster.nodes.values()):
            for topic in known:
                for each in topic.partitions:
                    replica_racks = (cluster.nodes[node].rack for node in each.replicas if node in cluster.nodes)
                    racks[TopicPartition(topic.name, each.partition)] = tuple(
                        dict.fromkeys(rack for rack in replica_racks if rack)
                    )
        return Topics({topic.name: len(topic.partitions) for topic in known}, racks)

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        if self._assigned_counts is None or not self.member.is_leader:
            return
        counts = {
            topic: len(cluster.topics[topic].partitions) if topic in cluster.topics else 0
            for topic in self._assigned_counts
        }
        if counts != self._assigned_counts and self.member.is_stable:
            self._assigned_counts = None
            self.step(TopicsChanged())

    # Closing

    async def leave(self, reason: str) -> None:
        """Leave the group and wait until the request is sent."""
        before = list(self._tasks)
        for task in before:
            task.cancel()
        self.rebalance_effects.clear()
        self._assigned_counts = None
        self.step(Leave(reason))
        if self._tasks:
            await asyncio.wait([task for task in self._tasks if task not in before] or before)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
