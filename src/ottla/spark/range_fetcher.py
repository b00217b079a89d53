"""Fetches a range of one partition for a task: an event loop on its own thread prefetches while another thread decodes.

Uses the client's fetcher. Fetching stops at the end of the range; offsets that are out of range are reported.
"""

import asyncio
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Self

from ottla.base.errors import ErrorCode
from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import ClusterMetadata
from ottla.client.consumer_config import EARLIEST, consumer_config
from ottla.client.errors import ClientTimeoutError
from ottla.client.fetcher import CompletedFetch, Fetcher
from ottla.client.loop_thread import EventLoopThread
from ottla.client.offset_lookup import OffsetLookup
from ottla.client.positions import Positions
from ottla.client.real_ports import real_client_ports
from ottla.client.records import TopicPartition
from ottla.spark.ranges import OffsetRange

MISSING_SECONDS_MAX = 5.0
"""How long a topic may be unknown before it counts as deleted: a starting broker may not know it yet."""


RECORD_BYTES = 4096
SMALL_BYTES = 64 << 10


class OffsetsOutOfRange(Exception):
    """The requested offset does not exist.

    `log_start_offset` is the partition's first offset, or None if the offset is past the end.
    """

    def __init__(self, offset: int, log_start_offset: int | None) -> None:
        super().__init__(f"offset {offset} is out of range")
        self.offset = offset
        self.log_start_offset = log_start_offset


class TopicDeleted(Exception):
    """The topic was deleted, or deleted and recreated, after the read was planned."""


class RangeFetcher:
    """`responses()` yields fetch responses until the range is read. `seek` continues elsewhere after OffsetsOutOfRange.

    One response is always prefetched, so the decoding thread never waits for one that has arrived: waking another
    thread takes longer than decoding a hundred records.
    """

    def __init__(self, settings: Mapping[str, Any], offset_range: OffsetRange, *, wait_seconds_max: float) -> None:
        self._config = consumer_config(_for_range(settings, offset_range), {})
        self._partition = TopicPartition(offset_range.topic, offset_range.partition)
        self._range = offset_range
        self._wait_seconds_max = wait_seconds_max
        self._ready: SimpleQueue[CompletedFetch | Exception | None] = SimpleQueue()
        """Responses, then the error that ended fetching, or None at the end of the range."""
        self._has_ended = False
        self._loop_thread = EventLoopThread("ottla-fetch")
        try:
            self._loop_thread.run(self._start)
        except BaseException:
            self._loop_thread.close()
            raise

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._ports = real_client_ports(loop)
        self._core = ClusterClient(self._config, self._ports)
        self._positions = Positions()
        self._positions.replace([self._partition])
        self._state = self._positions.states[self._partition]
        self._state.seek(self._range.start)
        self._is_out_of_range = False
        self._missing_since_ms: float | None = None
        self._fetcher = Fetcher(self._core, self._config, self._positions, self._on_update, self._on_out_of_range)
        self._core.update_callbacks.append(self._on_metadata)
        self._core.track_topics([self._range.topic])
        self._core.request_update()

    def _on_update(self) -> None:
        if self._state.fetch_offset >= self._range.end:
            self._state.is_paused = True  # later records belong to another task
        self._deliver_next()

    def _on_metadata(self, cluster: ClusterMetadata) -> None:
        if cluster.errors.get(self._range.topic) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._missing_since_ms = None
        elif self._missing_since_ms is None:
            self._missing_since_ms = self._core.now_ms()
        self._deliver_next()

    @property
    def _is_topic_deleted(self) -> bool:
        since_ms = self._missing_since_ms
        return since_ms is not None and self._core.now_ms() - since_ms > MISSING_SECONDS_MAX * 1000

    def _on_out_of_range(self, partition: TopicPartition) -> None:
        self._is_out_of_range = True
        self._state.is_paused = True
        self._deliver_next()

    def responses(self) -> Iterator[CompletedFetch]:
        """Yield responses in order; the last may extend past the range.

        Raises ClientTimeoutError if no record arrives in time.
        """
        self._loop_thread.call_soon(self._deliver_next)
        while True:
            try:
                found = self._ready.get(timeout=self._wait_seconds_max)
            except Empty:
                raise ClientTimeoutError(
                    f"No record of {self._partition} from offset {self._state.fetch_offset} arrived within "
                    f"{self._wait_seconds_max:g} s (option kafkaConsumer.pollTimeoutMs)."
                ) from None
            if found is None:
                return
            if isinstance(found, Exception):
                raise found
            self._loop_thread.call_soon(self._deliver_next)
            yield found

    def _deliver_next(self) -> None:
        """Queue the next response if the queue is empty, or the reason why there is none. Runs on the loop."""
        if self._has_ended or not self._ready.empty():
            return
        state, fetcher = self._state, self._fetcher
        fetched = fetcher.take()
        if fetched is not None:
            if not fetcher.results:
                state.offset = state.fetch_offset  # so that out-of-range errors are reported immediately
            self._ready.put(fetched.parts[0])
        elif state.fetch_offset >= self._range.end:
            self._end(None)
        elif fetcher.failures:
            self._end(fetcher.failures.popleft())
        elif self._is_out_of_range:
            self._has_ended = True
            self._core.loop.create_task(self._find_log_start()).add_done_callback(self._on_log_start)
        elif self._is_topic_deleted:
            self._end(TopicDeleted())
        else:
            fetcher.fetch()

    def _end(self, error: Exception | None) -> None:
        self._has_ended = True
        self._ready.put(error)

    def _on_log_start(self, task: "asyncio.Task[OffsetsOutOfRange]") -> None:
        if not task.cancelled():
            failure = task.exception()
            self._ready.put(failure if isinstance(failure, Exception) else task.result())

    async def _find_log_start(self) -> OffsetsOutOfRange:
        """Look up the log start offset, to report which offsets are lost."""
        lookup = OffsetLookup(self._core, read_committed=False)

        async def attempt() -> int:
            found = (await lookup.by_timestamp({self._partition: EARLIEST})).all_or_raise()
            return found[self._partition].offset

        log_start_offset = await self._core.retrying(
            attempt, timeout_ms=self._wait_seconds_max * 1000, what="The lookup of offsets"
        )
        offset = self._state.fetch_offset
        return OffsetsOutOfRange(offset, log_start_offset if log_start_offset > offset else None)

    def seek(self, offset: int) -> None:
        """Continue at an offset after OffsetsOutOfRange."""

        async def seek() -> None:
            self._is_out_of_range = self._has_ended = False
            self._state.seek(offset)
            self._state.is_paused = offset >= self._range.end

        self._loop_thread.run(seek)

    def interrupt(self) -> None:
        """Unblock a thread waiting for a response; no more are needed."""
        self._ready.put(None)

    def close(self) -> None:
        async def end() -> None:
            self._positions.replace(())
            await self._fetcher.close()
            await self._core.close()

        try:
            self._loop_thread.run(end)
        finally:
            self._ports.workers.close()
            self._loop_thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def _for_range(settings: Mapping[str, Any], offset_range: OffsetRange) -> dict[str, Any]:
    """Reduce fetch sizes for small ranges: records after the range would be sent for nothing.

    Large records take more responses.
    """
    enough = max(offset_range.size * RECORD_BYTES, SMALL_BYTES)
    names = ("fetch.max.bytes", "max.partition.fetch.bytes")
    return {**settings, **{name: min(int(settings[name]), enough) for name in names if name in settings}}
