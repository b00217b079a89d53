"""One shard of the group coordinator: the groups whose records live in one partition of `__consumer_offsets`."""

from collections.abc import Iterable

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.base.ports import Rng
from ottla.groups.requests import GroupCall
from ottla.groups.settings import GroupSettings


class GroupShard:
    """How it is driven:

    1. A new shard is loaded: `replay` for every record of the partition, then `on_loaded`, whose decision is treated as any other.
    2. For each request `decide`; when `next_deadline_ms` has come, `on_time`. The records of a decision are appended to the log and
       replayed, in their order, before anything else is decided. Its response and completions leave when the records are committed;
       those of a decision without records leave when all that was replayed before it is committed, as they may tell of it.
       Records of several decisions may share a batch.
    3. Where the log refuses the records of a decision before any of them was replayed, call `on_append_failed` instead of `replay`
       and go on with the decision it returns. Where records that were replayed are lost (leadership moved, the disk failed),
       the shard is: `on_unloaded` answers those who wait, and a new shard is loaded.
    """

    def __init__(self, settings: GroupSettings, rng: Rng) -> None:
        self._settings = settings
        self._rng = rng

    def decide(self, call: GroupCall, now_ms: int) -> Decision:
        """The records are GroupRecords. Refusals are responses too."""
        raise NotImplementedError

    def replay(self, offset: int, key: bytes, value: bytes | None) -> None:
        """The only writer of what the log holds. Records of kinds that are not known are skipped."""
        raise NotImplementedError

    def on_append_failed(self, decision: Decision, error: ErrorCode, now_ms: int) -> Decision:
        """`error` is the log's. What the decision only remembered is undone; the result says what to answer, and may have records."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int | None:
        """When `on_time` has something to do; None while nothing is due ever. Cheap enough to ask after every call."""
        raise NotImplementedError

    def on_time(self, now_ms: int) -> Decision:
        """All that is due: members expire, rebalances end, offsets are forgotten. Harmless when called early or late."""
        raise NotImplementedError

    def on_loaded(self, now_ms: int) -> Decision:
        """The log is read to its end: members get a full session timeout to be heard of."""
        raise NotImplementedError

    def on_unloaded(self) -> Decision:
        """Everyone who waits is answered with NOT_COORDINATOR. The shard is not used afterwards."""
        raise NotImplementedError

    def on_topics_deleted(self, topics: Iterable[tuple[str, Uuid]], now_ms: int) -> Decision:
        """Offsets of deleted topics are forgotten in all groups, unless they were committed under another id of the same name."""
        raise NotImplementedError
