"""Offset commits: automatic, before rebalances, and on request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client.cluster_client import ClusterClient
from ottla.client.config import Config
from ottla.client.errors import ClientError, CommitFailedError, FencedInstanceIdError
from ottla.client.group_driver import GroupDriver
from ottla.client.group_offsets import GroupOffsetsClient
from ottla.client.records import OffsetAndMetadata, TopicPartition

Offsets = dict[TopicPartition, OffsetAndMetadata]
STALE_MEMBER_ERRORS = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
)
BEFORE_REBALANCE_MS_MAX = 5_000
"""A longer commit could cost the member its membership."""


class OffsetCommitter:
    """Commits the offsets that `consumed` returns."""

    def __init__(
        self,
        core: ClusterClient,
        offsets: GroupOffsetsClient,
        group: GroupDriver,
        consumed: Callable[[], Offsets],
        config: Config,
        interceptors: Sequence[Any],
    ) -> None:
        self._core = core
        self._offsets = offsets
        self._group = group
        self._consumed = consumed
        self._interceptors = interceptors
        self.is_automatic: bool = config["enable.auto.commit"]
        self._interval_ms: float = config["auto.commit.interval.ms"]
        self._timeout_ms: float = config["default.api.timeout.ms"]
        self.due_ms: float | None = core.now_ms() + self._interval_ms if self.is_automatic else None
        self._last: Offsets = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._running_commit: asyncio.Task[None] | None = None
        self.commit_count = 0

    def maybe_commit(self) -> None:
        """If an automatic commit is due, commit what was returned before this poll, without waiting."""
        if self.due_ms is None or self._core.now_ms() < self.due_ms:
            return
        self.due_ms = self._core.now_ms() + self._interval_ms
        offsets = self._uncommitted()
        if offsets and self._running_commit is None:
            task = self._running_commit = self._core.loop.create_task(self._commit_quietly(offsets))
            task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._running_commit = None
        if not task.cancelled():
            task.result()

    def _uncommitted(self) -> Offsets:
        """Return the offsets that changed since the last commit."""
        return {
            partition: offset for partition, offset in self._consumed().items() if self._last.get(partition) != offset
        }

    async def _commit_quietly(self, offsets: Offsets) -> None:
        """Commit once. After a failure the next automatic commit covers the offsets, or the partitions moved anyway."""
        try:
            await self._commit(offsets)
        except ClientError:
            self.due_ms = self._core.now_ms() + min(self._interval_ms, self._core.retry_backoff.delay_ms(1))

    async def _commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        member = self._group.member
        if member.topics and not member.is_member:
            # An empty group accepts commits from non-members, but another member may own these partitions a moment
            # later.
            raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID)
        await self._offsets.commit(offsets, self._group.group_metadata)
        self.commit_count += 1
        self._last.update(offsets)
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_commit"):
                interceptor.on_commit(dict(offsets))

    async def commit_before_rebalance(self) -> None:
        """Commit before partitions are revoked, if automatic commits are enabled. Retries briefly."""
        if self._running_commit is not None:
            await asyncio.wait((self._running_commit,))
        offsets = self._uncommitted() if self.is_automatic else {}
        if not offsets:
            return
        self.due_ms = self._core.now_ms() + self._interval_ms
        try:
            await self._core.retrying(
                lambda: self._commit(offsets),
                timeout_ms=min(self._timeout_ms, BEFORE_REBALANCE_MS_MAX),
                what="Committing offsets before a rebalance",
            )
        except ClientError:
            return  # the next owner reads the uncommitted records again

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit these offsets, or those of all returned records.

        Raises CommitFailedError if the member left the group.
        """
        to_commit = self._consumed() if offsets is None else _as_offsets(offsets)
        if not to_commit:
            return
        try:
            await self._core.retrying(
                lambda: self._commit(to_commit), timeout_ms=self._timeout_ms, what="Committing offsets"
            )
        except ClientError as error:
            raise self._translate_error(error) from error

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None,
        callback: Callable[[Offsets, ClientError | None], Any] | None,
    ) -> None:
        """Start a commit and call `callback` with its outcome.

        A failed commit is not retried: a later one may already have succeeded.
        """
        to_commit = self._consumed() if offsets is None else _as_offsets(offsets)
        if not to_commit:
            return

        async def work() -> None:
            failure: ClientError | None = None
            try:
                await self._commit(to_commit)
            except ClientError as error:
                failure = self._translate_error(error)
            if callback is not None:
                callback(dict(to_commit), failure)

        task = self._core.loop.create_task(work())
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _translate_error(self, error: ClientError) -> ClientError:
        if error.code in STALE_MEMBER_ERRORS:
            return CommitFailedError(error.code)
        if error.code == ErrorCode.FENCED_INSTANCE_ID:
            return FencedInstanceIdError(self._group.member.settings.instance_id)
        return error

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        found = await self._core.retrying(
            lambda: self._offsets.fetch(partitions), timeout_ms=self._timeout_ms, what="Fetching committed offsets"
        )
        return {partition: found.get(partition) for partition in partitions}

    async def close(self) -> None:
        """Wait for commits that were started."""
        waiting = [*self._tasks, *([self._running_commit] if self._running_commit is not None else [])]
        if waiting:
            await asyncio.wait(waiting)


def _as_offsets(given: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Offsets:
    """Return the offsets; plain numbers become offsets without metadata."""
    return {
        TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in given.items()
    }
