"""Failures that retries hide from callers: unreachable brokers, deleted topics, partitions that reject batches."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ottla.client.cluster_metadata import ClusterMetadata, TopicInfo
from ottla.client.errors import ClientError, UnknownTopicOrPartitionError

OutageCallback: TypeAlias = Callable[[str, ClientError | None], object]
"""Gets the subject (an address, a topic or a partition) and the error, or None when the outage is over."""


class OutageMonitor:
    """The current outages by subject. `callback` is called in the client's event loop."""

    def __init__(self) -> None:
        self._current: dict[str, ClientError] = {}
        self.callback: OutageCallback | None = None

    @property
    def latest(self) -> ClientError | None:
        """Return the error of the outage that began last."""
        return next(reversed(self._current.values()), None)

    def begin(self, subject: str, error: ClientError) -> None:
        is_new = subject not in self._current
        self._current[subject] = error
        if is_new:
            self._notify(subject, error)

    def end(self, subject: str) -> None:
        if self._current.pop(subject, None) is not None:
            self._notify(subject, None)

    def _notify(self, subject: str, error: ClientError | None) -> None:
        if self.callback is not None:
            self.callback(subject, error)

    def check_topics(self, names: Iterable[str], before: dict[str, TopicInfo], cluster: ClusterMetadata) -> None:
        """Compare topics before and after a metadata update. A recreated topic is an outage that is over at once."""
        for name in names:
            known, info = before.get(name), cluster.topic(name)
            if known is not None and (info is None or info.id != known.id):
                self.begin(name, UnknownTopicOrPartitionError(f"Topic {name!r} was deleted."))
            if info is not None:
                self.end(name)
