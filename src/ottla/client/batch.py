"""A batch on its way: records are encoded into it as they are sent, and its outcome is theirs.

The bytes are those that travel: room for the header first, then the records. Sealing fills in the header, compressing the records before.
"""

from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode
from ottla.client.errors import ClientError, broker_error
from ottla.client.record_metadata import RecordMetadata
from ottla.wire.batches import (
    HEADER,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORDS_AT,
    write_checksum,
)

NO_OFFSET = -1
F = TypeVar("F", bound="SendFuture")


class ProducerBatch:
    """Records of one partition. `lock` guards the list of those who wait for its outcome."""

    __slots__ = (
        "attempts", "base_offset", "base_timestamp", "buffer", "callbacks", "codec", "count", "created_ms", "epoch", "error", "is_done",
        "is_sealed", "limit", "lock", "log_append_ms", "max_timestamp", "retry_at_ms", "partition", "parts", "producer_id",
        "record_errors", "reserved", "sequence", "serial", "starts", "topic",
    )  # fmt: skip

    def __init__(
        self, topic: str, partition: int, serial: tuple[int, ...], limit: int, reserved: int, created_ms: float, timestamp: int,
        lock: "AbstractContextManager[Any]",
    ) -> None:  # fmt: skip
        self.topic = topic
        self.partition = partition
        self.serial = serial
        """Batches of a partition are sent in this order, however often. Parts of one that was split follow one another in its place."""
        self.limit = limit
        self.reserved = reserved
        self.created_ms = created_ms
        self.base_timestamp = timestamp
        self.max_timestamp = timestamp
        self.buffer = bytearray(RECORDS_AT)
        self.count = 0
        self.lock = lock
        self.codec = 0
        self.is_sealed = False
        self.attempts = 0
        self.retry_at_ms = 0.0
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self.sequence = NO_SEQUENCE
        self.is_done = False
        self.base_offset = NO_OFFSET
        self.log_append_ms = -1
        self.error: ClientError | None = None
        self.record_errors: dict[int, str | None] = {}
        self.callbacks: list[Callable[[], object]] = []
        self.parts: list[ProducerBatch] | None = None
        """The batches that this one was split into, and the index of the first record of each in `starts`."""
        self.starts: list[int] = []

    @property
    def has_sequence(self) -> bool:
        return self.sequence != NO_SEQUENCE

    def compress(self, codec: int, level: int | None) -> None:
        """May run in a worker: nobody else touches a batch that is closed and not yet sent."""
        from ottla.wire.compression import compress

        packed = compress(codec, memoryview(self.buffer)[RECORDS_AT:], level)
        self.buffer = bytearray(RECORDS_AT) + packed
        self.codec = codec

    def seal(self) -> None:
        """Fill in the header, and the checksum over it; again where sequence or epoch have changed."""
        buffer = self.buffer
        HEADER.pack_into(buffer, 0, 0, len(buffer) - LENGTH_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0, self.codec, self.count - 1,
                         self.base_timestamp, self.max_timestamp, self.producer_id, self.epoch, self.sequence, self.count)  # fmt: skip
        write_checksum(buffer)
        self.is_sealed = True

    # The outcome

    def when_done(self, callback: Callable[[], object]) -> None:
        """Call it once the outcome is known: at once if it is. That of a batch which was split is known with the last of its parts."""
        with self.lock:
            parts = self.parts
            if parts is None and not self.is_done:
                self.callbacks.append(callback)
                return
        if parts is None:
            callback()
        else:
            call_when_all_done(parts, callback)

    def succeed(self, base_offset: int, log_append_ms: int) -> None:
        self.base_offset = base_offset
        self.log_append_ms = log_append_ms
        self._finish()

    def fail(self, error: ClientError, record_errors: dict[int, str | None] | None = None) -> None:
        self.error = error
        self.record_errors = record_errors or {}
        self._finish()

    def set_parts(self, parts: "list[ProducerBatch]") -> None:
        """Split: from now on the outcome of each record is that of its part. Who waits here waits for all of them."""
        starts, start = [], 0
        for part in parts:
            starts.append(start)
            start += part.count
        with self.lock:
            self.starts, self.parts = starts, parts
            callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            call_when_all_done(parts, callback)

    def _finish(self) -> None:
        with self.lock:
            self.is_done = True
            callbacks, self.callbacks = self.callbacks, []
        self.buffer = bytearray()
        for callback in callbacks:
            callback()

    def at(self, index: int) -> "tuple[ProducerBatch, int]":
        """The batch that a record is in now, and its index there."""
        batch = self
        while batch.parts is not None:
            which = bisect_right(batch.starts, index) - 1
            index -= batch.starts[which]
            batch = batch.parts[which]
        return batch, index

    def error_at(self, index: int) -> ClientError | None:
        """What is wrong with one record: where the broker names the bad ones, the others hear that it was not them."""
        if self.error is None or not self.record_errors:
            return self.error
        about = f"record {index} of a batch for partition {self.partition} of topic {self.topic!r}"
        if index in self.record_errors:
            return broker_error(self.error.code, self.record_errors[index], about=about)
        return broker_error(
            ErrorCode.INVALID_RECORD, "another record of its batch was refused, and with it all of them.", about=about
        )


def call_when_all_done(parts: "list[ProducerBatch]", callback: Callable[[], object]) -> None:
    """Call it once all parts have their outcomes. Those that are known are told in this thread, the others in the loop's: the counter is
    one that threads may share."""
    known, total = count(1), len(parts)

    def on_part() -> None:
        if next(known) == total:
            callback()

    for part in parts:
        part.when_done(on_part)


class SendFuture:
    """The outcome of one send. It is a place in a batch, and costs no more than that until somebody asks."""

    __slots__ = ("_batch", "_index", "_key_size", "_timestamp", "_value_size")

    def __init__(self, batch: ProducerBatch, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size

    def done(self) -> bool:
        return self._batch.at(self._index)[0].is_done

    def _outcome(self) -> RecordMetadata:
        """The metadata, or the exception raised. Only after it is done."""
        batch, index = self._batch.at(self._index)
        error = batch.error_at(index)
        if error is not None:
            raise error
        offset = batch.base_offset + index if batch.base_offset >= 0 else NO_OFFSET
        timestamp = batch.log_append_ms if batch.log_append_ms >= 0 else self._timestamp
        return RecordMetadata(batch.topic, batch.partition, offset, timestamp, self._key_size, self._value_size)

    def peek(self) -> tuple[RecordMetadata | None, ClientError | None]:
        """The metadata or the error; neither while it is not done."""
        if not self.done():
            return None, None
        try:
            return self._outcome(), None
        except ClientError as error:
            return None, error

    def add_done_callback(self: F, callback: Callable[[F], object]) -> None:
        """Call it with this future once it is done, in the client's event loop; at once if it is. What it raises there goes to the
        loop's exception handler: the records of others are not its business."""
        if self.done():
            callback(self)
            return

        def guarded() -> None:
            try:
                callback(self)
            except Exception as error:
                from asyncio import get_running_loop

                get_running_loop().call_exception_handler(
                    {"message": "a callback of a send failed", "exception": error}
                )

        self._when_done(guarded)

    def _when_done(self, callback: Callable[[], object]) -> None:
        self._batch.at(self._index)[0].when_done(callback)
