"""What the tests ask of every client, whichever language it is written in."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from tests.compat.record import Read, Sent

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
At = Literal["earliest", "latest"] | int
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
BIG = 12 * 1024 * 1024
"""The limit that is given to clients and topics where records of 10 MB are tried."""

WAIT_SECONDS = 15
"""How long a client waits for what must come; only a failing test waits that long."""


class Client(Protocol):
    """Consumers are assigned their partitions: no coordinator is asked."""

    name: str

    def missing(self) -> str | None:
        """Why this client cannot be run here, or None where it can."""

    def can_send(self, record: Sent) -> bool:
        """Not every client can express every record: kcat knows no empty key, for one."""

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send in order, wait for all the answers, and give the offsets; -1 where the client does not say."""

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        """Read each partition of `start` from its offset up to the one in `end`."""

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        """At a timestamp: the first offset at or after it, None where there is none."""

    def partition_count(self, bootstrap: str, topic: str) -> int:
        """By asking for the topic's metadata, with leave to create it."""
