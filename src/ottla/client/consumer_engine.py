"""The event-loop side of both consumers: positions, fetching, group membership and commits.

A consumer calls `step`. It returns what was requested, None on timeout, or a PendingCallback: a rebalance callback that
the consumer calls in the user's thread or task before the next step.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ottla.base.ports import ClientPorts
from ottla.client.assignors import assignors_named
from ottla.client.cluster_client import ClusterClient
from ottla.client.column_batch import ColumnBatch
from ottla.client.config import Config
from ottla.client.consumer_config import EARLIEST, LATEST, reset_policy
from ottla.client.consumer_subscription import ConsumerSubscription, RebalanceCallback
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
)
from ottla.client.offset_committer import OffsetCommitter
from ottla.client.offset_lookup import FoundOffset, OffsetLookup
from ottla.client.position_resolver import PositionResolver
from ottla.client.positions import Positions
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition


class StepType(Enum):
    RECORDS = "records"
    CHUNK = "chunk"
    BATCH = "batch"


class PendingCallback(NamedTuple):
    """A user's callback to call before the next step."""

    function: RebalanceCallback
    partitions: list[TopicPartition]


Step = ColumnBatch | Chunk | list[ConsumerRecord] | PendingCallback | None


class ConsumerEngine:
    """Created inside a running loop. All methods run in that loop."""

    def __init__(self, config: Config, ports: ClientPorts) -> None:
        self.core = core = ClusterClient(config, ports, creates_topics=config["allow.auto.create.topics"])
        self.positions = positions = Positions()
        self.api_timeout_ms: float = config["default.api.timeout.ms"]
        self._read_committed: bool = config["isolation.level"] == "read_committed"
        self._lookup = OffsetLookup(core, read_committed=self._read_committed)
        self._interceptors: tuple[Any, ...] = tuple(config["interceptor.classes"] or ())
        self._records_max: int = config["max.poll.records"]
        self._updated = asyncio.Event()
        self._is_woken = False
        self._rebalance_steps: deque[PendingCallback | Callable[[], Awaitable[None] | None]] = deque()
        self.group: GroupDriver | None = None
        self._committer: OffsetCommitter | None = None
        offsets = None
        if config["group.id"] is not None:
            coordinators = CoordinatorFinder(core)
            offsets = GroupOffsetsClient(core, coordinators, config["group.id"], read_committed=self._read_committed)
            self.group = GroupDriver(core, coordinators, _member_settings(config), self.notify)
            self._committer = OffsetCommitter(core, offsets, self.group, self._consumed, config, self._interceptors)
        policy = reset_policy(config["auto.offset.reset"])
        self._resolver = PositionResolver(core, positions, self._lookup, offsets, policy, self.notify)
        self.fetcher = Fetcher(core, config, positions, self.notify, self._resolver.reset)
        self._collector = FetchCollector(
            self.fetcher,
            positions,
            read_committed=self._read_committed,
            check_crcs=config["check.crcs"],
            key=config["key.deserializer"],
            value=config["value.deserializer"],
            intercept=self._intercepted if self._interceptors else None,
        )
        self.subscription = ConsumerSubscription(
            core,
            positions,
            self.fetcher,
            self._collector,
            self._resolver,
            self.group,
            self.notify,
            excludes_internal=config["exclude.internal.topics"],
        )

    def notify(self) -> None:
        """Wake a waiting step."""
        self._updated.set()

    def wakeup(self) -> None:
        self._is_woken = True
        self._updated.set()

    # Steps

    async def step(self, kind: StepType, deadline_ms: float | None, records_max: int | None = None) -> Step:
        """Return what was requested, None on timeout, or a PendingCallback to call first."""
        while True:
            self._updated.clear()
            self._raise_failures()
            call = await self._advance_group()
            if call is not None:
                return call
            self._resolver.maybe_start()
            self.fetcher.fetch()
            found = self._take(kind, records_max)
            if found is not None and (found or not isinstance(found, list)):
                return found
            if self.core.is_closed:
                raise ClientClosedError("The consumer is closed.")
            now_ms = self.core.now_ms()
            if deadline_ms is not None and now_ms >= deadline_ms:
                return None
            until_ms = self._committer.due_ms if self._committer is not None else None
            wait_ms = min((at for at in (deadline_ms, until_ms) if at is not None), default=None)
            try:
                async with asyncio.timeout_at(None if wait_ms is None else wait_ms / 1000):
                    await self._updated.wait()
            except TimeoutError:
                continue

    def _take(self, kind: StepType, records_max: int | None) -> Step:
        match kind:
            case StepType.BATCH:
                return self._collector.next_batch()
            case StepType.CHUNK:
                return self._collector.next_chunk(self._records_max)
            case StepType.RECORDS:
                return self._collector.next_records(self._records_max if records_max is None else records_max)

    def _intercepted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_consume"):
                records = interceptor.on_consume(records)
        return records

    def _raise_failures(self) -> None:
        if self._is_woken:
            self._is_woken = False
            raise WakeupError
        for failures in (
            self._resolver.failures,
            self.fetcher.failures,
            self.group.failures if self.group is not None else (),
        ):
            if failures:
                error: Exception = failures.popleft()
                raise error

    # Rebalances

    async def _advance_group(self) -> PendingCallback | None:
        """Report the poll to the group membership and run pending rebalance steps, up to the next user callback."""
        if self._committer is not None:
            self._committer.maybe_commit()
        group = self.group
        if group is None or self.subscription.topics is None:
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
        """Queue the steps before a join, or after a sync, in order."""
        group, subscription = self.group, self.subscription
        listener = subscription.listener
        assert group is not None
        if isinstance(effect, PrepareJoin):
            if effect.lost:
                self._queue_callback(listener.on_lost or listener.on_revoked, effect.lost)
            elif self._committer is not None:
                self._rebalance_steps.append(self._committer.commit_before_rebalance)
            self._queue_callback(listener.on_revoked, effect.revoked)
            removed = effect.lost or effect.revoked
            self._rebalance_steps.append(
                lambda: subscription.set_partitions([p for p in self.positions.states if p not in removed])
            )
            self._rebalance_steps.append(lambda: group.step(JoinPrepared()))
            return
        if effect.revoked and self._committer is not None:
            self._rebalance_steps.append(self._committer.commit_before_rebalance)
        self._queue_callback(listener.on_revoked, effect.revoked)
        self._rebalance_steps.append(lambda: subscription.set_partitions(effect.assigned))
        # Also called without new partitions: the rebalance is over.
        self._queue_callback(listener.on_assigned, effect.added, always=True)
        self._rebalance_steps.append(lambda: group.step(AssignmentApplied()))

    def _queue_callback(
        self, function: RebalanceCallback | None, partitions: Sequence[TopicPartition], *, always: bool = False
    ) -> None:
        if function is not None and (partitions or always):
            self._rebalance_steps.append(PendingCallback(function, list(partitions)))

    async def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        self._collector.sync_position()
        if self.subscription.topics is not None and self.group is not None:
            if self._committer is not None:
                await self._committer.commit_before_rebalance()
            await self.group.leave("the consumer unsubscribed")
        self._rebalance_steps.clear()
        self.subscription.clear()

    # Offsets

    def _consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        self._collector.sync_position()
        return self.positions.consumed()

    def require_committer(self) -> OffsetCommitter:
        if self._committer is None:
            raise ConfigError("Committed offsets need group.id.")
        return self._committer

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """Return the offset of the next record, looking it up if necessary."""
        deadline_ms = self.core.now_ms() + (self.api_timeout_ms if timeout_ms is None else timeout_ms)
        while True:
            self._collector.sync_position()
            state = self.positions.require(partition)
            if state.offset is not None:
                return state.offset
            self._updated.clear()
            if self._resolver.failures:
                raise self._resolver.failures.popleft()
            self._resolver.maybe_start()
            try:
                async with asyncio.timeout_at(deadline_ms / 1000):
                    await self._updated.wait()
            except TimeoutError:
                reason = self.core.outages.latest
                raise ClientTimeoutError(
                    f"Looking up the position of {partition} timed out."
                    + ("" if reason is None else f" {reason.message}"),
                    advice=None if reason is None else reason.advice,
                ) from None

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets up to the end as of the last fetch, or None before the first fetch."""
        self._collector.sync_position()
        return self.positions.require(partition).lag(read_committed=self._read_committed)

    async def _offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        async def attempt() -> dict[TopicPartition, FoundOffset]:
            return (await self._lookup.by_timestamp(timestamps)).all_or_raise()

        if not timestamps:
            return {}
        return await self.core.retrying(attempt, timeout_ms=self.api_timeout_ms, what="Looking up offsets")

    async def _log_ends(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = await self._offsets_at({TopicPartition(*partition): timestamp for partition in partitions})
        return {partition: each.offset for partition, each in found.items()}

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._log_ends(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._log_ends(partitions, LATEST)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        for time in times.values():
            if time < 0:
                raise ValueError(f"timestamp must be >= 0, got {time}")
        found = await self._offsets_at(times)
        return {
            partition: None if each.offset < 0 else OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
            for partition, each in found.items()
        }

    def metrics(self) -> dict[str, float]:
        """Return counters and current values, with Kafka's names where Kafka has them."""
        lags = self.positions.lags(read_committed=self._read_committed)
        return {
            "fetch-total": self.fetcher.fetches,
            "bytes-consumed-total": self.fetcher.fetched_bytes,
            "records-consumed-total": self._collector.records_returned,
            "buffered-bytes": self.fetcher.buffered_bytes,
            "records-lag-max": max(lags.values(), default=0),
            "assigned-partitions": len(self.positions.states),
            "rebalance-total": self.group.rebalances if self.group is not None else 0,
            "commit-total": self._committer.commit_count if self._committer is not None else 0,
            **{f"records-lag:{partition}": lag for partition, lag in lags.items()},
        }

    # Closing

    async def prepare_close(self) -> PendingCallback | None:
        """Commit, and return the `on_revoked` callback to call, if any."""
        self._collector.sync_position()
        if self._committer is not None:
            await self._committer.commit_before_rebalance()
        owned = list(self.positions.states) if self.subscription.topics is not None else []
        on_revoked = self.subscription.listener.on_revoked
        return PendingCallback(on_revoked, owned) if on_revoked is not None and owned else None

    async def close(self, timeout_ms: float) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if self._committer is not None:
                    await self._committer.close()
                if self.group is not None and self.subscription.topics is not None:
                    await self.group.leave("the consumer was closed")
        except TimeoutError:
            self.subscription.topics = None
        self.positions.replace(())
        await self.fetcher.close()
        await self._resolver.close()
        if self.group is not None:
            await self.group.close()
        for interceptor in self._interceptors:
            if hasattr(interceptor, "close"):
                interceptor.close()
        await self.core.close()
        self.notify()


def _member_settings(config: Config) -> MemberSettings:
    given = config["partition.assignment.strategy"]
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    try:
        assignors = assignors_named(names)
    except ValueError as error:
        raise ConfigError(f"partition.assignment.strategy: {error}.") from None
    return MemberSettings(
        config["group.id"] or "",
        tuple(assignors),
        config["group.instance.id"],
        config["client.rack"] or None,
        config["session.timeout.ms"],
        config["max.poll.interval.ms"],
        config["heartbeat.interval.ms"],
        config["retry.backoff.ms"],
    )
