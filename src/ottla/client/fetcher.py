"""Prefetching: one fetch in flight per broker, and a few responses buffered for the consumer.

The next responses arrive while the user processes one. Memory is limited by the buffered responses of each broker, each
up to `fetch.max.bytes` (or one batch, if that is larger).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from struct import Struct
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ports import Buffer
from ottla.client.cluster_client import ClusterClient
from ottla.client.cluster_metadata import Node
from ottla.client.errors import STALE_METADATA, BrokerError, ClientClosedError, ClientError, broker_error, error_code
from ottla.client.fetch_session import FetchSessionHandler, FetchTarget
from ottla.client.positions import NO_REPLICA, Positions
from ottla.client.records import TopicPartition
from ottla.wire.batches import HEADER, LENGTH_AT, LENGTH_OVERHEAD, RECORDS_AT
from ottla.wire.messages.fetch import FetchResponse, PartitionData

BUFFERED_RESPONSES_MAX = 2
"""Per broker: the next one, and one that arrived after it."""
READ_COMMITTED = 1
FETCH_PURPOSE = "fetch"
"""Fetches wait at the broker, so they have their own connection."""

_read_length = Struct(">i").unpack_from

_RETRIABLE_ERRORS = frozenset(
    (
        *STALE_METADATA,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
)


class CompletedFetch(NamedTuple):
    """Records of one partition in a fetch response."""

    partition: TopicPartition
    seek_id: int
    fetch_offset: int
    records: Buffer
    aborted: tuple[tuple[int, int], ...]


class FetchResult(NamedTuple):
    node: int
    parts: list[CompletedFetch]


class Fetcher:
    """Sends fetches and buffers `results`. Calls `on_update` after each result or failure."""

    def __init__(
        self,
        core: ClusterClient,
        config: Mapping[str, Any],
        positions: Positions,
        on_update: Callable[[], None],
        reset: Callable[[TopicPartition], None],
    ) -> None:
        self._core = core
        self._positions = positions
        self._on_update = on_update
        self._reset = reset
        """Called when an offset is out of range."""
        self._bytes_max: int = config["fetch.max.bytes"]
        self._partition_bytes_max: int = config["max.partition.fetch.bytes"]
        self._min_bytes: int = config["fetch.min.bytes"]
        self._wait_ms: int = config["fetch.max.wait.ms"]
        self._rack: str = config["client.rack"] or ""
        self._isolation = READ_COMMITTED if config["isolation.level"] == "read_committed" else 0
        self._replica_age_ms: float = config["metadata.max.age.ms"]
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._in_flight: dict[int, asyncio.Task[None]] = {}
        self._buffered_counts: dict[int, int] = {}
        self._retry_at_ms: dict[int, float] = {}
        self._failure_counts: dict[int, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._leader_lookups, self._next_leader_lookup_ms = 0, 0.0
        self.results: deque[FetchResult] = deque()
        self.failures: deque[Exception] = deque()
        self.fetches = self.fetched_bytes = 0
        core.update_callbacks.append(lambda cluster: self.fetch())

    @property
    def buffered_bytes(self) -> int:
        return sum(len(part.records) for result in self.results for part in result.parts)

    def take(self) -> FetchResult | None:
        """Return the next result, if any. This frees space for another fetch."""
        if not self.results:
            return None
        result = self.results.popleft()
        if result.node != NO_REPLICA:
            self._buffered_counts[result.node] -= 1
        self.fetch()
        return result

    def fetch(self) -> None:
        """Send a fetch to each broker with fetchable partitions, no fetch in flight and space in its buffer."""
        if self._core.is_closed:
            return
        now_ms, by_node, later_ms = self._core.now_ms(), self._fetch_targets(), None
        for node, targets in by_node.items():
            if node in self._in_flight or self._buffered_counts.get(node, 0) >= BUFFERED_RESPONSES_MAX:
                continue
            wait_ms = self._retry_at_ms.get(node, 0) - now_ms
            if wait_ms > 0:
                later_ms = wait_ms if later_ms is None else min(wait_ms, later_ms)
                continue
            seek_ids = {partition: self._positions.states[partition].seek_id for partition in targets}
            task = self._in_flight[node] = self._core.loop.create_task(self._fetch_from(node, targets, seek_ids))
            task.add_done_callback(partial(self._on_done, node))
        if later_ms is not None:
            self._fetch_later(later_ms)

    def _fetch_later(self, delay_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._core.loop.call_later(delay_ms / 1000 + 0.001, self.fetch)

    def _on_done(self, node: int, task: "asyncio.Task[None]") -> None:
        self._in_flight.pop(node, None)
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):  # a bug in this client: raise it from the next poll
            self._retry_at_ms[node] = self._core.now_ms() + self._core.retry_backoff.delay_ms(1)
            self._fail(failure)
        self.fetch()

    def _fetch_targets(self) -> dict[int, dict[TopicPartition, FetchTarget]]:
        """Return the fetchable partitions by broker."""
        found: dict[int, dict[TopicPartition, FetchTarget]] = {}
        now_ms, soonest_ms, is_leaderless = self._core.now_ms(), None, False
        topics = self._core.cluster.topics
        for partition, state in self._positions.states.items():
            if not state.is_fetchable:
                continue
            if state.retry_at_ms > now_ms:
                soonest_ms = min(soonest_ms or state.retry_at_ms, state.retry_at_ms)
                continue
            topic = topics.get(partition.topic)
            if topic is None or partition.partition >= len(topic.partitions):
                is_leaderless = True
                continue
            info = topic.partitions[partition.partition]
            node = info.leader
            if state.replica != NO_REPLICA:
                if state.replica_until_ms > now_ms and state.replica in self._core.cluster.nodes:
                    node = state.replica
                else:
                    state.replica = NO_REPLICA
            if node < 0:
                is_leaderless = True
                continue
            target = FetchTarget(topic.id, state.fetch_offset, info.leader_epoch, self._partition_bytes_max)
            found.setdefault(node, {})[partition] = target
        if is_leaderless:
            soonest_ms = min(soonest_ms or inf, self._request_leaders(now_ms))
        else:
            self._leader_lookups = 0
        if soonest_ms is not None:
            self._fetch_later(max(soonest_ms - now_ms, 0))
        return found

    def _request_leaders(self, now_ms: float) -> float:
        """Request a metadata update, with backoff, while partitions have no leader.

        Returns the time of the next request.
        """
        if now_ms >= self._next_leader_lookup_ms:
            self._leader_lookups += 1
            self._next_leader_lookup_ms = now_ms + self._core.retry_backoff.delay_ms(self._leader_lookups)
            self._core.request_update()
        return self._next_leader_lookup_ms

    async def _fetch_from(
        self, node: int, targets: dict[TopicPartition, FetchTarget], seek_ids: dict[TopicPartition, int]
    ) -> None:
        """Send one fetch.

        Results of partitions that were removed or sought meanwhile have an old seek id and are dropped.
        """
        session = self._sessions.setdefault(node, FetchSessionHandler())
        try:
            connection = await self._core.get_connection(node, purpose=FETCH_PURPOSE)
            wait_ms = connection.throttled_until_ms - self._core.now_ms()
            if wait_ms > 0:
                await asyncio.sleep(wait_ms / 1000)
            request = session.next_request(targets)
            request.max_wait_ms, request.min_bytes, request.max_bytes = self._wait_ms, self._min_bytes, self._bytes_max
            request.isolation_level, request.rack_id = self._isolation, self._rack
            response = await connection.call(
                request,
                FetchResponse,
                timeout_ms=self._core.request_timeout_ms + self._wait_ms,
                version_max=session.version_max,
            )
        except ClientClosedError:
            return
        except ClientError as error:
            session.handle_error()
            self._on_unreachable(node, targets, error)
            return
        except BaseException:
            session.handle_error()
            raise
        self._failure_counts.pop(node, None)
        self.fetches += 1
        if session.handle_response(response):
            self._on_response(node, response, targets, seek_ids)

    def _on_unreachable(self, node: int, targets: Mapping[TopicPartition, FetchTarget], error: ClientError) -> None:
        if not error.is_retriable:
            self._fail(error)
        tries = self._failure_counts[node] = self._failure_counts.get(node, 0) + 1
        self._retry_at_ms[node] = self._core.now_ms() + self._core.retry_backoff.delay_ms(tries)
        for partition in targets:
            state = self._positions.states.get(partition)
            if state is not None and state.replica == node:
                state.replica = NO_REPLICA
        self._core.request_update()

    def _fail(self, error: Exception) -> None:
        self.failures.append(error)
        self._on_update()

    def _on_response(
        self,
        node: int,
        response: FetchResponse,
        targets: Mapping[TopicPartition, FetchTarget],
        seek_ids: Mapping[TopicPartition, int],
    ) -> None:
        parts: list[CompletedFetch] = []
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        for topic in response.responses:
            name = topic.topic or self._core.cluster.topic_names.get(topic.topic_id, "")
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                state = self._positions.states.get(partition)
                if state is None or seek_ids.get(partition) != state.seek_id:
                    continue  # removed, or sought meanwhile
                if data.error_code:
                    self._on_error(node, partition, data, nodes)
                    continue
                part = self._complete_fetch(partition, data, targets[partition].fetch_offset)
                if part is not None:
                    parts.append(part)
        if parts:
            self._buffered_counts[node] = self._buffered_counts.get(node, 0) + 1
            self.results.append(FetchResult(node, parts))
            self._on_update()

    def _complete_fetch(
        self, partition: TopicPartition, data: PartitionData, fetch_offset: int
    ) -> CompletedFetch | None:
        state = self._positions.states[partition]
        state.high_watermark, state.last_stable_offset = data.high_watermark, data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.replica = data.preferred_read_replica
            state.replica_until_ms = self._core.now_ms() + self._replica_age_ms
        if not data.records:
            return None
        end = end_of_batches(data.records)
        if end is None:
            return None  # the first batch is incomplete: it exceeded the limit of this response
        self.fetched_bytes += len(data.records)
        next_offset, epoch = end
        state.fetch_offset, state.fetch_epoch = max(next_offset, fetch_offset), epoch
        aborted = tuple((each.producer_id, each.first_offset) for each in data.aborted_transactions or ())
        return CompletedFetch(partition, state.seek_id, fetch_offset, data.records, aborted)

    def _on_error(self, node: int, partition: TopicPartition, data: PartitionData, nodes: list[Node]) -> None:
        state = self._positions.states[partition]
        code = error_code(data.error_code)
        now_ms = self._core.now_ms()
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.replica == node:
                state.replica = NO_REPLICA  # a follower may lag: ask the leader
                return
            if state.fetch_offset == state.offset:
                self._reset(partition)
            # Otherwise return the buffered records first; the next fetch gets the same error.
            state.retry_at_ms = now_ms + self._core.retry_backoff.delay_ms(1)
            return
        if code in _RETRIABLE_ERRORS:
            state.retry_at_ms = now_ms + self._core.retry_backoff.delay_ms(1)
            state.replica = NO_REPLICA
            leader = data.current_leader
            if leader.leader_id >= 0 and self._core.cluster.set_leader(
                *partition, leader.leader_id, leader.leader_epoch, nodes
            ):
                state.retry_at_ms = 0.0
                for callback in list(self._core.update_callbacks):
                    callback(self._core.cluster)
            elif code in STALE_METADATA:
                self._core.request_update()
            return
        state.retry_at_ms = now_ms + self._core.retry_backoff.delay_ms(1)
        error: BrokerError = broker_error(
            data.error_code, about=f"fetching {partition} from offset {state.fetch_offset}"
        )
        self._fail(error)

    def requeue(self, parts: list[CompletedFetch]) -> None:
        """Return these next. They were held back while their partition was paused."""
        self.results.appendleft(FetchResult(NO_REPLICA, parts))
        self._on_update()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def end_of_batches(records: Buffer) -> tuple[int, int] | None:
    """Return the offset after the last complete batch and its leader epoch, or None if there is no complete batch."""
    position, end, last = 0, len(records), None
    while end - position >= RECORDS_AT:
        size = _read_length(records, position + LENGTH_AT)[0] + LENGTH_OVERHEAD
        if size < RECORDS_AT or position + size > end:
            break
        last = position
        position += size
    if last is None:
        return None
    base_offset, _, epoch, _, _, _, last_delta, *_ = HEADER.unpack_from(records, last)
    return base_offset + last_delta + 1, epoch
