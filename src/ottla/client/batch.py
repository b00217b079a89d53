"""A producer batch, encoded in its wire format as records are sent.

The buffer starts with space for the header, followed by the records. `compress` replaces the records, `seal` writes the
header.
"""

from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client.errors import ClientError, broker_error
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


class ProducerBatch:
    """Records of one partition. `lock` guards `callbacks`, `parts` and `is_done`."""

    __slots__ = (
        "attempts",
        "base_offset",
        "base_timestamp",
        "buffer",
        "callbacks",
        "codec",
        "count",
        "created_ms",
        "epoch",
        "error",
        "is_done",
        "is_sealed",
        "last_error",
        "limit",
        "lock",
        "log_append_ms",
        "max_timestamp",
        "partition",
        "parts",
        "producer_id",
        "record_errors",
        "reserved",
        "retry_at_ms",
        "sequence",
        "serial",
        "starts",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        serial: tuple[int, ...],
        limit: int,
        reserved: int,
        created_ms: float,
        timestamp: int,
        lock: "AbstractContextManager[Any]",
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.serial = serial
        """Send order within the partition, also for retries. The parts of a split batch keep its position."""
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
        self.last_error: ClientError | None = None
        """The error of the last attempt, if it is retried."""
        self.record_errors: dict[int, str | None] = {}
        self.callbacks: list[Callable[[], object]] = []
        self.parts: list[ProducerBatch] | None = None
        """The batches that this one was split into; `starts` has the index of the first record of each."""
        self.starts: list[int] = []

    @property
    def has_sequence(self) -> bool:
        return self.sequence != NO_SEQUENCE

    def compress(self, codec: int, level: int | None) -> None:
        """Compress the records. Safe in a worker thread: no other thread uses a closed batch before it is sent."""
        from ottla.wire.compression import compress

        packed = compress(codec, memoryview(self.buffer)[RECORDS_AT:], level)
        self.buffer = bytearray(RECORDS_AT) + packed
        self.codec = codec

    def seal(self) -> None:
        """Write the header and its checksum. Called again after sequence or epoch changed."""
        buffer = self.buffer
        HEADER.pack_into(
            buffer,
            0,
            0,
            len(buffer) - LENGTH_OVERHEAD,
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            self.codec,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.epoch,
            self.sequence,
            self.count,
        )
        write_checksum(buffer)
        self.is_sealed = True

    # Outcome

    def when_done(self, callback: Callable[[], object]) -> None:
        """Call `callback` once the batch is done, immediately if it is.

        A split batch is done when all its parts are.
        """
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
        """Replace this batch by its parts. Callbacks registered here are called when all parts are done."""
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
        """Return the batch that holds a record now (after splits) and the record's index in it."""
        batch = self
        while batch.parts is not None:
            which = bisect_right(batch.starts, index) - 1
            index -= batch.starts[which]
            batch = batch.parts[which]
        return batch, index

    def error_at(self, index: int) -> ClientError | None:
        """Return the error of one record. If the broker named invalid records, the others get an error that says so."""
        if self.error is None or not self.record_errors:
            return self.error
        about = f"record {index} of a batch for partition {self.partition} of topic {self.topic!r}"
        if index in self.record_errors:
            return broker_error(self.error.code, self.record_errors[index], about=about)
        return broker_error(
            ErrorCode.INVALID_RECORD,
            "another record of its batch was rejected, and with it the entire batch.",
            about=about,
        )


def call_when_all_done(parts: "list[ProducerBatch]", callback: Callable[[], object]) -> None:
    """Call `callback` once all parts are done.

    Parts that are done already count in this thread, the others in the event loop's: `itertools.count` is thread-safe.
    """
    known, total = count(1), len(parts)

    def on_part() -> None:
        if next(known) == total:
            callback()

    for part in parts:
        part.when_done(on_part)
