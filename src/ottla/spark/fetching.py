"""A task's fetching: an event loop on a thread of its own fetches a range of one partition ahead, while another thread decodes.

It is the client's fetcher, with a range in the place of a user's wishes: it stops where the range ends, and tells of offsets that are gone.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Self

from ottla.base.errors import ErrorCode
from ottla.client.background import Background
from ottla.client.cluster import Cluster
from ottla.client.cluster_client import ClusterClient
from ottla.client.consumer_config import EARLIEST, consumer_config
from ottla.client.errors import TimedOut
from ottla.client.fetcher import Fetched, Fetcher
from ottla.client.offset_lookup import OffsetLookup
from ottla.client.partitions import TopicPartition
from ottla.client.positions import Positions
from ottla.client.real_ports import real_client_ports
from ottla.spark.ranges import OffsetRange

MISSING_SECONDS_MAX = 5.0
"""So long a topic may be unknown before it counts as deleted: a broker that starts may know less than others."""


RECORD_BYTES = 4096
SMALL_BYTES = 64 << 10


class OffsetsGone(Exception):
    """The partition begins later than what was asked for: `beginning` is its first offset now, or None: the offset lies behind its end."""

    def __init__(self, offset: int, beginning: int | None) -> None:
        super().__init__(f"offset {offset} is gone")
        self.offset = offset
        self.beginning = beginning


class TopicGone(Exception):
    """The topic was deleted, or deleted and made again, since the read was planned."""


class RangeFetch:
    """`answers()` yields what was fetched until the range is read; `seek` goes on elsewhere after OffsetsGone."""

    def __init__(self, settings: Mapping[str, Any], wanted: OffsetRange, *, wait_seconds_max: float) -> None:
        self._config = consumer_config(_for_range(settings, wanted), {})
        self._partition = TopicPartition(wanted.topic, wanted.partition)
        self._range = wanted
        self._wait_seconds_max = wait_seconds_max
        self._background = Background("ottla-fetch")
        try:
            self._background.run(self._start())
        except BaseException:
            self._background.close()
            raise

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._ports = real_client_ports(loop)
        self._core = ClusterClient(self._config, self._ports)
        self._positions = Positions()
        self._positions.replace([self._partition])
        self._state = self._positions.states[self._partition]
        self._state.jump(self._range.start)
        self._news = asyncio.Event()
        self._is_out_of_range = False
        self._missing_since_ms: float | None = None
        self._core.watchers.append(self._on_metadata)
        self._core.watch([self._range.topic])
        self._fetcher = Fetcher(self._core, self._config, self._positions, self._on_news, self._on_out_of_range)
        self._core.ask_refresh()

    def _on_news(self) -> None:
        if self._state.fetch_offset >= self._range.end:
            self._state.is_paused = True      # what lies behind the range is another task's
        self._news.set()

    def _on_metadata(self, cluster: Cluster) -> None:
        if cluster.errors.get(self._range.topic) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._missing_since_ms = None
        elif self._missing_since_ms is None:
            self._missing_since_ms = self._core.now_ms()
        self._news.set()

    @property
    def _is_topic_gone(self) -> bool:
        since_ms = self._missing_since_ms
        return since_ms is not None and self._core.now_ms() - since_ms > MISSING_SECONDS_MAX * 1000

    def _on_out_of_range(self, partition: TopicPartition) -> None:
        self._is_out_of_range = True
        self._state.is_paused = True
        self._news.set()

    def answers(self) -> Iterator[Fetched]:
        """Answers in order; the last may reach beyond the range. TimedOut where no record comes for too long."""
        while (found := self._background.run(self._next())) is not None:
            yield found

    async def _next(self) -> Fetched | None:
        try:
            async with asyncio.timeout(self._wait_seconds_max):
                return await self._wait()
        except TimeoutError:
            raise TimedOut(f"No record of {self._partition} from offset {self._state.fetch_offset} came within "
                           f"{self._wait_seconds_max:g} s (option kafkaConsumer.pollTimeoutMs).") from None

    async def _wait(self) -> Fetched | None:
        state, fetcher = self._state, self._fetcher
        while True:
            self._news.clear()
            answer = fetcher.take()
            if answer is not None:
                part = answer.parts[0]
                assert state.offset is not None
                if not fetcher.answers:
                    state.offset = state.fetch_offset      # so that an offset that is gone is told at once
                return part
            if state.fetch_offset >= self._range.end:
                return None
            if fetcher.failures:
                raise fetcher.failures.popleft()
            if self._is_out_of_range:
                raise await self._describe_gap()
            if self._is_topic_gone:
                raise TopicGone
            fetcher.fetch()
            await self._news.wait()

    async def _describe_gap(self) -> OffsetsGone:
        """Where the partition begins now, to tell what was lost."""
        lookup = OffsetLookup(self._core, read_committed=False)

        async def attempt() -> int:
            found = (await lookup.by_timestamp({self._partition: EARLIEST})).all_or_raise()
            return found[self._partition].offset

        beginning = await self._core.retrying(attempt, timeout_ms=self._wait_seconds_max * 1000, what="The lookup of offsets")
        offset = self._state.fetch_offset
        return OffsetsGone(offset, beginning if beginning > offset else None)

    def seek(self, offset: int) -> None:
        """Go on there: offsets before it are gone."""

        async def jump() -> None:
            self._is_out_of_range = False
            self._state.jump(offset)
            self._state.is_paused = offset >= self._range.end

        self._background.run(jump())

    def close(self) -> None:
        async def end() -> None:
            self._positions.replace(())
            await self._fetcher.close()
            await self._core.close()

        try:
            self._background.run(end())
        finally:
            self._ports.workers.close()
            self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def _for_range(settings: Mapping[str, Any], wanted: OffsetRange) -> dict[str, Any]:
    """A few records do not need megabytes: what lies behind them would be sent and thrown away. Large records come in more answers."""
    enough = max(wanted.size * RECORD_BYTES, SMALL_BYTES)
    names = ("fetch.max.bytes", "max.partition.fetch.bytes")
    return {**settings, **{name: min(int(settings[name]), enough) for name in names if name in settings}}
