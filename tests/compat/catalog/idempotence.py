"""Sequence numbers of idempotent producers."""

from tests.compat.catalog.case import Batch, Call, Case, NewProducer, NewTopic, records
from tests.compat.catalog.sending import END_OFFSET, READ_BACK, produce

PREPARED = (NewTopic("a", 2), NewProducer("p"), NewProducer("q"))
SOME = (3, 9, 13)


def sent(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: str = "p", partition: int = 0, codec: int = 0
) -> Call:
    batch = Batch(
        records(count, first=sequence % 100), producer=producer, producer_epoch=epoch, sequence=sequence, codec=codec
    )
    return produce(batch, partition=partition)


def filled(count: int) -> tuple[Call, ...]:
    return tuple(sent(sequence) for sequence in range(count))


CASES = [
    Case("sequences in order", (sent(0, 3), sent(3, 2), sent(5), READ_BACK), PREPARED, versions=range(3, 14)),
    Case("duplicate batch", (sent(0, 3), sent(0, 3), END_OFFSET), PREPARED, versions=range(3, 14)),
    Case(
        "duplicate batch, compressed", (sent(0, 3, codec=1), sent(0, 3, codec=1), END_OFFSET), PREPARED, versions=SOME
    ),
    Case("sequence gap", (sent(0, 3), sent(4), END_OFFSET), PREPARED, versions=range(3, 14)),
    Case("sequence inside the last batch", (sent(0, 3), sent(1, 2), sent(2, 2), END_OFFSET), PREPARED, versions=SOME),
    Case("duplicate of the fifth last batch", (*filled(6), sent(1), END_OFFSET), PREPARED, versions=SOME),
    Case("duplicate of the sixth last batch", (*filled(6), sent(0), END_OFFSET), PREPARED, versions=SOME),
    Case("first sequence 5", (sent(5), END_OFFSET), PREPARED, versions=SOME),
    Case(
        "first sequence 5, then more batches", (sent(5), sent(6), sent(6), sent(9), END_OFFSET), PREPARED, versions=SOME
    ),
    Case(
        "two producers",
        (sent(0), sent(0, producer="q"), sent(1), sent(1, producer="q"), READ_BACK),
        PREPARED,
        versions=SOME,
    ),
    Case(
        "two partitions",
        (sent(0), sent(0, partition=1), sent(1), sent(1, partition=1), END_OFFSET),
        PREPARED,
        versions=SOME,
    ),
    Case(
        "newer epoch, first sequence 0",
        (sent(0, 3), sent(0, epoch=1), sent(1, epoch=1), END_OFFSET),
        PREPARED,
        versions=SOME,
    ),
    Case("newer epoch, first sequence 3", (sent(0, 3), sent(3, epoch=1), END_OFFSET), PREPARED, versions=SOME),
    Case("older epoch", (sent(0, epoch=3), sent(1, epoch=2), END_OFFSET), PREPARED, versions=SOME),
    Case(
        "older epoch, duplicate",
        (sent(0, epoch=2), sent(0, epoch=3), sent(0, epoch=2), END_OFFSET),
        PREPARED,
        versions=SOME,
    ),
    Case("sequence -1", (sent(-1), END_OFFSET), PREPARED, versions=SOME),
    Case("sequence below -1", (sent(-2), END_OFFSET), PREPARED, versions=SOME),
    Case("epoch -1", (sent(0, epoch=-1), END_OFFSET), PREPARED, versions=SOME),
    Case("largest sequence", (sent(2**31 - 1), sent(0), sent(1), END_OFFSET), PREPARED, versions=SOME),
    Case("sequence wraps around", (sent(2**31 - 2, 3), sent(1), END_OFFSET), PREPARED, versions=SOME),
    Case(
        "transactional batch without a transaction",
        (produce(Batch(records(1), producer="p", is_transactional=True)), END_OFFSET),
        PREPARED,
        versions=(3, 11),
    ),
]
