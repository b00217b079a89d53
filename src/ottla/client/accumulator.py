"""Where records wait to be sent: each is encoded straight into the open batch of its partition by whoever sends it.

The sending threads and the event loop's thread meet here, under one lock: senders append, the loop closes batches and takes them. The
memory of unfinished batches is bounded by `buffer.memory`.
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
from ottla.client.partitioner import KeyHashes
from ottla.client.producer_config import ProducerSettings
from ottla.client.records import HeaderPairs
from ottla.client.send_future import SendFuture
from ottla.wire.batches import RECORDS_AT, decode_records
from ottla.wire.varint import varint, varlong

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ottla.wire.column_encoding import EncodedBatch

RECORD_OVERHEAD_MAX = 36
"""What a record takes beside key, value and headers: lengths, times and counts, each as long as it can be."""
TABLE_SIZE = 1 << 13
"""Numbers below this take at most two bytes; nearly all lengths and deltas are."""
RATIO_WORSE, RATIO_BETTER = 0.05, 0.005
"""How fast the expected compression follows what is seen: doubts come faster than trust."""


@cache
def small_varints() -> tuple[bytes, ...]:
    """Encoded numbers; made with the first producer, in two milliseconds."""
    return tuple([varint(number) for number in range(TABLE_SIZE)])


class PartitionQueue:
    """The batches of one partition: `batches` wait (the last may be `open`), `in_flight` are on their way, both in order."""

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
        """How many of the waiting batches were sent before: while there are some, one at a time is under way, to keep the order."""
        self.producer_id = -1
        self.epoch = -1
        self.next_sequence = 0
        self.needs_reset = False
        """A sequence was lost: go on with the next epoch, from 0."""


class TopicRoute:
    """A topic as senders see it: how many partitions, and which one records without a key go to now."""

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
    """`try_send` from any thread; the rest from the loop's. `wake` tells the sender that there is something new."""

    def __init__(
        self, settings: ProducerSettings, clock: Clock, rng: Rng, lock: "AbstractContextManager[Any]", now_ms: Callable[[], float],
        wake: Callable[[], None], future: type[SendFuture],
    ) -> None:  # fmt: skip
        self.settings = settings
        self.lock = lock
        self.routes: dict[str, TopicRoute] = {}
        self.active: dict[PartitionQueue, None] = {}
        """The queues that have batches waiting or in flight."""
        self.incomplete: dict[ProducerBatch, None] = {}
        self.memory_used = 0
        self.is_out_of_memory = False
        """Somebody waits for memory: everything is to be sent at once."""
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

    # What the loop tells

    def update_topic(self, info: TopicInfo) -> None:
        """Take in what is known of a topic now."""
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
        """The topic is gone: who sends to it waits for it to come back. What waits already expires in time."""
        self.routes.pop(topic, None)

    # What senders do

    def try_send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp: int | None,
        headers: HeaderPairs | None,
    ) -> SendFuture | None:
        """The future of a record that is in its batch now; None where its topic, or memory for it, must be waited for first.

        Straight-line, with a table instead of calls: this is most of what a send costs.
        """
        route = self.routes.get(topic)
        if route is None:
            return None
        if timestamp is None:
            timestamp = self.now_wall_ms()
        if partition is not None:
            if not 0 <= partition < route.count:
                if partition < 0:
                    raise ValueError(f"partitions are numbered from 0, so {partition} is none")
                return None  # it may have been added since
        elif self._partitioner is not None:
            partition = self._partitioner(topic, key, value, route.count)
            if not 0 <= partition < route.count:
                raise ValueError(f"the partitioner chose {partition} of {route.count} partitions")
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
            size = (
                1
                + len(times)
                + len(offset)
                + len(key_length)
                + len(key_bytes)
                + len(value_length)
                + len(value)
                + len(tail)
            )
            length = varints[size] if size < TABLE_SIZE else varint(size)
            batch.buffer += b"".join((length, b"\0", times, offset, key_length, key_bytes, value_length, value, tail))
            batch.count = index + 1
            if timestamp > batch.max_timestamp:
                batch.max_timestamp = timestamp
        return self._future(batch, index, timestamp, key_size, value_size)

    def _new_batch(
        self, route: TopicRoute, queue: PartitionQueue, is_sticky: bool, timestamp: int, estimate: int
    ) -> ProducerBatch | None:
        """Close the open batch and begin another, in the next partition where it is time to change; None where memory is short."""
        settings = self.settings
        if RECORDS_AT + estimate > settings.request_size_max:
            raise RecordTooLargeError(
                f"A record of {estimate} bytes is larger than max.request.size, {settings.request_size_max}."
            )
        if timestamp < 0:
            raise ValueError(f"a timestamp is milliseconds since 1970, not {timestamp}")
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
        """Queue a batch that was encoded elsewhere, behind what waits; None where its topic, or memory for it, must be waited for first."""
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
            batch.buffer = encoded.buffer  # type: ignore[assignment]  # a view; nothing is appended to a batch that was never open
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
        """Partitions for rows without a key, whose bytes are added up in `running`: one after another, each for about a batch."""
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
        """Choose where records without a key go next, evenly among the partitions that have a leader."""
        available = route.available
        route.sticky = available[self._rng.below(len(available))] if len(available) > 1 else available[0]
        route.sticky_bytes = 0

    # What the sender does

    def finish(self, batch: ProducerBatch) -> None:
        """The outcome of a batch is known: its memory is free again."""
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
        """Call it after memory was freed."""
        with self.lock:
            self.memory_waiters.append(callback)

    def update_compression_ratio(self, topic: str, before: int, after: int) -> None:
        """How well records of a topic are compressed decides how many are put into a batch."""
        route = self.routes.get(topic)
        if route is not None and before:
            seen = after / before
            if seen > route.ratio:
                route.ratio = min(max(route.ratio + RATIO_WORSE, seen), 1.0)
            else:
                route.ratio = max(route.ratio - RATIO_BETTER, seen, 0.05)

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """The records of a batch that was too large, in batches of at most half its size."""
        route = self.routes.get(batch.topic)
        if route is not None:
            route.ratio = 1.0  # it was trusted too much
        records = decode_records(batch.buffer)
        sizes = [RECORD_OVERHEAD_MAX + len(record.key or b"") + len(record.value or b"") for record in records]
        target = max(sum(sizes) // 2, *sizes)
        parts: list[ProducerBatch] = []
        room = 0
        for record, size in zip(records, sizes, strict=True):
            if room < size or not parts:
                where = (batch.topic, batch.partition, (*batch.serial, len(parts)))
                parts.append(ProducerBatch(*where, target, 0, batch.created_ms, record.timestamp, self.lock))
                room = target
            room -= size
            part = parts[-1]
            body = b"".join(
                (b"\0", varlong(record.timestamp - part.base_timestamp), varint(part.count), _bytes(record.key), _bytes(record.value),
                 encode_headers(record.headers))
            )  # fmt: skip
            part.buffer += varint(len(body)) + body
            part.count += 1
            part.max_timestamp = max(part.max_timestamp, record.timestamp)
        parts[0].reserved = batch.reserved  # the memory is the same
        with self.lock:
            for part in parts:
                self.incomplete[part] = None
            self.incomplete.pop(batch, None)
        batch.set_parts(parts)
        return parts


def _bytes(data: bytes | None) -> bytes:
    return b"\1" if data is None else varint(len(data)) + data


def encode_headers(headers: HeaderPairs) -> bytes:
    """Their count and what they are; text becomes UTF-8."""
    encoded = [varint(len(headers))]
    for name, content in headers:
        key = name.encode()
        encoded += (varint(len(key)), key, _bytes(content.encode() if isinstance(content, str) else content))
    return b"".join(encoded)
