"""An incremental fetch session with one broker, without I/O: only what changed is asked for, and only what is new is handle_response."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.client.records import TopicPartition
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION = 0
FIRST_EPOCH = 0
EPOCH_MAX = 2**31 - 1
TOPIC_ID_MIN_VERSION = 13
"""The version in which topics go by their ids."""


class FetchTarget(NamedTuple):
    """What is wanted of one partition."""

    topic_id: Uuid
    fetch_offset: int
    leader_epoch: int
    """The one that this client knows of: a broker that knows a later one says so."""
    bytes_max: int


class FetchSessionHandler:
    """`request` says what to send next, `handle_response` and `handle_error` what came of it. One request is under way at a time."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, FetchTarget] = {}
        """What the broker remembers."""

    def next_request(self, targets: Mapping[TopicPartition, FetchTarget]) -> FetchRequest:
        """Topics, what is forgotten and the session's numbers; the other fields are the caller's."""
        if self._epoch == FIRST_EPOCH:
            changed, gone = dict(targets), {}
        else:
            known = self._known
            changed = {key: target for key, target in targets.items() if known.get(key) != target}
            gone = {key: target for key, target in known.items() if key not in targets}
            # A topic that was made again has another id: the broker is to forget the old one.
            gone |= {
                key: known[key]
                for key, target in changed.items()
                if key in known and known[key].topic_id != target.topic_id
            }
        self._known = dict(targets)
        return FetchRequest(
            session_id=self.id,
            session_epoch=self._epoch,
            topics=_topics(changed),
            forgotten_topics_data=_forgotten(gone),
        )

    @property
    def version_max(self) -> int | None:
        """Topics without ids, as old brokers have them, can only be asked for by name."""
        return (
            TOPIC_ID_MIN_VERSION - 1 if any(target.topic_id == ZERO_UUID for target in self._known.values()) else None
        )

    def handle_response(self, response: FetchResponse) -> bool:
        """Take in a response; False where it says that the session is gone, and the next request starts another."""
        if response.error_code:
            self.handle_error()
            return False
        if self._epoch == FIRST_EPOCH:
            self.id = response.session_id
        # A broker that keeps no session responses without an id: then everything is asked for each time.
        self._epoch = FIRST_EPOCH if self.id == NO_SESSION else 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        return True

    def handle_error(self) -> None:
        """Whether the last request reached the broker is not known: begin anew."""
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
