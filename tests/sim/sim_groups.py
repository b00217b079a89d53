"""A scenario with groups: members join, commit, crash and leave while the node crashes and restarts.

Checks partition ownership and committed offsets. Members speak the protocol themselves, to do what a client would not:
disconnect during a rebalance, and continue with their old id.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.sim.client import Disconnected, SimulatedClient
from ottla.sim.rng import stream
from ottla.sim.storage import Keep
from ottla.sim.world import World
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.sim.sim_scenario import Scenario, simulated_config

TOPIC = "work"
PARTITIONS = 5
GROUPS = ("g0", "g1")
SESSION_MS, REBALANCE_MS = 6_000, 8_000
COORDINATOR_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
"""Find the coordinator again, or wait for it."""
MEMBER_ERRORS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
"""The coordinator has removed the member."""
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class ResponseError(Exception):
    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = ErrorCode(error)


class GroupTracker:
    """State of one group as known from the responses to its members."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.owners: dict[tuple[str, int, int], str] = {}
        """Owner by era, generation and partition.

        A deleted group starts over at generation 1, so the era includes the leader's id.
        """
        self.sent: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        self.acked: dict[int, int] = dict.fromkeys(range(PARTITIONS), -1)
        self.commits = self.generations = 0

    def on_assigned(self, era: str, generation: int, partition: int, member: str) -> None:
        before = self.owners.setdefault((era, generation, partition), member)
        assert before == member, (
            f"16: {before} and {member} on_assigned partition {partition} in generation {generation} of {self.name}"
        )

    def next_offset(self, partition: int) -> int:
        self.sent[partition] += 1
        return self.sent[partition]

    def on_acked(self, partition: int, offset: int) -> None:
        self.commits += 1
        self.acked[partition] = max(self.acked[partition], offset)

    def check(self, found: dict[int, int], acked_before: dict[int, int]) -> None:
        for partition, offset in found.items():
            assert acked_before[partition] <= offset <= self.sent[partition], (
                f"15: {self.name} has {offset} for partition {partition}, {acked_before[partition]} was acknowledged"
            )


class GroupMember:
    """Joins, gets partitions, commits, and sometimes leaves or disconnects; then continues as a new member."""

    def __init__(self, scenario: "GroupScenario", group: str, name: str) -> None:
        self.scenario = scenario
        self.tracker = scenario.trackers[group]
        self.group = group
        self.name = name
        self.random = stream(scenario.world.seed, f"member/{name}")
        self.instance = name if self.random.random() < 0.4 else None
        self.member_id = ""

    async def run(self) -> None:
        while not self.scenario.is_finished:
            client = await self.scenario.connect_client()
            try:
                await self.find(client)
                while not self.scenario.is_finished:
                    await self.run_generation(client)
            except ResponseError as error:
                if error.error in MEMBER_ERRORS:
                    self.member_id = ""
                elif error.error in (*COORDINATOR_ERRORS, *REJOIN) or self.scenario.has_faults:
                    await asyncio.sleep(self.random.uniform(0.05, 0.5))
                else:
                    raise
                client.close()
            except Disconnected:
                client.close()

    async def find(self, client: SimulatedClient) -> None:
        response = await client.call(FindCoordinatorRequest(coordinator_keys=[self.group]), FindCoordinatorResponse)
        _expect(response.coordinators[0].error_code)

    async def run_generation(self, client: SimulatedClient) -> None:
        """Take part in one generation, until the next rebalance."""
        crashes = self.scenario.crashes
        joined = await self.join(client)
        if self.random.random() < 0.1:
            client.abort()  # crash before SyncGroup
            raise Disconnected("a member crashed")
        assignments = []
        if joined.leader == joined.member_id:
            members = [member.member_id for member in joined.members]
            assignments = [
                SyncGroupRequestAssignment(member, bytes(range(at, PARTITIONS, len(members))))
                for at, member in enumerate(members)
            ]
        response = await client.call(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="mine",
                assignments=assignments,
            ),
            SyncGroupResponse,
        )
        if response.error_code in REJOIN:
            return
        _expect(response.error_code)
        self.scenario.expect_no_power_cut_since(crashes)
        self.tracker.generations += 1
        # A power loss may take back generations.
        era = f"{joined.leader} {crashes if self.scenario.keep == 'flushed' else ''}"
        for partition in response.assignment:
            # A static member keeps its identity if it returns with another id.
            self.tracker.on_assigned(era, joined.generation_id, partition, self.instance or self.member_id)
        await self.work(client, joined.generation_id, list(response.assignment))

    async def join(self, client: SimulatedClient) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("mine", b"\0\0\0\0\0\0\0\0\0\0")],
        )
        response = await client.call(request, JoinGroupResponse)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = response.member_id
            response = await client.call(request, JoinGroupResponse)
        _expect(response.error_code)
        self.member_id = response.member_id
        return response

    async def work(self, client: SimulatedClient, generation: int, partitions: list[int]) -> None:
        while not self.scenario.is_finished:
            await asyncio.sleep(self.random.uniform(0.0, 1.0))
            response = await client.call(
                HeartbeatRequest(self.group, generation, self.member_id, self.instance), HeartbeatResponse
            )
            if response.error_code in REJOIN:
                return
            _expect(response.error_code)
            if partitions and not await self.commit(client, generation, self.random.choice(partitions)):
                return
            if self.random.random() < 0.03:
                await self.leave(client)
                return

    async def commit(self, client: SimulatedClient, generation: int, partition: int) -> bool:
        offset = self.tracker.next_offset(partition)
        crashes = self.scenario.crashes
        response = await client.call(
            OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
                topics=[
                    OffsetCommitRequestTopic(name=TOPIC, partitions=[OffsetCommitRequestPartition(partition, offset)])
                ],
            ),
            OffsetCommitResponse,
            9,
        )
        self.scenario.expect_no_power_cut_since(crashes)
        error = response.topics[0].partitions[0].error_code
        if error in REJOIN:
            return False
        _expect(error)
        self.tracker.on_acked(partition, offset)
        return True

    async def leave(self, client: SimulatedClient) -> None:
        if self.random.random() < 0.5:
            member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
            response = await client.call(LeaveGroupRequest(group_id=self.group, members=[member]), LeaveGroupResponse)
            _expect(response.error_code or response.members[0].error_code)
        self.member_id = ""
        await asyncio.sleep(self.random.uniform(0.0, 10.0))


