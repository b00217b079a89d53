"""Types that a caller of `GroupCoordinatorShard` passes in or gets back: settings, calls, records and metrics."""

from typing import Any, NamedTuple

from ottla.wire.schema import Message


class GroupSettings(NamedTuple):
    """Configs of the group coordinator, with Kafka's defaults. Config names have dots instead of underscores."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000


class GroupCall(NamedTuple):
    """One request to one shard.

    `request` is the wire message of JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, OffsetFetch,
    OffsetDelete, DescribeGroups, DeleteGroups or ListGroups; the decision's response is the matching response message.
    The caller does the work that needs cluster metadata or several shards:

    - It splits requests for several groups by shard, and converts OffsetFetch to the form of version 8 (`groups`).
    - It fills in names and, where known, ids of topics in OffsetCommit, OffsetFetch and OffsetDelete, and responds
      itself for topics that do not exist or are not authorized.

    `client_host` has a slash before the address, as in Kafka.
    `token` identifies a JoinGroup or SyncGroup request that may have to wait. The shard only passes it back.
    """

    request: Message
    version: int
    client_id: str = ""
    client_host: str = ""
    token: Any = None


class GroupRecord(NamedTuple):
    """A record of `__consumer_offsets` as written to the log. A tombstone has no value."""

    key: bytes
    value: bytes | None


class GroupMetrics:
    """Counters, updated in place. All shards of a node share one object, which outlives them."""

    __slots__ = ("expired_members", "expired_offsets", "offset_commits", "rebalances")

    def __init__(self) -> None:
        self.offset_commits = 0
        """Committed offsets, not OffsetCommit requests."""
        self.expired_offsets = 0
        self.expired_members = 0
        """Members removed after their session timed out."""
        self.rebalances = 0
        """Rebalances started, including the first one of a group."""


class GroupStats(NamedTuple):
    """Number of groups per state (Kafka's state names), and of members in all groups."""

    by_state: dict[str, int]
    members: int
