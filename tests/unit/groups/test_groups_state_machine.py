"""Random sequences of requests, crashes and time.

Each generation assigns a partition to one member only, and replaying the log restores all durable state.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.base.errors import ErrorCode
from ottla.groups.interface import GroupCall, GroupRecord
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.wire.records.group import group_key
from ottla.wire.schema import Message
from tests.unit.groups.group_requests import BOTH, RANGE
from tests.unit.groups.scenario_runner import SETTINGS, ShardBackend

GROUP = "g"
PARTITIONS = 7
NAMES = ("dynamic-1", "dynamic-2", "static-1", "static-2")
LOG_ERRORS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.MESSAGE_TOO_LARGE)


class Client:
    """A consumer that follows the protocol."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.incarnation = 0
        self.member_id = ""
        self.generation = -1
        self.others: list[str] = []
        self.synced = False
        self.is_waiting = False

    @property
    def instance(self) -> str | None:
        return self.name if self.name.startswith("static") else None

    @property
    def client(self) -> str:
        return f"{self.name} {self.incarnation}"

    def reset(self) -> None:
        """Start over without an id: the client was removed, or it crashed."""
        self.incarnation += 1
        self.member_id, self.generation, self.synced, self.is_waiting = "", -1, False, False


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.backend = ShardBackend(SETTINGS)
        self.clients = {name: Client(name) for name in NAMES}
        self.owners: dict[tuple[int, int, int], str] = {}
        self.committed: dict[int, int] = {}
        self.next_offset = 0

    def send(self, client: Client, request: Message, version: int) -> None:
        client.is_waiting = True
        self.backend.send(client.client, request, version)
        self.receive_responses()

    def receive_responses(self) -> None:
        for client in self.clients.values():
            if client.client in self.backend.responses:
                client.is_waiting = False
                self.on_response(client, self.backend.receive(client.client))
        self.backend.responses.clear()  # responses to crashed clients

    def on_response(self, client: Client, response: Message) -> None:
        error = getattr(response, "error_code", 0)
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            assert isinstance(response, JoinGroupResponse)
            client.member_id = response.member_id
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION):
            client.reset()
        elif error:
            client.generation, client.synced = -1, False
        elif isinstance(response, JoinGroupResponse):
            client.member_id, client.generation, client.synced = response.member_id, response.generation_id, False
            client.others = [] if response.skip_assignment else [member.member_id for member in response.members]
        elif isinstance(response, SyncGroupResponse):
            client.synced = True
            for partition in response.assignment:
                deletions = sum(
                    record == GroupRecord(group_key(GROUP), None) for record in self.backend.log
                )  # a deleted group starts over at generation 1
                me = client.instance or client.member_id
                owner = self.owners.setdefault((deletions, client.generation, partition), me)
                assert owner == me, f"partition {partition} has two owners in {client.generation}"
        elif isinstance(response, HeartbeatResponse):
            assert client.generation >= 0

    @rule(name=st.sampled_from(NAMES), both=st.booleans())
    def take_next_step(self, name: str, both: bool) -> None:
        """Send the client's next request: join, sync or heartbeat."""
        client = self.clients[name]
        if client.is_waiting:
            return
        if client.generation < 0:
            protocols = [JoinGroupRequestProtocol(name=kind, metadata=data) for kind, data in (BOTH if both else RANGE)]
            self.send(
                client,
                JoinGroupRequest(
                    group_id=GROUP,
                    session_timeout_ms=10_000,
                    rebalance_timeout_ms=20_000,
                    member_id=client.member_id,
                    group_instance_id=client.instance,
                    protocol_type="consumer",
                    protocols=protocols,
                ),
                9,
            )
        elif not client.synced:
            parts = {other: bytes(range(at, PARTITIONS, len(client.others))) for at, other in enumerate(client.others)}
            self.send(
                client,
                SyncGroupRequest(
                    group_id=GROUP,
                    generation_id=client.generation,
                    member_id=client.member_id,
                    group_instance_id=client.instance,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[
                        SyncGroupRequestAssignment(member_id=other, assignment=part) for other, part in parts.items()
                    ],
                ),
                5,
            )
        else:
            self.send(
                client,
                HeartbeatRequest(
                    group_id=GROUP,
                    generation_id=client.generation,
                    member_id=client.member_id,
                    group_instance_id=client.instance,
                ),
                4,
            )

    @rule(name=st.sampled_from(NAMES), partition=st.integers(0, PARTITIONS - 1))
    def commit(self, name: str, partition: int) -> None:
        client = self.clients[name]
        if client.is_waiting or not client.synced:
            return
        self.next_offset += 1
        self.backend.send(
            "commit",
            OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=client.generation,
                member_id=client.member_id,
                group_instance_id=client.instance,
                topics=[
                    OffsetCommitRequestTopic(
                        name="t1",
                        partitions=[
                            OffsetCommitRequestPartition(partition_index=partition, committed_offset=self.next_offset)
                        ],
                    )
                ],
            ),
            9,
        )
        response = self.backend.receive("commit")
        assert isinstance(response, OffsetCommitResponse)
        if response.topics[0].partitions[0].error_code == ErrorCode.NONE:
            self.committed[partition] = self.next_offset
        self.receive_responses()

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        client = self.clients[name]
        if not client.is_waiting and client.member_id:
            member = MemberIdentity(member_id=client.member_id, group_instance_id=client.instance)
            self.backend.send("leave", LeaveGroupRequest(group_id=GROUP, members=[member]), 5)
            client.reset()
            self.receive_responses()

    @rule(name=st.sampled_from(NAMES))
    def crash(self, name: str) -> None:
        self.clients[name].reset()

    @rule(milliseconds=st.sampled_from((10, 5_000, 9_000, 30_000, 310_000)))
    def advance_time(self, milliseconds: int) -> None:
        self.backend.wait(milliseconds)
        self.receive_responses()

    @rule()
    def fail_over(self) -> None:
        self.backend.restart()
        self.receive_responses()

    @rule(error=st.sampled_from(LOG_ERRORS))
    def reject_next_append(self, error: ErrorCode) -> None:
        self.backend.reject_next = error

    @invariant()
    def log_restores_state(self) -> None:
        """A shard loaded from the log has the same offsets, and the same group if it is stable."""
        live, loaded = self.backend.shard, self.backend.reloaded()
        loaded.on_loaded(self.backend.now_ms)
        offsets = GroupCall(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)]), 8)
        groups = [shard.decide(offsets, self.backend.now_ms).response.groups[0] for shard in (live, loaded)]
        assert groups[0] == groups[1]
        found = {part.partition_index: part.committed_offset for topic in groups[0].topics for part in topic.partitions}
        assert found == self.committed
        describe = GroupCall(DescribeGroupsRequest(groups=[GROUP]), 5)
        described = live.decide(describe, self.backend.now_ms).response.groups[0]
        if described.group_state == "Stable":
            again = loaded.decide(describe, self.backend.now_ms).response.groups[0]
            assert sorted(described.members, key=str) == sorted(again.members, key=str)

    @invariant()
    def pending_requests_have_a_deadline(self) -> None:
        """A pending request is answered at a deadline at the latest."""
        if any(client.is_waiting for client in self.clients.values()):
            assert self.backend.shard.next_deadline_ms() is not None


Groups.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_groups_state_machine = Groups.TestCase
