"""What becomes of columns that were sent."""

from collections.abc import Callable, Iterator

from ottla.client.batch import ProducerBatch, call_when_all_done
from ottla.client.errors import ClientError


class ColumnSendFuture:
    """The outcome of columns: those of all batches they are in."""

    __slots__ = ("batches", "topic")

    def __init__(self, topic: str, batches: list[ProducerBatch]) -> None:
        self.topic = topic
        self.batches = batches

    def done(self) -> bool:
        return all(part.is_done for batch in self.batches for part in leaves(batch))

    def error(self) -> ClientError | None:
        """The first failure that is known by now."""
        for batch in self.batches:
            for part in leaves(batch):
                if part.error is not None:
                    return part.error
        return None

    def counts(self) -> dict[int, int]:
        """How many records were acknowledged, by partition."""
        found: dict[int, int] = {}
        for batch in self.batches:
            for part in leaves(batch):
                if part.is_done and part.error is None:
                    found[part.partition] = found.get(part.partition, 0) + part.count
        return dict(sorted(found.items()))

    def _when_done(self, callback: Callable[[], object]) -> None:
        """Call it once all batches have an outcome."""
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
    """The batches that a batch was split into, or itself."""
    if batch.parts is None:
        yield batch
        return
    for part in batch.parts:
        yield from leaves(part)
