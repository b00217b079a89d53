"""Incremental fetch sessions (KIP-227): the broker caches the partitions that a client fetches, so that requests and
responses contain changes only.

A session exists until its client closes it, until it is evicted, or until its connection has been closed for 15 s. The
number of sessions, and of their partitions, is limited.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ottla.base.ports import Rng
from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition

if TYPE_CHECKING:
    from ottla.wire.fetch_codec import PartitionFetch, TopicFetch  # loaded by the first fetch

INITIAL_EPOCH = 0
"""Requests a new session."""
FINAL_EPOCH = -1
"""Requests no session, and closes the session whose id is given."""
EPOCH_MAX = (1 << 31) - 1
NO_SESSION = 0
SESSION_ID_MAX = (1 << 31) - 1
EVICTION_MS = 120_000
"""A session that was not used for this long may be evicted by any other; one that is older than this, by one with more
partitions."""
PARTITIONS_MAX = 100_000
"""Upper limit for all sessions together, at some hundred bytes for each partition. A fetch that would exceed it gets
no session."""
ORPHANED_MS = 15_000
"""A session is removed if its connection was closed, and no other has used it for this long. Kafka keeps it until it
is evicted; a client that reconnects later opens a new session, as after any eviction."""
NOT_SENT = -1


class CachedPartition:
    """A partition of a fetch, and the values last sent to the client of its session."""

    __slots__ = ("high_watermark", "log_start_offset", "name", "partition", "request", "topic")

    def __init__(self, topic: bytes, request: "PartitionFetch", partition: Partition | None) -> None:
        self.topic = topic
        """The id or the name in the request."""
        self.request = request
        self.partition = partition
        self.name: str | None = None
        """The name of a topic that was requested by id, once it was found: the error after its deletion depends on
        it."""
        self.high_watermark = NOT_SENT
        self.log_start_offset = NOT_SENT

    def resolve(self, broker: Broker, *, by_id: bool) -> Partition | None:
        """Look the partition up again, as it was not here before or has been removed."""
        if by_id and self.partition is not None:
            self.name = self.partition.topic
        partitions = (broker.partitions_by_id if by_id else broker.partitions_by_name).get(self.topic)
        index = self.request[0]
        self.partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
        if by_id and partitions is not None:
            self.name = next((partition.topic for partition in partitions if partition is not None), self.name)
        return self.partition


CachedPartitions = dict[tuple[bytes, int], CachedPartition]


class SessionPartitions(CachedPartitions):
    """A dict subclass on purpose. CPython keeps up to 80 freed plain dicts on a free list, and each pins the 1 MB
    arena it lives in: 25 of the 33 MB used by 100 sessions of 1,000 partitions."""

    __slots__ = ()


def resolve_partitions(broker: Broker, topics: "Iterable[TopicFetch]", *, by_id: bool) -> CachedPartitions:
    """Return each partition once, in the order in which they first occur, with its last request."""
    by_topic = broker.partitions_by_id if by_id else broker.partitions_by_name
    resolved: CachedPartitions = {}
    for topic, requested in topics:
        partitions = by_topic.get(topic)
        count = 0 if partitions is None else len(partitions)
        for request in requested:
            index = request[0]
            resolved[topic, index] = CachedPartition(
                topic, request, partitions[index] if partitions is not None and 0 <= index < count else None
            )
    return resolved


class Owner(Protocol):
    @property
    def is_closed(self) -> bool: ...


class FetchSession:
    """The partitions that one client fetches. Its next request must have `epoch`, so that a lost or repeated one is
    detected."""

    __slots__ = ("created_ms", "epoch", "is_by_id", "last_used_ms", "owner", "partitions", "rank", "session_id")

    def __init__(
        self, session_id: int, partitions: CachedPartitions, *, is_by_id: bool, now_ms: int, owner: Owner | None = None
    ) -> None:
        self.session_id = session_id
        self.owner = owner
        """The connection that used it last."""
        self.partitions = SessionPartitions(partitions)
        self.is_by_id = is_by_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.rank: tuple[int, int] | None = None
        """Its entry in the sessions that a larger one may evict."""

    def update(
        self, broker: Broker, topics: "Iterable[TopicFetch]", forgotten: Iterable[tuple[bytes, list[int]]]
    ) -> None:
        partitions = self.partitions
        for key, cached in resolve_partitions(broker, topics, by_id=self.is_by_id).items():
            known = partitions.get(key)
            if known is None:
                partitions[key] = cached
            else:
                known.request = cached.request
        for topic, indexes in forgotten:
            for index in indexes:
                partitions.pop((topic, index), None)

    def move_back(self, cached: CachedPartition) -> None:
        """Move a partition to the end after its records were sent: if the next response cannot hold all, others come
        first."""
        key = (cached.topic, cached.request[0])
        if self.partitions.get(key) is cached:
            del self.partitions[key]
            self.partitions[key] = cached


def next_epoch(epoch: int) -> int:
    return 1 if epoch == EPOCH_MAX else epoch + 1


class FetchSessionCache:
    """All sessions of a broker, the least recently used first."""

    def __init__(self, rng: Rng, *, slots_max: int) -> None:
        self._rng = rng
        self._slots_max = slots_max
        self._sessions: dict[int, FetchSession] = {}
        self._ranks: list[tuple[int, int]] = []
        """Sorted (partitions, id) of the sessions that are old enough to be evicted by a larger one."""
        self._counted: dict[int, int] = {}
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def open(self, partitions: CachedPartitions, *, is_by_id: bool, now_ms: int, owner: Owner | None = None) -> int:
        """Open a session, and return its id; 0 if there is no space for it."""
        if self.partition_count + len(partitions) > PARTITIONS_MAX:
            return NO_SESSION
        if len(self._sessions) >= self._slots_max and not self._maybe_evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            # Random: a client of an earlier run must not use another's session.
            session_id = 1 + self._rng.below(SESSION_ID_MAX)
        session = FetchSession(session_id, partitions, is_by_id=is_by_id, now_ms=now_ms, owner=owner)
        self._sessions[session_id] = session
        self.touch(session, now_ms)
        return session_id

    def touch(self, session: FetchSession, now_ms: int) -> bool:
        """Note the use of a session, whose size may have changed. Return False if it was closed, as it has become too
        large."""
        session_id, size = session.session_id, len(session.partitions)
        del self._sessions[session_id]
        self._sessions[session_id] = session
        session.last_used_ms = now_ms
        self.partition_count += size - self._counted.get(session_id, 0)
        self._counted[session_id] = size
        if self.partition_count > PARTITIONS_MAX:
            self.close(session_id)
            return False
        rank = (size, session_id) if now_ms - session.created_ms > EVICTION_MS else None
        if rank != session.rank:
            self._remove_rank(session)
            session.rank = rank
            if rank is not None:
                insort(self._ranks, rank)
        return True

    def close(self, session_id: int) -> FetchSession | None:
        """Remove and return the session with this id, if any."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= self._counted.pop(session_id)
            self._remove_rank(session)
        return session

    def orphans(self, now_ms: int) -> list[int]:
        """Return the ids of sessions whose clients have disconnected, the least recently used first."""
        orphans = []
        for session in self._sessions.values():
            if now_ms - session.last_used_ms < ORPHANED_MS:
                break
            if session.owner is not None and session.owner.is_closed:
                orphans.append(session.session_id)
        return orphans

    def _maybe_evict(self, size: int, now_ms: int) -> bool:
        """Evict a session for one of this size, if one may be evicted."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            self.close(oldest.session_id)
            return True
        if not self._ranks or size <= self._ranks[0][0]:
            return False
        self.close(self._ranks[0][1])
        return True

    def _remove_rank(self, session: FetchSession) -> None:
        if session.rank is not None:
            del self._ranks[bisect_left(self._ranks, session.rank)]
            session.rank = None
