"""What both faces of the consumer drive: positions, fetching, the group and committer, in one event loop.

The faces ask for the next step. It is what was asked for, nothing (the time was up), or a call that the user's code is
to be given first: the faces make it where the user's code runs.
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ottla.base.ports import ClientPorts
from ottla.client.assignors import assignors_named
from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import ClusterMetadata
from ottla.client.column_batch import ColumnBatch
from ottla.client.config import Config
from ottla.client.consumer_config import EARLIEST, LATEST, reset_policy
from ottla.client.coordinator_finder import CoordinatorFinder
from ottla.client.errors import ClientClosedError, ClientTimeoutError, ConfigError, WakeupError
from ottla.client.fetch_collector import Chunk, FetchCollector
from ottla.client.fetcher import Fetcher
from ottla.client.group_driver import GroupDriver
from ottla.client.group_offsets import GroupOffsetsClient
from ottla.client.membership_events import (
    ApplyAssignment,
    AssignmentApplied,
    JoinPrepared,
    MemberSettings,
    PrepareJoin,
    Subscribed,
)
from ottla.client.offset_committer import OffsetCommitter
from ottla.client.offset_lookup import FoundOffset, OffsetLookup
from ottla.client.position_resolver import PositionResolver
from ottla.client.positions import Positions
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

RebalanceCallback = Callable[[list[TopicPartition]], Any]
"""A callback of the user: it may be a coroutine function."""


class StepKind(Enum):
    RECORDS = "records"
    CHUNK = "chunk"
    BATCH = "batch"


class PendingCallback(NamedTuple):
    """Call this with that before the next step."""

    function: RebalanceCallback
    partitions: list[TopicPartition]


class RebalanceListener(NamedTuple):
    """What a user wants to hear of rebalances."""

    on_assigned: RebalanceCallback | None = None
    on_revoked: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None
    """Where it is not given, `on_revoked` hears of lost partitions too."""


Step = ColumnBatch | Chunk | list[ConsumerRecord] | PendingCallback | None


class ConsumerEngine:
    """Made inside a running loop. Everything here is called in that loop."""

    def __init__(self, config: Config, ports: ClientPorts) -> None:
        self.config = config
        self.core = core = ClusterClient(config, ports, creates_topics=config["allow.auto.create.topics"])
        self.positions = Positions()
        self.policy = reset_policy(config["auto.offset.reset"])
        self.read_committed: bool = config["isolation.level"] == "read_committed"
        self.group_id: str | None = config["group.id"]
        self.lookup = OffsetLookup(core, read_committed=self.read_committed)
        self.interceptors: tuple[Any, ...] = tuple(config["interceptor.classes"] or ())
        self.api_timeout_ms: float = config["default.api.timeout.ms"]
        self._updated = asyncio.Event()
        self._is_woken = False
        self._missing_topic_checks = 0
        self._rebalance_steps: deque[PendingCallback | Callable[[], Awaitable[None] | None]] = deque()
        self._listener = RebalanceListener()
        self._pattern: re.Pattern[str] | None = None
        self.subscribed: tuple[str, ...] | None = None
        """The topics of a subscription; None where partitions are assigned by the user, or nothing is."""
        self.group: GroupDriver | None = None
        self.committer: OffsetCommitter | None = None
        offsets = None
        if self.group_id is not None:
            coordinators = CoordinatorFinder(core)
            offsets = GroupOffsetsClient(core, coordinators, self.group_id, read_committed=self.read_committed)
            self.group = GroupDriver(core, coordinators, self._member_settings(config), self.notify)
            self.committer = OffsetCommitter(core, offsets, self.group, self._consumed, config, self.interceptors)
        self.resolver = PositionResolver(core, self.positions, self.lookup, offsets, self.policy, self.notify)
        self.fetcher = Fetcher(core, config, self.positions, self.notify, self.resolver.reset)
        self.collector = FetchCollector(
            self.fetcher,
            self.positions,
            read_committed=self.read_committed,
            check_crcs=config["check.crcs"],
            key=config["key.deserializer"],
            value=config["value.deserializer"],
            intercept=self._intercepted if self.interceptors else None,
        )
        self._records_max: int = config["max.poll.records"]
        core.update_callbacks.append(self._on_metadata)

    def _member_settings(self, config: Config) -> MemberSettings:
        given = config["partition.assignment.strategy"]
        names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
        try:
            assignors = assignors_named(names)
        except ValueError as error:
            raise ConfigError(f"partition.assignment.strategy: {error}.") from None
        return MemberSettings(
            self.group_id or "",
            tuple(assignors),
            config["group.instance.id"],
            config["client.rack"] or None,
            config["session.timeout.ms"],
            config["max.poll.interval.ms"],
            config["heartbeat.interval.ms"],
            config["retry.backoff.ms"],
        )

    def notify(self) -> None:
        """Something happened that a waiting step should look at."""
        self._updated.set()

    def wakeup(self) -> None:
        self._is_woken = True
        self._updated.set()

    # Steps

    async def step(self, kind: StepKind, deadline_ms: float | None, records_max: int | None = None) -> Step:
        """What was asked for, None when the time is up, or a PendingCallback that comes first."""
        while True:
            self._updated.clear()
            self._raise_failures()
            call = await self._advance_group()
            if call is not None:
                return call
            self.resolver.maybe_start()
            self.fetcher.fetch()
            found = self._take(kind, records_max)
            if found is not None and (found or not isinstance(found, list)):
                return found
            if self.core.is_closed:
                raise ClientClosedError("The consumer is closed.")
            now_ms = self.core.now_ms()
            if deadline_ms is not None and now_ms >= deadline_ms:
                return None
            until_ms = self.committer.due_ms if self.committer is not None else None
            wait_ms = min((at for at in (deadline_ms, until_ms) if at is not None), default=None)
            try:
                async with asyncio.timeout_at(None if wait_ms is None else wait_ms / 1000):
                    await self._updated.wait()
            except TimeoutError:
                continue

    def _take(self, kind: StepKind, records_max: int | None) -> Step:
        match kind:
            case StepKind.BATCH:
                return self.collector.next_batch()
            case StepKind.CHUNK:
                return self.collector.next_chunk(self._records_max)
            case StepKind.RECORDS:
                return self.collector.next_records(self._records_max if records_max is None else records_max)

    def _intercepted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for interceptor in self.interceptors:
            if hasattr(interceptor, "on_consume"):
                records = interceptor.on_consume(records)
        return records

    def _raise_failures(self) -> None:
        if self._is_woken:
            self._is_woken = False
            raise WakeupError
        for failures in (
            self.resolver.failures,
            self.fetcher.failures,
            self.group.failures if self.group is not None else (),
        ):
            if failures:
                error: Exception = failures.popleft()
                raise error

    async def _advance_group(self) -> PendingCallback | None:
        """Tell the machine that the user polls, and do what it wants of the user."""
        if self.committer is not None:
            self.committer.maybe_commit()
        group = self.group
        if group is None or self.subscribed is None:
            return None
        group.poll()
        while True:
            while self._rebalance_steps:
                entry = self._rebalance_steps.popleft()
                if isinstance(entry, PendingCallback):
                    return entry
                waiting = entry()
                if waiting is not None:
                    await waiting
            if not group.rebalance_effects:
                return None
            self._queue_rebalance_steps(group.rebalance_effects.popleft())

    def _queue_rebalance_steps(self, effect: PrepareJoin | ApplyAssignment) -> None:
        """What happens between two steps of a rebalance, in order."""
        group, listener = self.group, self._listener
        assert group is not None
        if isinstance(effect, PrepareJoin):
            if effect.lost:
                self._queue_callback(listener.on_lost or listener.on_revoked, effect.lost)
            elif self.committer is not None:
                self._rebalance_steps.append(self.committer.commit_before_rebalance)
            self._queue_callback(listener.on_revoked, effect.revoked)
            gone = effect.lost or effect.revoked
            self._rebalance_steps.append(
                lambda: self._set_partitions([p for p in self.positions.states if p not in gone])
            )
            self._rebalance_steps.append(lambda: group.step(JoinPrepared()))
            return
        if effect.revoked and self.committer is not None:
            self._rebalance_steps.append(self.committer.commit_before_rebalance)
        self._queue_callback(listener.on_revoked, effect.revoked)
        self._rebalance_steps.append(lambda: self._set_partitions(effect.assigned))
        self._queue_callback(listener.on_assigned, effect.added, always=True)  # also of nothing: the rebalance is over
        self._rebalance_steps.append(lambda: group.step(AssignmentApplied()))

    def _queue_callback(
        self, function: RebalanceCallback | None, partitions: Sequence[TopicPartition], *, always: bool = False
    ) -> None:
        if function is not None and (partitions or always):
            self._rebalance_steps.append(PendingCallback(function, list(partitions)))

    def _set_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """From now on these partitions and no others."""
        wanted = dict.fromkeys(partitions)
        for partition in list(self.positions.states):
            if partition not in wanted:
                self.collector.discard(partition)
        self.positions.replace(wanted)
        self.core.track_topics(dict.fromkeys(partition.topic for partition in wanted))

    # What is read

    def subscribe(self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener) -> None:
        if self.group is None:
            raise ConfigError("subscribe needs group.id; without a group, assign partitions.")
        if self.subscribed is None and self.positions.states:
            raise ValueError("partitions were assigned: unsubscribe before subscribing")
        self._listener = listener
        if isinstance(topics, re.Pattern):
            self._pattern = topics
            self.core.track_all_topics()
            self.core.request_update()
            self._follow(self._matching_topics(self.core.cluster))
            return
        if isinstance(topics, str):
            raise TypeError("topics must be a list of names, or a compiled pattern")
        self._pattern = None
        self.core.track_all_topics(False)
        names = tuple(sorted(dict.fromkeys(topics)))
        self.core.track_topics(names)
        if any(name not in self.core.cluster.topics for name in names):
            self.core.request_update()
        self._follow(names)

    def _follow(self, names: tuple[str, ...]) -> None:
        assert self.group is not None
        self.subscribed = names
        self.group.step(Subscribed(names))
        self.notify()

    def _matching_topics(self, cluster: ClusterMetadata) -> tuple[str, ...]:
        pattern = self._pattern
        assert pattern is not None
        hides_internal = self.config["exclude.internal.topics"]
        return tuple(
            sorted(
                name
                for name, topic in cluster.topics.items()
                if pattern.fullmatch(name) and not (hides_internal and topic.is_internal)
            )
        )

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        if self.subscribed is None:
            return
        if self._pattern is not None:
            names = self._matching_topics(cluster)
            if names != self.subscribed:
                self._follow(names)
        elif any(name not in cluster.topics for name in self.subscribed):
            # It may be made any moment: whoever subscribed to it waits for that.
            self._missing_topic_checks += 1
            self.core.loop.call_later(
                self.core.retry_backoff.delay_ms(self._missing_topic_checks) / 1000, self.core.request_update
            )
        else:
            self._missing_topic_checks = 0

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self.subscribed is not None:
            raise ValueError("topics are subscribed to: unsubscribe before assigning partitions")
        wanted = sorted(TopicPartition(*partition) for partition in partitions)
        self._set_partitions(wanted)
        if any(partition.topic not in self.core.cluster.topics for partition in wanted):
            self.core.request_update()
        self.notify()

    async def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        self.collector.sync_position()
        if self.subscribed is not None and self.group is not None:
            if self.committer is not None:
                await self.committer.commit_before_rebalance()
            await self.group.leave("the consumer unsubscribed")
        self._rebalance_steps.clear()
        self._set_partitions(())
        self.subscribed = None
        self._pattern = None
        self.core.track_all_topics(False)

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        self.collector.sync_position()
        return self.positions.consumed()

    # Places

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        if offset < 0:
            raise ValueError(f"an offset is not negative: {offset}")
        state = self.positions.require(partition)
        self.collector.discard(partition)
        state.seek(offset, leader_epoch)
        self.resolver.failures.clear()  # of places that were not found: whoever is still without one is told again
        self.notify()

    def seek_to_timestamp(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        """Look the place up, when it is next needed; also for the numbers that stand for an end of the log."""
        for partition in list(partitions) or list(self.positions.states):
            state = self.positions.require(partition)
            self.collector.discard(partition)
            state.request_reset(timestamp)
        self.resolver.failures.clear()
        self.resolver.maybe_start()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self.positions.require(partition)
            self.collector.pause(partition)
            state.is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.positions.require(partition).is_paused = False
            self.collector.resume(partition)
        self.fetcher.fetch()

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record; looked up where it is not known yet."""
        deadline_ms = self.core.now_ms() + (self.api_timeout_ms if timeout_ms is None else timeout_ms)
        while True:
            self.collector.sync_position()
            state = self.positions.require(partition)
            if state.offset is not None:
                return state.offset
            self._updated.clear()
            if self.resolver.failures:
                raise self.resolver.failures.popleft()
            self.resolver.maybe_start()
            try:
                async with asyncio.timeout_at(deadline_ms / 1000):
                    await self._updated.wait()
            except TimeoutError:
                raise ClientTimeoutError(f"The position of {partition} was not found in time.") from None

    def lag(self, partition: TopicPartition) -> int | None:
        """How far the end is away, as of the last fetch; None before the first."""
        self.collector.sync_position()
        return self.positions.require(partition).lag(read_committed=self.read_committed)

    async def offsets_at(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        async def attempt() -> dict[TopicPartition, FoundOffset]:
            return (await self.lookup.by_timestamp(wanted)).all_or_raise()

        if not wanted:
            return {}
        return await self.core.retrying(attempt, timeout_ms=self.api_timeout_ms, what="The lookup of offsets")

    async def ends(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = await self.offsets_at({TopicPartition(*partition): timestamp for partition in partitions})
        return {partition: each.offset for partition, each in found.items()}

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.ends(partitions, EARLIEST)

    async def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.ends(partitions, LATEST)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        if any(time < 0 for time in times.values()):
            raise ValueError("a time is not negative")
        found = await self.offsets_at(times)
        return {
            partition: None if each.offset < 0 else OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
            for partition, each in found.items()
        }

    def require_committer(self) -> OffsetCommitter:
        if self.committer is None:
            raise ConfigError("Committed offsets need group.id.")
        return self.committer

    def metrics(self) -> dict[str, float]:
        """Counters since the beginning, and what is the case now, by Kafka's names where it has them."""
        lags = self.positions.lags(read_committed=self.read_committed)
        return {
            "fetch-total": self.fetcher.fetches,
            "bytes-consumed-total": self.fetcher.fetched_bytes,
            "records-consumed-total": self.collector.records_returned,
            "buffered-bytes": self.fetcher.buffered_bytes,
            "records-lag-max": max(lags.values(), default=0),
            "assigned-partitions": len(self.positions.states),
            "rebalance-total": self.group.rebalances if self.group is not None else 0,
            "commit-total": self.committer.done if self.committer is not None else 0,
            **{f"records-lag:{partition}": lag for partition, lag in lags.items()},
        }

    # The end

    async def prepare_close(self) -> PendingCallback | None:
        """Commit what was read; then the user hears what it gives up."""
        self.collector.sync_position()
        if self.committer is not None:
            await self.committer.commit_before_rebalance()
        owned = list(self.positions.states) if self.subscribed is not None else []
        heard = self._listener.on_revoked
        return PendingCallback(heard, owned) if heard is not None and owned else None

    async def close(self, timeout_ms: float) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if self.committer is not None:
                    await self.committer.close()
                if self.group is not None and self.subscribed is not None:
                    await self.group.leave("the consumer was closed")
        except TimeoutError:
            self.subscribed = None
        self.positions.replace(())
        await self.fetcher.close()
        await self.resolver.close()
        if self.group is not None:
            await self.group.close()
        for interceptor in self.interceptors:
            if hasattr(interceptor, "close"):
                interceptor.close()
        await self.core.close()
        self.notify()
