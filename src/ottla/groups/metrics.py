"""What is counted of groups, for those who watch a node."""

from typing import NamedTuple


class GroupMetrics:
    """Counted where it happens, by an addition. All shards of a node share one, which stays when they go."""

    __slots__ = ("expired_members", "expired_offsets", "offset_commits", "rebalances")

    def __init__(self) -> None:
        self.offset_commits = 0
        """Offsets, not requests."""
        self.expired_offsets = 0
        self.expired_members = 0
        """Those that were not heard of for their session timeout."""
        self.rebalances = 0
        """Those that have begun, the first one of a group among them."""


class GroupStats(NamedTuple):
    """How many groups there are in each state, by the names that clients are told, and how many members in all."""

    by_state: dict[str, int]
    members: int
