"""In-memory state of a classic group: members, generation, group state, and requests that wait for a response.

None of it is durable. When a generation completes, a record with its members and assignments is written; loading a
shard rebuilds the group from that record.
"""

from enum import Enum
from typing import Any, NamedTuple

from ottla.base.java_compat import in_map_order
from ottla.wire.errors import MalformedMessage
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.join_group import JoinGroupResponseMember
from ottla.wire.records.group import GroupMetadataValue, MemberMetadata
from ottla.wire.schema import decode

CONSUMER_PROTOCOL = "consumer"
EMPTY_ASSIGNMENT = b""


class GroupState(Enum):
    """Values are the state names in responses."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY),
    GroupState.COMPLETING_REBALANCE: (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
    GroupState.STABLE: (GroupState.PREPARING_REBALANCE,),
    GroupState.DEAD: (),
}
"""Allowed transitions. Dead is only reported for groups that do not exist; no existing group is in it."""


class PendingResponse(NamedTuple):
    """A request that waits for its response, and its API version."""

    token: Any
    version: int


class Member:
    """One member.

    `joining` and `syncing` are its pending requests; at most one is set. `is_new` until its first join completes.
    """

    __slots__ = (
        "assignment", "client_host", "client_id", "instance_id", "is_new", "joining", "member_id", "protocols",
        "rebalance_timeout_ms", "session_timeout_ms", "syncing",
    )  # fmt: skip

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[tuple[str, bytes], ...],
        assignment: bytes = EMPTY_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.joining: PendingResponse | None = None
        self.syncing: PendingResponse | None = None
        self.is_new = False

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError((self.member_id, protocol))

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether the session timer may be ignored: the member waits for a join or sync response.

        Not for a member in its first join, which may have disconnected.
        """
        return not self.is_new and (self.joining is not None or self.syncing is not None)


class ClassicGroup:
    """`supported` counts the members that support each protocol, `joining_count` those with a pending JoinGroup."""

    __slots__ = (
        "generation", "group_id", "initial_delay_ms", "initial_remaining_ms", "joining_count", "leader_id", "members",
        "new_member_added", "pending_members", "pending_sync", "previous_state", "protocol_name", "protocol_type",
        "state", "state_timestamp_ms", "static_members", "supported", "topics",
    )  # fmt: skip

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: dict[str, None] = {}
        self.pending_sync: dict[str, None] = {}
        self.joining_count = 0
        self.supported: dict[str, int] = {}
        self.new_member_added = False
        self.initial_delay_ms = -1
        self.initial_remaining_ms = 0
        self.topics: frozenset[str] | None = None

    # State

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], (self.group_id, self.state, state)
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return GroupState.PREPARING_REBALANCE in TRANSITIONS[self.state]

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self.joining_count and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """Largest rebalance timeout of all members."""
        return max([member.rebalance_timeout_ms for member in self.members.values()], default=0)

    def start_next_generation(self, now_ms: int) -> None:
        self.generation = self.generation + 1 if self.generation < 0x7FFF_FFFF else 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.topics = self.subscribed_topics()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)
        self.pending_sync.clear()

    # Members

    def add(self, member: Member, joining: PendingResponse | None) -> None:
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.set_joining(member, joining)
        self.pending_members.pop(member.member_id, None)

    def update(
        self,
        member: Member,
        protocols: tuple[tuple[str, bytes], ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def remove(self, member_id: str) -> None:
        """Remove a member or pending member, if it exists."""
        self.pending_members.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member.protocols, -1)
        self.set_joining(member, None)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def replace_member_id(self, member: Member, member_id: str) -> None:
        """Give a restarted static member its new id. It keeps its position, assignment and leadership."""
        assert member.instance_id is not None, member.member_id
        old_id, member.member_id = member.member_id, member_id
        self.members = {known.member_id: known for known in self.members.values()}
        self.static_members[member.instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id

    def set_joining(self, member: Member, joining: PendingResponse | None) -> None:
        self.joining_count += (joining is not None) - (member.joining is not None)
        member.joining = joining

    def elect_joined_leader(self) -> bool:
        """Replace the leader if it did not rejoin. Return whether the group has a leader that joined."""
        if self.leader_id is None:
            return False
        leader = self.members.get(self.leader_id)
        if leader is None or leader.joining is None:
            joined = [member.member_id for member in self.members.values() if member.joining is not None]
            if not joined:
                return False
            self.leader_id = joined[0]
        return True

    # Protocols

    def supports_protocols(self, protocol_type: str, names: list[str]) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(self.supported.get(name, 0) == count for name in names)

    def select_protocol(self) -> str:
        """Return the protocol with the most votes: each member votes for its first protocol that all members support.

        Ties are decided by the iteration order of Java's HashMap, as in Kafka.
        """
        count = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if self.supported[name] == count)
            votes[choice] = votes.get(choice, 0) + 1
        return max(in_map_order(votes), key=votes.__getitem__)

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that members of a consumer group subscribe to; None if that is unknown."""
        if self.protocol_type != CONSUMER_PROTOCOL or (self.members and self.protocol_name is None):
            return None
        topics: list[str] = []
        for member in self.members.values():
            try:  # may be malformed; a 2-byte version, then version 0's fields in every version
                topics += decode(ConsumerProtocolSubscription, 0, member.metadata(self.protocol_name), 2)[0].topics
            except MalformedMessage:
                return None
        return frozenset(topics)

    def is_subscribed(self, topic: str) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL if self.topics is None else topic in self.topics

    def _count(self, protocols: tuple[tuple[str, bytes], ...], step: int) -> None:
        for name in dict(protocols):
            self.supported[name] = self.supported.get(name, 0) + step
            if not self.supported[name]:
                del self.supported[name]

    # Messages and records

    def member_list(self) -> list[JoinGroupResponseMember]:
        """Members as sent to the group leader, which computes the assignment."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        ]

    def to_record(self) -> GroupMetadataValue:
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )


def group_from_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Rebuild a group from its record: Stable if it has members, otherwise Empty."""
    group = ClassicGroup(group_id, value.current_state_timestamp)
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    for stored in value.members:
        timeout = stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout
        group.add(
            Member(
                stored.member_id,
                stored.group_instance_id,
                stored.client_id,
                stored.client_host,
                timeout,
                stored.session_timeout,
                ((value.protocol or "", stored.subscription),),
                stored.assignment,
            ),
            None,
        )
    group.topics = group.subscribed_topics()
    return group
