"""States, events and effects of `membership.Membership`."""

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
    """Before a join: `on_revoked` or `on_lost` runs."""
    JOINING = auto()
    COMPUTING = auto()
    """This member is the leader and computes the assignment."""
    SYNCING = auto()
    APPLYING = auto()
    """After a sync: `on_assigned` runs."""
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
    """Settings that do not change during a consumer's lifetime."""

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
        """Members keep partitions during a rebalance only if all configured assignors are cooperative."""
        return all(assignor.is_cooperative for assignor in self.assignors)


# Events


@dataclass(frozen=True, slots=True)
class Polled:
    """The user polled: it is alive, and callbacks may run."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The subscription changed."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The leader's metadata has other partitions than those it assigned."""


@dataclass(frozen=True, slots=True)
class JoinPrepared:
    """The steps before a join are done."""


@dataclass(frozen=True, slots=True)
class AssignmentApplied:
    """The new assignment is in effect."""


@dataclass(frozen=True, slots=True)
class AssignmentComputed:
    """Encoded assignments of all members."""

    generation: int
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class ResponseReceived:
    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest
    response: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse


@dataclass(frozen=True, slots=True, eq=False)
class RequestFailed:
    """A request failed without a response."""

    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest
    error: ClientError


@dataclass(frozen=True, slots=True)
class Tick:
    """`deadline_ms` passed."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The consumer unsubscribed or closed."""

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
    """Send a request to the coordinator. LeaveGroup's response is ignored."""

    request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest


@dataclass(frozen=True, slots=True)
class PrepareJoin:
    """Before rejoining: auto-commit if enabled, then call `on_revoked`, or `on_lost` for partitions already reassigned.

    The driver replies with JoinPrepared.
    """

    revoked: tuple[TopicPartition, ...] = ()
    lost: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyAssignment:
    """Call `on_revoked`, read `assigned` from now on, call `on_assigned` with `added`.

    The driver replies with AssignmentApplied.
    """

    assigned: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    revoked: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ComputeAssignment:
    """Assign the partitions of all subscribed topics to the members. The driver replies with AssignmentComputed."""

    protocol: str
    generation: int
    members: tuple[JoinGroupResponseMember, ...]


@dataclass(frozen=True, slots=True)
class MarkCoordinatorUnknown:
    """Look the coordinator up again before the next request."""


@dataclass(frozen=True, slots=True)
class Wake:
    """Wake a waiting poll: the next poll has something to do."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise this error from the next poll."""

    error: ClientError


Effect = Send | PrepareJoin | ApplyAssignment | ComputeAssignment | MarkCoordinatorUnknown | Wake | Fail