def _expect(error: int) -> None:
    if error:
        raise ResponseError(error)


class GroupScenario(Scenario):
    """The node's lifecycle as in `Scenario`, with group members as the only clients."""

    def __init__(self, world: World, keep: Keep, *, has_faults: bool = False) -> None:
        super().__init__(world, keep, has_faults=has_faults)
        self.config = simulated_config(offsets__topic__num__partitions="2", group__initial__rebalance__delay__ms="500")
        self.trackers = {name: GroupTracker(name) for name in GROUPS}

    async def run_scenario(self) -> None:
        await self.start_node()
        client = await self.connect_client()
        assert (await client.create_topic(TOPIC, PARTITIONS)).error_code == 0
        client.close()
        workload = [self.spawn(work) for work in self.workload()]
        for _ in range(self.random.randint(1, 3)):
            await asyncio.sleep(self.random.uniform(0.0, 30.0))
            await self.crash_node()
            await self.start_node(may_crash=True)
        await asyncio.sleep(self.random.uniform(5.0, 30.0))
        self.is_finished = True
        self.world.cancel_faults("node")
        if self.node is not None and self.node.failed.done():
            await self.crash_node()
            await self.start_node()
        await asyncio.gather(*workload)
        before = [await self.fetch_offsets(tracker) for tracker in self.trackers.values()]
        await self.stop_node()
        await self.start_node()
        assert [await self.fetch_offsets(tracker) for tracker in self.trackers.values()] == before, (
            "15: offsets differ after a replay"
        )
        await self.stop_node()

    def workload(self) -> Sequence[Coroutine[Any, Any, None]]:
        members = [
            GroupMember(self, group, f"{group}-m{at}") for group in GROUPS for at in range(self.random.randint(1, 4))
        ]
        return [*(member.run() for member in members), self.observe_offsets(), self.inject_faults()]

    async def observe_offsets(self) -> None:
        source = stream(self.world.seed, "observer")
        while not self.is_finished:
            await asyncio.sleep(source.uniform(0.0, 3.0))
            try:
                await self.fetch_offsets(self.trackers[source.choice(GROUPS)])
            except Disconnected:
                continue

    async def fetch_offsets(self, tracker: GroupTracker) -> dict[int, int]:
        """Fetch the group's offsets and check them against the tracker."""
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=tracker.name,
                    topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(PARTITIONS)))],
                )
            ],
            require_stable=True,
        )
        while True:
            client = await self.connect_client()
            acked_before, crashes = dict(tracker.acked), self.crashes
            response = (await client.call(request, OffsetFetchResponse, 9)).groups[0]
            client.close()
            if response.error_code not in COORDINATOR_ERRORS:
                break
            await asyncio.sleep(0.1)
        assert response.error_code == 0, response
        found = {partition.partition_index: partition.committed_offset for partition in response.topics[0].partitions}
        self.expect_no_power_cut_since(crashes)
        tracker.check(found, acked_before if self.keep == "page-cache" else dict.fromkeys(range(PARTITIONS), -1))
        return found
