"""Records as clients send and read them."""

import random
from dataclasses import dataclass

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to send. Without a timestamp, the client uses its clock."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Read:
    """A record that was read.

    `append_time` is True if the broker set the timestamp, None if the client does not report it.
    """

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    append_time: bool | None

    def contents(self) -> Sent:
        """Return it as it was sent."""
        return Sent(self.partition, self.key, self.value, self.headers, self.timestamp_ms)


def by_partition(records: list[Read]) -> dict[int, list[Read]]:
    """Group records by partition, in read order."""
    found: dict[int, list[Read]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return dict(sorted(found.items()))


START_MS = 1_700_000_000_000
"""First timestamp of the tests: in the past, so that it never equals a client's clock."""


def contents_corpus(partitions: int) -> list[Sent]:
    """Return records with every type of key, value and header, in each partition."""
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
    """Return incompressible bytes, equal for equal seeds."""
    return random.Random(seed).randbytes(size)
