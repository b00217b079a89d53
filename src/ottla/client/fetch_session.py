"""An incremental fetch session with one broker, without I/O: requests and responses contain only what changed."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.client.records import TopicPartition
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION = 0
FIRST_EPOCH = 0
EPOCH_MAX = 2**31 - 1
TOPIC_ID_MIN_VERSION = 13
"""From this version on, Fetch identifies topics by id."""


class FetchTarget(NamedTuple):
    """Fetch position and limits of one partition."""

    topic_id: Uuid
    fetch_offset: int
    leader_epoch: int
    """The leader epoch known to the client; a broker with a newer one responds with an error."""
    bytes_max: int


class FetchSessionHandler:
    """Builds fetch requests of a session. One request is in flight at a time; pass its outcome to `handle_response` or
    `handle_error`.
    """

    def __init__(self) -> None:
        self.id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, FetchTarget] = {}
        """Partitions in the broker's session."""

    def next_request(self, targets: Mapping[TopicPartition, FetchTarget]) -> FetchRequest:
        """Return a request with its topics, forgotten topics and session fields set; the caller sets the rest."""
        if self._epoch == FIRST_EPOCH:
            changed, removed = dict(targets), {}
        else:
            known = self._known
            changed = {key: target for key, target in targets.items() if known.get(key) != target}
            removed = {key: target for key, target in known.items() if key not in targets}
            # A recreated topic has a new id: forget the old one.
            removed |= {
                key: known[key]
                for key, target in changed.items()
                if key in known and known[key].topic_id != target.topic_id
            }
        self._known = dict(targets)
        return FetchRequest(
            session_id=self.id,
            session_epoch=self._epoch,
            topics=_topics(changed),
            forgotten_topics_data=_forgotten(removed),
        )

    @property
    def version_max(self) -> int | None:
        """Highest usable version: topics without ids, from old brokers, can only be fetched by name."""
        return (
            TOPIC_ID_MIN_VERSION - 1 if any(target.topic_id == ZERO_UUID for target in self._known.values()) else None
        )

    def handle_response(self, response: FetchResponse) -> bool:
        """Apply a response. Returns False if the session was lost; the next request then starts a new one."""
        if response.error_code:
            self.handle_error()
            return False
        if self._epoch == FIRST_EPOCH:
            self.id = response.session_id
        # A broker without a session responds with id 0: then every request is a full one.
        self._epoch = FIRST_EPOCH if self.id == NO_SESSION else 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        return True

    def handle_error(self) -> None:
        """Start a new session: the last request may or may not have reached the broker."""
        self.id = NO_SESSION
        self._epoch = FIRST_EPOCH


def _topics(targets: Mapping[TopicPartition, FetchTarget]) -> list[FetchTopic]:
    found: dict[str, FetchTopic] = {}
    for (topic, partition), target in targets.items():
        entry = found.get(topic)
        if entry is None:
            entry = found[topic] = FetchTopic(topic=topic, topic_id=target.topic_id)
        entry.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=target.leader_epoch,
                fetch_offset=target.fetch_offset,
                partition_max_bytes=target.bytes_max,
            )
        )
    return list(found.values())


def _forgotten(targets: Mapping[TopicPartition, FetchTarget]) -> list[ForgottenTopic]:
    found: dict[str, ForgottenTopic] = {}
    for (topic, partition), target in targets.items():
        entry = found.get(topic)
        if entry is None:
            entry = found[topic] = ForgottenTopic(topic=topic, topic_id=target.topic_id)
        entry.partitions.append(partition)
    return list(found.values())
