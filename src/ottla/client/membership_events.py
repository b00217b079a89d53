"""The words of membership: its phases, what can happen to it, and what it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from ottla.client.assignors import Assignor
from ottla.client.errors import ClientError
from ottla.client.records import TopicPartition
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class MemberState(Enum):
    UNJOINED = auto()
    PREPARING = auto()
    """The user hears what it gives up."""
    JOINING = auto()
    COMPUTING = auto()
    """This member leads: it spreads the partitions."""
    SYNCING = auto()
    APPLYING = auto()
    """The user hears what it gets."""
    STABLE = auto()
    FAILED = auto()


VALID_TRANSITIONS: dict[MemberState, tuple[MemberState, ...]] = {
    MemberState.UNJOINED: (MemberState.PREPARING, MemberState.UNJOINED, MemberState.FAILED),
    MemberState.PREPARING: (MemberState.JOINING, MemberState.UNJOINED, MemberState.FAILED),
    MemberState.JOINING: (
        MemberState.JOINING,
        MemberState.COMPUTING,
        MemberState.SYNCING,
        MemberState.UNJOINED,
        MemberState.FAILED,
    ),
    MemberState.COMPUTING: (MemberState.SYNCING, MemberState.UNJOINED, MemberState.FAILED),
    MemberState.SYNCING: (MemberState.JOINING, MemberState.APPLYING, MemberState.UNJOINED, MemberState.FAILED),
    MemberState.APPLYING: (MemberState.STABLE, MemberState.UNJOINED, MemberState.FAILED),
    MemberState.STABLE: (MemberState.PREPARING, MemberState.UNJOINED, MemberState.FAILED),
    MemberState.FAILED: (MemberState.UNJOINED, MemberState.FAILED),
}


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """What does not change while a consumer lives."""

    group_id: str
    assignors: tuple[Assignor, ...]
    instance_id: str | None = None
    rack: str | None = None
    session_timeout_ms: int = 45_000
    poll_interval_ms_max: int = 300_000
    heartbeat_interval_ms: float = 3_000
    retry_ms: float = 100

    @property
    def is_cooperative(self) -> bool:
        """Members keep their partitions during a rebalance only where every assignor that may be chosen allows it."""
        return all(assignor.is_cooperative for assignor in self.assignors)


# Events


@dataclass(frozen=True, slots=True)
class Polled:
    """The user asks for records: it lives, and may be told things."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """These topics are wanted from now on."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The leader sees other partitions than those that it spread."""


@dataclass(frozen=True, slots=True)
class JoinPrepared:
    """The user was told what it gives up."""


@dataclass(frozen=True, slots=True)
class AssignmentApplied:
    """The user was told what it has."""


@dataclass(frozen=True, slots=True)
class AssignmentComputed:
    """The assignments of all members, encoded."""

    generation: int
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class ResponseReceived:
    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest
    response: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse


@dataclass(frozen=True, slots=True, eq=False)
class RequestFailed:
    """A request failed on its way."""

    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest
    error: ClientError


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The user goes."""

    reason: str


Event = (
    Polled
    | Subscribed
    | TopicsChanged
    | JoinPrepared
    | AssignmentApplied
    | AssignmentComputed
    | ResponseReceived
    | RequestFailed
    | Tick
    | Leave
)

# Effects


@dataclass(frozen=True, slots=True)
class Send:
    """To the coordinator. Of a LeaveGroup no response is waited for."""

    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest


@dataclass(frozen=True, slots=True)
class PrepareJoin:
    """Commit if that is automatic, then tell the user what it gives up; then comes JoinPrepared.

    Lost ones are another's already.
    """

    revoked: tuple[TopicPartition, ...] = ()
    lost: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyAssignment:
    """Tell the user what is revoked, read `assigned` from now on, tell the user what is added; then comes
    AssignmentApplied.
    """

    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ComputeAssignment:
    """Spread the partitions of all subscribed topics over the members; then comes AssignmentComputed."""

    protocol: str
    generation: int
    members: tuple[JoinGroupResponseMember, ...]


@dataclass(frozen=True, slots=True)
class MarkCoordinatorUnknown:
    """Look for it again before the next request."""


@dataclass(frozen=True, slots=True)
class Wake:
    """There is something to do at the next poll: one that waits is to look."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The user has to know."""

    error: ClientError


Effect = Send | PrepareJoin | ApplyAssignment | ComputeAssignment | MarkCoordinatorUnknown | Wake | Fail
