"""Incremental fetch sessions (KIP-227): the broker remembers what a client fetches, so that both name only what has changed.

A session lives until its client closes it or another needs its place. There are at most so many of them, and of partitions in them.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ottla.base.ports import Rng
from ottla.runtime.broker import Broker
from ottla.runtime.partition import Partition

if TYPE_CHECKING:
    from ottla.wire.fetch_codec import PartitionFetch, TopicFetch  # loaded when somebody fetches

INITIAL_EPOCH = 0
"""Asks for a new session."""
FINAL_EPOCH = -1
"""Asks for none, and closes the one that is named."""
EPOCH_MAX = (1 << 31) - 1
NO_SESSION = 0
SESSION_ID_MAX = (1 << 31) - 1
EVICTION_MS = 120_000
"""A session that was not used for so long gives way to any other; one that is older than this, to one with more partitions."""
PARTITIONS_MAX = 100_000
"""In all sessions together: a place takes some hundred bytes. Who would exceed it is served without a session."""
ORPHANED_MS = 15_000
"""A session whose connection has ended, and that nobody has gone on with for so long, is forgotten. Kafka keeps it until another one needs
its place; a client that comes back later starts anew, as after any eviction."""
NOT_SENT = -1


class CachedPartition:
    """A partition that a fetch wants, and what the client of its session was told of it last."""

    __slots__ = ("high_watermark", "log_start_offset", "name", "partition", "topic", "want")

    def __init__(self, topic: bytes, want: "PartitionFetch", partition: Partition | None) -> None:
        self.topic = topic
        """The id or the name that the client says."""
        self.want = want
        self.partition = partition
        self.name: str | None = None
        """The name of a topic that is known by its id, once it was found: what is told after its deletion depends on it."""
        self.high_watermark = NOT_SENT
        self.log_start_offset = NOT_SENT

    def resolve(self, broker: Broker, *, by_id: bool) -> Partition | None:
        """Look the partition up again: it was not there when it was last asked for, or is no longer."""
        if by_id and self.partition is not None:
            self.name = self.partition.topic
        partitions = (broker.partitions_by_id if by_id else broker.partitions_by_name).get(self.topic)
        index = self.want[0]
        self.partition = partitions[index] if partitions is not None and 0 <= index < len(partitions) else None
        if by_id and partitions is not None:
            self.name = next((partition.topic for partition in partitions if partition is not None), self.name)
        return self.partition


CachedPartitions = dict[tuple[bytes, int], CachedPartition]


class SessionPartitions(CachedPartitions):
    """A session's places, in a dict of a kind of its own: of plain ones the interpreter keeps the first 80 that are freed, for later, and
    each would keep the megabyte that it lies in from being given back: 25 MB of the 33 that 100 sessions of 1,000 partitions took."""

    __slots__ = ()


def resolve_partitions(broker: Broker, topics: "Iterable[TopicFetch]", *, by_id: bool) -> CachedPartitions:
    """Each partition once, where it was first named; what was said of it last counts."""
    partitions_of = broker.partitions_by_id if by_id else broker.partitions_by_name
    places: CachedPartitions = {}
    for topic, wanted in topics:
        partitions = partitions_of.get(topic)
        count = 0 if partitions is None else len(partitions)
        for want in wanted:
            index = want[0]
            places[topic, index] = CachedPartition(
                topic, want, partitions[index] if partitions is not None and 0 <= index < count else None
            )
    return places


class Owner(Protocol):
    @property
    def is_closed(self) -> bool: ...


class FetchSession:
    """What one client fetches. The next request must carry `epoch`: one that was lost or repeated is noticed so."""

    __slots__ = ("created_ms", "epoch", "is_by_id", "last_used_ms", "owner", "partitions", "rank", "session_id")

    def __init__(
        self, session_id: int, places: CachedPartitions, *, is_by_id: bool, now_ms: int, owner: Owner | None = None
    ) -> None:
        self.session_id = session_id
        self.owner = owner
        """Whose connection it was used by last."""
        self.partitions = SessionPartitions(places)
        self.is_by_id = is_by_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.rank: tuple[int, int] | None = None
        """Its place among those that may give way to a larger one."""

    def update(
        self, broker: Broker, topics: "Iterable[TopicFetch]", forgotten: Iterable[tuple[bytes, list[int]]]
    ) -> None:
        places = self.partitions
        for key, place in resolve_partitions(broker, topics, by_id=self.is_by_id).items():
            known = places.get(key)
            if known is None:
                places[key] = place
            else:
                known.want = place.want
        for topic, indexes in forgotten:
            for index in indexes:
                places.pop((topic, index), None)

    def move_back(self, place: CachedPartition) -> None:
        """It had its turn: where there is not room for all, others come first next time."""
        key = (place.topic, place.want[0])
        if self.partitions.get(key) is place:
            del self.partitions[key]
            self.partitions[key] = place


def next_epoch(epoch: int) -> int:
    return 1 if epoch == EPOCH_MAX else epoch + 1


class FetchSessionCache:
    """All sessions of a broker, the one that was used longest ago first."""

    def __init__(self, rng: Rng, *, slots_max: int) -> None:
        self._rng = rng
        self._slots_max = slots_max
        self._sessions: dict[int, FetchSession] = {}
        self._ranks: list[tuple[int, int]] = []
        """(partitions, id) of the sessions that have lived long enough to give way to a larger one, sorted."""
        self._counted: dict[int, int] = {}
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def open(self, places: CachedPartitions, *, is_by_id: bool, now_ms: int, owner: Owner | None = None) -> int:
        """The id of a new session for these places; 0 where there is no room for it."""
        if self.partition_count + len(places) > PARTITIONS_MAX:
            return NO_SESSION
        if len(self._sessions) >= self._slots_max and not self._maybe_evict(len(places), now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + self._rng.below(
                SESSION_ID_MAX
            )  # a client of an earlier run must not meet another's session
        session = FetchSession(session_id, places, is_by_id=is_by_id, now_ms=now_ms, owner=owner)
        self._sessions[session_id] = session
        self.touch(session, now_ms)
        return session_id

    def touch(self, session: FetchSession, now_ms: int) -> bool:
        """The session is used, and may have another size; false where it has grown too large, and was closed."""
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
            self._forget_rank(session)
            session.rank = rank
            if rank is not None:
                insort(self._ranks, rank)
        return True

    def close(self, session_id: int) -> FetchSession | None:
        """Forget a session, if there is one of this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= self._counted.pop(session_id)
            self._forget_rank(session)
        return session

    def orphans(self, now_ms: int) -> list[int]:
        """Those whose clients are gone, the ones that were used longest ago first."""
        orphans = []
        for session in self._sessions.values():
            if now_ms - session.last_used_ms < ORPHANED_MS:
                break
            if session.owner is not None and session.owner.is_closed:
                orphans.append(session.session_id)
        return orphans

    def _maybe_evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of this size, if one may go for it."""
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

    def _forget_rank(self, session: FetchSession) -> None:
        if session.rank is not None:
            del self._ranks[bisect_left(self._ranks, session.rank)]
            session.rank = None
