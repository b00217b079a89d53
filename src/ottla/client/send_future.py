"""Outcomes of sends: one record, or columns of records."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from ottla.client.batch import NO_OFFSET, ProducerBatch, call_when_all_done
from ottla.client.errors import ClientError
from ottla.client.records import RecordMetadata

F = TypeVar("F", bound="SendFuture")


class SendFuture:
    """Outcome of one send: an index into a batch. It creates nothing else until its result is requested."""

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
        """Return the metadata or raise the error. The future must be done."""
        batch, index = self._batch.at(self._index)
        error = batch.error_at(index)
        if error is not None:
            raise error
        offset = batch.base_offset + index if batch.base_offset >= 0 else NO_OFFSET
        timestamp = batch.log_append_ms if batch.log_append_ms >= 0 else self._timestamp
        return RecordMetadata(batch.topic, batch.partition, offset, timestamp, self._key_size, self._value_size)

    def peek(self) -> tuple[RecordMetadata | None, ClientError | None]:
        """Return the metadata or the error, and neither while the future is not done."""
        if not self.done():
            return None, None
        try:
            return self._outcome(), None
        except ClientError as error:
            return None, error

    def add_done_callback(self: F, callback: Callable[[F], object]) -> None:
        """Call `callback` with this future once it is done: in the client's event loop, or immediately if it is done
        already.

        Exceptions raised in the loop go to the loop's exception handler, so that they do not affect other records.
        """
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


class ColumnSendFuture:
    """Outcome of columns: that of all their batches."""

    __slots__ = ("batches", "topic")

    def __init__(self, topic: str, batches: list[ProducerBatch]) -> None:
        self.topic = topic
        self.batches = batches

    def done(self) -> bool:
        return all(part.is_done for batch in self.batches for part in leaves(batch))

    def error(self) -> ClientError | None:
        """Return the first failure known so far."""
        for batch in self.batches:
            for part in leaves(batch):
                if part.error is not None:
                    return part.error
        return None

    def counts(self) -> dict[int, int]:
        """Return the number of acknowledged records per partition."""
        found: dict[int, int] = {}
        for batch in self.batches:
            for part in leaves(batch):
                if part.is_done and part.error is None:
                    found[part.partition] = found.get(part.partition, 0) + part.count
        return dict(sorted(found.items()))

    def _when_done(self, callback: Callable[[], object]) -> None:
        """Call `callback` once all batches are done."""
        if self.batches:
            call_when_all_done(self.batches, callback)
        else:
            callback()

    def _outcome(self) -> dict[int, int]:
        error = self.error()
        if error is not None:
            raise error
        return self.counts()


def leaves(batch: ProducerBatch) -> Iterator[ProducerBatch]:
    """Yield the batches that a batch was split into, or itself."""
    if batch.parts is None:
        yield batch
        return
    for part in batch.parts:
        yield from leaves(part)
