"""Records waiting to be sent. The sending thread encodes each record directly into the open batch of its partition.

Sending threads append and the event loop's thread takes batches, under one lock. `buffer.memory` limits the memory of
batches that are not done.
"""

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.base.ports import Clock, Rng
from ottla.client.batch import ProducerBatch
from ottla.client.cluster_metadata import TopicInfo
from ottla.client.errors import RecordTooLargeError
from ottla.client.partitioner import KeyHashes, Partitioner
from ottla.client.producer_config import ProducerSettings
from ottla.client.records import HeaderPairs
from ottla.client.send_future import SendFuture
from ottla.wire.batches import RECORDS_AT, decode_records
from ottla.wire.varint import varint, varlong

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ottla.wire.column_encoding import EncodedBatch

RECORD_OVERHEAD_MAX = 36
"""Upper limit of a record's bytes besides key, value and headers: lengths, timestamp and offset deltas, counts."""
TABLE_SIZE = 1 << 13
"""Varints precomputed for numbers below this, which take at most two bytes; nearly all lengths and deltas do."""
RATIO_WORSE, RATIO_BETTER = 0.05, 0.005
"""Steps of the expected compression ratio: it worsens faster than it improves, so that batches stay small enough."""


@cache
def small_varints() -> tuple[bytes, ...]:
    """Return the encoded numbers. Created with the first producer, in two milliseconds."""
    return tuple([varint(number) for number in range(TABLE_SIZE)])


