"""The input of a consumer: subscribed topics or assigned partitions, and seeks, pauses and resumes by the user."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import ClusterMetadata
from ottla.client.errors import ConfigError
from ottla.client.fetch_collector import FetchCollector
from ottla.client.fetcher import Fetcher
from ottla.client.group_driver import GroupDriver
from ottla.client.membership_events import Subscribed
from ottla.client.position_resolver import PositionResolver
from ottla.client.positions import Positions
from ottla.client.records import TopicPartition

RebalanceCallback = Callable[[list[TopicPartition]], Any]
"""A user's callback; AsyncConsumer also accepts coroutine functions."""


class RebalanceListener(NamedTuple):
    """Callbacks for rebalances."""

    on_assigned: RebalanceCallback | None = None
    on_revoked: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None
    """If not given, `on_revoked` is called for lost partitions too."""


class ConsumerSubscription:
    """All methods run in the event loop. `notify` wakes a waiting poll."""

    def __init__(
        self,
        core: ClusterClient,
        positions: Positions,
        fetcher: Fetcher,
        collector: FetchCollector,
        resolver: PositionResolver,
        group: GroupDriver | None,
        notify: Callable[[], None],
        *,
        excludes_internal: bool,
    ) -> None:
        self._core = core
        self._positions = positions
        self._fetcher = fetcher
        self._collector = collector
        self._resolver = resolver
        self._group = group
        self._notify = notify
        self._excludes_internal = excludes_internal
        self._pattern: re.Pattern[str] | None = None
        self._missing_topic_checks = 0
        self.listener = RebalanceListener()
        self.topics: tuple[str, ...] | None = None
        """The subscribed topics; None without a subscription."""
        core.update_callbacks.append(self._on_metadata)

    # Topics and partitions

    def subscribe(self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener) -> None:
        if self._group is None:
            raise ConfigError("subscribe needs group.id; without a group, assign partitions.")
        if self.topics is None and self._positions.states:
            raise ValueError("partitions were assigned: unsubscribe before subscribing")
        self.listener = listener
        if isinstance(topics, re.Pattern):
            self._pattern = topics
            self._core.track_all_topics()
            self._core.request_update()
            self._set_topics(self._matching_topics(self._core.cluster))
            return
        if isinstance(topics, str):
            raise TypeError("topics must be a list of names, or a compiled pattern")
        self._pattern = None
        self._core.track_all_topics(False)
        names = tuple(sorted(dict.fromkeys(topics)))
        self._core.track_topics(names)
        if any(name not in self._core.cluster.topics for name in names):
            self._core.request_update()
        self._set_topics(names)

    def _set_topics(self, names: tuple[str, ...]) -> None:
        assert self._group is not None
        self.topics = names
        self._group.step(Subscribed(names))
        self._notify()

    def _matching_topics(self, cluster: ClusterMetadata) -> tuple[str, ...]:
        pattern = self._pattern
        assert pattern is not None
        return tuple(
            sorted(
                name
                for name, topic in cluster.topics.items()
                if pattern.fullmatch(name) and not (self._excludes_internal and topic.is_internal)
            )
        )

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        if self.topics is None:
            return
        if self._pattern is not None:
            names = self._matching_topics(cluster)
            if names != self.topics:
                self._set_topics(names)
        elif any(name not in cluster.topics for name in self.topics):
            # Poll for topics that do not exist yet, with backoff.
            self._missing_topic_checks += 1
            delay_ms = self._core.retry_backoff.delay_ms(self._missing_topic_checks)
            self._core.loop.call_later(delay_ms / 1000, self._core.request_update)
        else:
            self._missing_topic_checks = 0

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self.topics is not None:
            raise ValueError("topics are subscribed to: unsubscribe before assigning partitions")
        assigned = sorted(TopicPartition(*partition) for partition in partitions)
        self.set_partitions(assigned)
        if any(partition.topic not in self._core.cluster.topics for partition in assigned):
            self._core.request_update()
        self._notify()

    def set_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions from now on. Those already read keep their positions."""
        assigned = dict.fromkeys(partitions)
        for partition in list(self._positions.states):
            if partition not in assigned:
                self._collector.discard(partition)
        self._positions.replace(assigned)
        self._core.track_topics(dict.fromkeys(partition.topic for partition in assigned))

    def clear(self) -> None:
        """Read nothing."""
        self.set_partitions(())
        self.topics = None
        self._pattern = None
        self._core.track_all_topics(False)

    # Positions

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        if offset < 0:
            raise ValueError(f"offset must be >= 0, got {offset}")
        state = self._positions.require(partition)
        self._collector.discard(partition)
        state.seek(offset, leader_epoch)
        self._resolver.failures.clear()  # of earlier positions; still missing ones are reported again
        self._notify()

    def seek_to_timestamp(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        """Look up the offset of a timestamp (or special ListOffsets timestamp) and move there."""
        for partition in list(partitions) or list(self._positions.states):
            state = self._positions.require(partition)
            self._collector.discard(partition)
            state.request_reset(timestamp)
        self._resolver.failures.clear()
        self._resolver.maybe_start()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self._positions.require(partition)
            self._collector.pause(partition)
            state.is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._positions.require(partition).is_paused = False
            self._collector.resume(partition)
        self._fetcher.fetch()
