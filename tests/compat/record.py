"""A record as a client hands it over, and as a client gets it back: what every client's test compares."""

import random
from dataclasses import dataclass

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """What is given to a producer. Without a timestamp the client sets its own clock's."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Read:
    """What a consumer gives. `append_time`: the timestamp is by the broker's clock, not the producer's; None where it is not said."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    append_time: bool | None

    def contents(self) -> Sent:
        """As it was sent, to compare with."""
        return Sent(self.partition, self.key, self.value, self.headers, self.timestamp_ms)


def by_partition(records: list[Read]) -> dict[int, list[Read]]:
    """In the order in which they were read: only that order is promised."""
    found: dict[int, list[Read]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return dict(sorted(found.items()))


START_MS = 1_700_000_000_000
"""Timestamps of the tests are counted from here, in the past, so that no client's clock is met by accident."""


def contents_corpus(partitions: int) -> list[Sent]:
    """Every kind of key, value and header that the record format can tell apart, in each partition."""
    keys: list[bytes | None] = [None, b"", b"k", b"\x00\xff\n\t key", "klíč".encode()]
    values: list[bytes | None] = [None, b"", b"v", bytes(range(256)), b"long " * 500]
    headers: list[Headers] = [
        (),
        (("one", b"1"),),
        (("twice", b"first"), ("twice", b"second"), ("twice", b"first")),
        (("empty", b""), ("none", None), ("binary", b"\x00\xff\r\n")),
        (("ž", b"hodnota"),),
    ]
    return [
        Sent(partition, key, value, headers[(i + j) % len(headers)], START_MS + 1000 * (5 * i + j) + partition)
        for partition in range(partitions)
        for i, key in enumerate(keys)
        for j, value in enumerate(values)
    ]


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes that do not compress, the same each time."""
    return random.Random(seed).randbytes(size)