class PartitionQueue:
    """Batches of one partition, in order: `batches` wait to be sent (the last may be `open`), `in_flight` are sent."""

    __slots__ = (
        "batches",
        "epoch",
        "in_flight",
        "needs_reset",
        "next_sequence",
        "open",
        "partition",
        "producer_id",
        "retrying",
        "topic",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        self.in_flight: list[ProducerBatch] = []
        self.retrying = 0
        """Number of waiting batches that were sent before.

        While there are any, one batch at a time is in flight, to keep order.
        """
        self.producer_id = -1
        self.epoch = -1
        self.next_sequence = 0
        self.needs_reset = False
        """A sequence number was lost: continue from sequence 0 in the next epoch."""


class TopicRoute:
    """Partitions of a topic, and the sticky partition of records without a key."""

    __slots__ = ("available", "count", "name", "queues", "ratio", "sticky", "sticky_bytes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.available: tuple[int, ...] = ()
        self.queues: list[PartitionQueue] = []
        self.ratio = 1.0
        self.sticky = 0
        self.sticky_bytes = 0


class RecordAccumulator:
    """`try_send` and `try_add` are thread-safe, the rest runs in the event loop. `wake` schedules the sender."""

    def __init__(
        self,
        settings: ProducerSettings,
        clock: Clock,
        rng: Rng,
        lock: "AbstractContextManager[Any]",
        now_ms: Callable[[], float],
        wake: Callable[[], None],
        future: type[SendFuture],
    ) -> None:
        self.settings = settings
        self.lock = lock
        self.routes: dict[str, TopicRoute] = {}
        self.active: dict[PartitionQueue, None] = {}
        """Queues with batches that wait or are in flight."""
        self.incomplete: dict[ProducerBatch, None] = {}
        self.memory_used = 0
        self.is_out_of_memory = False
        """A send waits for memory: send all batches without lingering."""
        self.memory_waiters: list[Callable[[], object]] = []
        self.now_wall_ms = clock.now_ms
        self._rng = rng
        self._now_ms = now_ms
        self._wake = wake
        self._future = future
        self._serial = 0
        self._hashes = KeyHashes()
        self._varints = small_varints()
        self._partitioner = settings.partitioner
        self._ignores_keys = settings.ignores_keys

    # Topics

    def update_topic(self, info: TopicInfo) -> None:
        """Apply new metadata of a topic."""
        route = self.routes.get(info.name)
        if route is None:
            route = TopicRoute(info.name)
        while len(route.queues) < len(info.partitions):
            route.queues.append(PartitionQueue(info.name, len(route.queues)))
        is_new = route.count == 0
        route.available = info.available or tuple(range(len(info.partitions)))
        route.count = len(info.partitions)
        if is_new and route.count:
            self._switch_sticky_partition(route)
            self.routes[info.name] = route

    def remove_topic(self, topic: str) -> None:
        """Remove a deleted topic. New sends wait for it to reappear; waiting batches expire."""
        self.routes.pop(topic, None)

    # Sending

    def try_send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp: int | None,
        headers: HeaderPairs | None,
    ) -> SendFuture | None:
        """Append a record to its batch. Returns None if the topic, or memory, must be waited for first.

        Longer than 50 lines, with table lookups instead of calls: this is most of the cost of a send, 0.7 µs, and one
        more call would add a tenth.
        """
        route = self.routes.get(topic)
        if route is None:
            return None
        if timestamp is None:
            timestamp = self.now_wall_ms()
        if partition is not None:
            if not 0 <= partition < route.count:
                if partition < 0:
                    raise ValueError(f"partition must be >= 0, got {partition}")
                return None  # metadata may not have this partition yet
        elif self._partitioner is not None:
            partition = _call_partitioner(self._partitioner, route, key, value)
        elif key is not None and not self._ignores_keys:
            partition = self._hashes.of(key) % route.count
        varints = self._varints
        if key is None:
            key_size, key_length, key_bytes = -1, b"\1", b""
        else:
            key_size, key_bytes = len(key), key
            key_length = varints[key_size] if key_size < TABLE_SIZE else varint(key_size)
        if value is None:
            value_size, value_length, value = -1, b"\1", b""
        else:
            value_size = len(value)
            value_length = varints[value_size] if value_size < TABLE_SIZE else varint(value_size)
        tail = encode_headers(headers) if headers else b"\0"
        estimate = RECORD_OVERHEAD_MAX + key_size + value_size + len(tail)
        with self.lock:
            queue = route.queues[route.sticky if partition is None else partition]
            batch = queue.open
            if batch is None or len(batch.buffer) + estimate > batch.limit:
                batch = self._new_batch(route, queue, partition is None, timestamp, estimate)
                if batch is None:
                    return None
            index = batch.count
            delta = timestamp - batch.base_timestamp
            times = varints[delta] if 0 <= delta < TABLE_SIZE else varlong(delta)
            offset = varints[index] if index < TABLE_SIZE else varint(index)
            body = b"".join((b"\0", times, offset, key_length, key_bytes, value_length, value, tail))
            size = len(body)
            batch.buffer += varints[size] if size < TABLE_SIZE else varint(size)
            batch.buffer += body
            batch.count = index + 1
            if timestamp > batch.max_timestamp:
                batch.max_timestamp = timestamp
        return self._future(batch, index, timestamp, key_size, value_size)

    def _new_batch(
        self, route: TopicRoute, queue: PartitionQueue, is_sticky: bool, timestamp: int, estimate: int
    ) -> ProducerBatch | None:
        """Close the open batch and create another, perhaps in the next sticky partition.

        Returns None if memory is short.
        """
        settings = self.settings
        if RECORDS_AT + estimate > settings.request_size_max:
            raise RecordTooLargeError(
                f"A record of {estimate} bytes is larger than max.request.size, {settings.request_size_max}."
            )
        if timestamp < 0:
            raise ValueError(f"timestamp must be milliseconds since 1970, got {timestamp}")
        if is_sticky and route.sticky_bytes >= settings.batch_size:
            self._switch_sticky_partition(route)
            queue = route.queues[route.sticky]
            if queue.open is not None and len(queue.open.buffer) + estimate <= queue.open.limit:
                return queue.open
        limit = min(int(settings.batch_size / route.ratio), settings.request_size_max)
        reserved = max(limit, RECORDS_AT + estimate)
        if self.memory_used + reserved > settings.buffer_memory:
            if reserved > settings.buffer_memory:
                raise RecordTooLargeError(
                    f"A record of {estimate} bytes is larger than buffer.memory, {settings.buffer_memory}."
                )
            self.is_out_of_memory = True
            self._wake()
            return None
        self.memory_used += reserved
        if is_sticky:
            route.sticky_bytes += limit
        batch = ProducerBatch(
            route.name, queue.partition, (self._serial,), limit, reserved, self._now_ms(), timestamp, self.lock
        )
        self._serial += 1
        queue.open = batch
        queue.batches.append(batch)
        self.active[queue] = None
        self.incomplete[batch] = None
        self._wake()
        return batch

    def try_add(self, topic: str, encoded: "EncodedBatch") -> ProducerBatch | None:
        """Queue an encoded batch. Returns None if its topic, or memory, must be waited for first."""
        with self.lock:
            route = self.routes.get(topic)
            if route is None or encoded.partition >= route.count:
                return None
            queue = route.queues[encoded.partition]
            size = len(encoded.buffer)
            if self.memory_used + size > self.settings.buffer_memory and self.memory_used:
                self.is_out_of_memory = True
                self._wake()
                return None
            self.memory_used += size
            batch = ProducerBatch(
                topic, encoded.partition, (self._serial,), size, size, self._now_ms(), encoded.base_timestamp, self.lock
            )
            batch.buffer = encoded.buffer  # type: ignore[assignment]  # a view: nothing is appended to it
            batch.count = encoded.count
            batch.max_timestamp = encoded.max_timestamp
            self._serial += 1
            queue.open = None
            queue.batches.append(batch)
            self.active[queue] = None
            self.incomplete[batch] = None
        self._wake()
        return batch

    def assign_unkeyed(self, route: TopicRoute, running: "NDArray[Any]") -> "NDArray[Any]":
        """Return partitions for rows without a key: each in turn for about a batch.

        `running` has the rows' cumulative bytes.
        """
        import numpy as np

        size = self.settings.batch_size
        with self.lock:
            available = route.available
            first = available.index(route.sticky) if route.sticky in available else 0
            runs = (running + route.sticky_bytes - 1) // size
            route.sticky = available[(first + int(runs[-1])) % len(available)]
            route.sticky_bytes = (int(running[-1]) + route.sticky_bytes) % size
        chosen: NDArray[Any] = np.array(available, np.int32)[(first + runs) % len(available)]
        return chosen

    def _switch_sticky_partition(self, route: TopicRoute) -> None:
        """Choose the next sticky partition, uniformly among the partitions that have a leader."""
        available = route.available
        route.sticky = available[self._rng.below(len(available))] if len(available) > 1 else available[0]
        route.sticky_bytes = 0

    # Outcomes

    def finish(self, batch: ProducerBatch) -> None:
        """Release the memory of a batch that is done."""
        with self.lock:
            if batch not in self.incomplete:
                return
            del self.incomplete[batch]
            self.memory_used -= batch.reserved
            waiting, self.memory_waiters = self.memory_waiters, []
            self.is_out_of_memory = False
        for each in waiting:
            each()

    def call_when_memory_free(self, callback: Callable[[], object]) -> None:
        """Call `callback` the next time memory is released."""
        with self.lock:
            self.memory_waiters.append(callback)

    def update_compression_ratio(self, topic: str, before: int, after: int) -> None:
        """Update the topic's expected compression ratio, which decides how many bytes of records a batch takes."""
        route = self.routes.get(topic)
        if route is not None and before:
            seen = after / before
            if seen > route.ratio:
                route.ratio = min(max(route.ratio + RATIO_WORSE, seen), 1.0)
            else:
                route.ratio = max(route.ratio - RATIO_BETTER, seen, 0.05)

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Split a batch that the broker rejected as too large into batches of at most half its size."""
        route = self.routes.get(batch.topic)
        if route is not None:
            route.ratio = 1.0  # the expected ratio was too good
        records = decode_records(batch.buffer)
        sizes = [RECORD_OVERHEAD_MAX + len(record.key or b"") + len(record.value or b"") for record in records]
        target = max(sum(sizes) // 2, *sizes)
        parts: list[ProducerBatch] = []
        space = 0
        for record, size in zip(records, sizes, strict=True):
            if space < size or not parts:
                where = (batch.topic, batch.partition, (*batch.serial, len(parts)))
                parts.append(ProducerBatch(*where, target, 0, batch.created_ms, record.timestamp, self.lock))
                space = target
            space -= size
            part = parts[-1]
            body = b"".join(
                (
                    b"\0",
                    varlong(record.timestamp - part.base_timestamp),
                    varint(part.count),
                    _bytes(record.key),
                    _bytes(record.value),
                    encode_headers(record.headers),
                )
            )
            part.buffer += varint(len(body)) + body
            part.count += 1
            part.max_timestamp = max(part.max_timestamp, record.timestamp)
        parts[0].reserved = batch.reserved  # the parts take over its memory
        with self.lock:
            for part in parts:
                self.incomplete[part] = None
            self.incomplete.pop(batch, None)
        batch.set_parts(parts)
        return parts


def _call_partitioner(partitioner: Partitioner, route: TopicRoute, key: bytes | None, value: bytes | None) -> int:
    partition = partitioner(route.name, key, value, route.count)
    if not 0 <= partition < route.count:
        raise ValueError(f"partitioner returned {partition}, but the topic has {route.count} partitions")
    return partition


def _bytes(data: bytes | None) -> bytes:
    return b"\1" if data is None else varint(len(data)) + data


def encode_headers(headers: HeaderPairs) -> bytes:
    """Encode the headers and their count; text becomes UTF-8."""
    encoded = [varint(len(headers))]
    for name, content in headers:
        key = name.encode()
        encoded += (varint(len(key)), key, _bytes(content.encode() if isinstance(content, str) else content))
    return b"".join(encoded)
