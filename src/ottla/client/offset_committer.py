"""When offsets are committed: now and then by themselves, before partitions are given up, and when the user says so."""

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
GROUP_MOVED_ON_ERRORS = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
)
BEFORE_REBALANCE_MS_MAX = 5_000
"""A commit before a rebalance must not cost the member its place."""


class OffsetCommitter:
    """`consumed` gives what there is to commit."""

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
        self.done = 0

    def maybe_commit(self) -> None:
        """If it is time: what was handed out before this poll, without waiting for it."""
        if self.due_ms is None or self._core.now_ms() < self.due_ms:
            return
        self.due_ms = self._core.now_ms() + self._interval_ms
        news = self._uncommitted()
        if news and self._running_commit is None:
            task = self._running_commit = self._core.loop.create_task(self._commit_quietly(news))
            task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._running_commit = None
        if not task.cancelled():
            task.result()

    def _uncommitted(self) -> Offsets:
        """What changed since the last commit."""
        return {
            partition: offset for partition, offset in self._consumed().items() if self._last.get(partition) != offset
        }

    async def _commit_quietly(self, offsets: Offsets) -> None:
        """Once: what fails is committed with the next one, or was another's already."""
        try:
            await self._commit(offsets)
        except ClientError:
            self.due_ms = self._core.now_ms() + min(self._interval_ms, self._core.retry_backoff.delay_ms(1))

    async def _commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        member = self._group.member
        if member.topics and not member.is_member:
            # A group without members would take it from anybody: but this one's partitions may be another's a moment
            # later.
            raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID)
        await self._offsets.commit(offsets, self._group.group_metadata)
        self.done += 1
        self._last.update(offsets)
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_commit"):
                interceptor.on_commit(dict(offsets))

    async def commit_before_rebalance(self) -> None:
        """The last chance for what was read: tried for a moment, if commits are automatic."""
        if self._running_commit is not None:
            await asyncio.wait((self._running_commit,))
        news = self._uncommitted() if self.is_automatic else {}
        if not news:
            return
        self.due_ms = self._core.now_ms() + self._interval_ms
        try:
            await self._core.retrying(
                lambda: self._commit(news),
                timeout_ms=min(self._timeout_ms, BEFORE_REBALANCE_MS_MAX),
                what="The commit before a rebalance",
            )
        except ClientError:
            return  # the group decides who reads on from where: what was read twice is read twice

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """What was handed out, or these offsets; until it is done, or CommitFailedError where the group has gone on
        without this member.
        """
        wanted = self._consumed() if offsets is None else _offsets(offsets)
        if not wanted:
            return
        try:
            await self._core.retrying(lambda: self._commit(wanted), timeout_ms=self._timeout_ms, what="The commit")
        except ClientError as error:
            raise self._translate_error(error) from error

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None,
        callback: Callable[[Offsets, ClientError | None], Any] | None,
    ) -> None:
        """Begin a commit.

        The callback hears how it ended; one that failed is not tried again, as a later one may have come first.
        """
        wanted = self._consumed() if offsets is None else _offsets(offsets)
        if not wanted:
            return

        async def work() -> None:
            failure: ClientError | None = None
            try:
                await self._commit(wanted)
            except ClientError as error:
                failure = self._translate_error(error)
            if callback is not None:
                callback(dict(wanted), failure)

        task = self._core.loop.create_task(work())
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _translate_error(self, error: ClientError) -> ClientError:
        if error.code in GROUP_MOVED_ON_ERRORS:
            return CommitFailedError(error.code)
        if error.code == ErrorCode.FENCED_INSTANCE_ID:
            return FencedInstanceIdError(self._group.member.settings.instance_id)
        return error

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        found = await self._core.retrying(
            lambda: self._offsets.fetch(partitions), timeout_ms=self._timeout_ms, what="The lookup of committed offsets"
        )
        return {partition: found.get(partition) for partition in partitions}

    async def close(self) -> None:
        """Until commits that were begun have ended."""
        waiting = [*self._tasks, *([self._running_commit] if self._running_commit is not None else [])]
        if waiting:
            await asyncio.wait(waiting)


def _offsets(given: Mapping[TopicPartition, OffsetAndMetadata | int]) -> Offsets:
    """Plain numbers stand for offsets without metadata."""
    return {
        TopicPartition(*partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in given.items()
    }
