"""Finds missing positions and validates positions after leader changes.

A partition without a position starts at the group's committed offset, or where `auto.offset.reset` says.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import ClusterMetadata
from ottla.client.consumer_config import LATEST, ResetPolicy
from ottla.client.errors import (
    STALE_METADATA,
    ClientClosedError,
    ClientError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from ottla.client.offset_lookup import EpochEnd, OffsetLookup
from ottla.client.positions import Positions
from ottla.client.records import TopicPartition

if TYPE_CHECKING:
    from ottla.client.group_offsets import GroupOffsetsClient

NO_OFFSET = -1


class PositionResolver:
    """`maybe_start` starts the work in a task. Calls `on_update` after each change; errors go to `failures`."""

    def __init__(
        self,
        core: ClusterClient,
        positions: Positions,
        lookup: OffsetLookup,
        committed: "GroupOffsetsClient | None",
        policy: ResetPolicy,
        on_update: Callable[[], None],
    ) -> None:
        self._core = core
        self._positions = positions
        self._lookup = lookup
        self._committed = committed
        self._policy = policy
        self._on_update = on_update
        self._task: asyncio.Task[None] | None = None
        self.failures: deque[Exception] = deque()
        core.update_callbacks.append(self._on_metadata)

    def maybe_start(self) -> None:
        """Start resolving if any partition needs it."""
        if self._task is None and not self._core.is_closed and self._has_work():
            self._task = self._core.loop.create_task(self._run())
            self._task.add_done_callback(self._on_done)

    def _has_work(self) -> bool:
        positions = self._positions
        return bool(positions.without_position() or positions.awaiting_reset() or positions.awaiting_validation())

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):  # a bug in this client: raise it from the next poll
            self._fail(failure)

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        for partition, state in self._positions.states.items():
            topic = cluster.topics.get(partition.topic)
            if topic is not None and partition.partition < len(topic.partitions):
                state.on_leader_epoch(topic.partitions[partition.partition].leader_epoch)
        self.maybe_start()

    def reset(self, partition: TopicPartition) -> None:
        """Move an out-of-range position according to the reset policy, or report OffsetOutOfRangeError."""
        state = self._positions.require(partition)
        at = self._policy.at(self._core.ports.clock.now_ms())
        if at is None:
            self._fail(OffsetOutOfRangeError(partition, state.offset))
            return
        state.request_reset(at)
        self.maybe_start()

    def _fail(self, error: Exception) -> None:
        self.failures.append(error)
        self._on_update()

    async def _run(self) -> None:
        tries = 0
        while self._has_work() and not self._core.is_closed:
            try:
                failed = (
                    await self._fetch_committed() or await self._reset_positions() or await self._validate_positions()
                )
            except ClientClosedError:
                return
            except ClientError as error:
                failed = error
            self._on_update()
            if failed is None:
                tries = 0
                continue
            if not failed.is_retriable:
                self._fail(failed)
                return
            tries += 1
            if failed.code in STALE_METADATA:
                self._core.request_update()
            await asyncio.sleep(self._core.retry_backoff.delay_ms(tries) / 1000)

    async def _fetch_committed(self) -> ClientError | None:
        states = self._positions.states
        seek_ids = {partition: states[partition].seek_id for partition in self._positions.without_position()}
        if not seek_ids:
            return None
        found = {} if self._committed is None else await self._committed.fetch(list(seek_ids))
        at = self._policy.at(self._core.ports.clock.now_ms())
        without_offset = []
        for partition, seek_id in seek_ids.items():
            state = states.get(partition)
            if state is None or state.seek_id != seek_id:
                continue
            if partition in found:
                state.seek(found[partition].offset, found[partition].leader_epoch)
                topic = self._core.cluster.topics.get(partition.topic)
                if topic is not None and partition.partition < len(topic.partitions):
                    state.leader_epoch = -1
                    state.on_leader_epoch(topic.partitions[partition.partition].leader_epoch)
            elif at is None:
                without_offset.append(partition)
            else:
                state.request_reset(at)
        return NoOffsetForPartitionError(without_offset) if without_offset else None

    async def _reset_positions(self) -> ClientError | None:
        states = self._positions.states
        to_reset = self._positions.awaiting_reset()
        if not to_reset:
            return None
        seek_ids = {partition: states[partition].seek_id for partition in to_reset}
        outcome = await self._lookup.by_timestamp(to_reset)
        missing: dict[TopicPartition, int] = {}
        for partition, found in outcome.found.items():
            if found.offset == NO_OFFSET:
                missing[partition] = LATEST  # no record is that new: use the end
        if missing:
            ends = await self._lookup.by_timestamp(missing)
            outcome.found |= ends.found
            outcome.failed |= ends.failed
        for partition, found in outcome.found.items():
            state = states.get(partition)
            if state is not None and state.seek_id == seek_ids[partition] and found.offset != NO_OFFSET:
                state.seek(found.offset, found.leader_epoch)
        return _first(outcome.failed.values())

    async def _validate_positions(self) -> ClientError | None:
        states = self._positions.states
        to_validate = self._positions.awaiting_validation()
        if not to_validate:
            return None
        seek_ids = {partition: states[partition].seek_id for partition in to_validate}
        outcome = await self._lookup.ends_of_epochs({partition: states[partition].epoch for partition in to_validate})
        failed = list(outcome.failed.values())
        for partition, end in outcome.found.items():
            if partition in states and states[partition].seek_id == seek_ids[partition]:
                failure = self._apply_epoch_end(partition, end)
                if failure is not None:
                    failed.append(failure)
        for partition, error in outcome.failed.items():
            state = states.get(partition)
            if error.code == ErrorCode.UNSUPPORTED_VERSION and state is not None:
                state.is_awaiting_validation = False  # an old broker cannot validate
                failed.remove(error)
        return _first(failed)

    def _apply_epoch_end(self, partition: TopicPartition, end: EpochEnd) -> ClientError | None:
        state = self._positions.states[partition]
        offset = state.offset
        assert offset is not None
        if end.end_offset >= offset and end.end_offset != NO_OFFSET:
            state.is_awaiting_validation = False
            return None
        at = self._policy.at(self._core.ports.clock.now_ms())
        if at is None:
            state.is_awaiting_validation = False
            return LogTruncationError(partition, offset, end.end_offset)
        if end.end_offset == NO_OFFSET:
            state.request_reset(at)
        else:
            state.seek(end.end_offset, end.leader_epoch)
        return None

    async def close(self) -> None:
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))


def _first(errors: Iterable[ClientError]) -> ClientError | None:
    """Return a fatal error if there is one, else a retriable one."""
    found = sorted(errors, key=lambda error: error.is_retriable)
    return found[0] if found else None
