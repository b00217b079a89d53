"""The interface of the clients under test."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from tests.compat.record import Read, Sent

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
At = Literal["earliest", "latest"] | int
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
BIG = 12 * 1024 * 1024
"""Size limit of clients and topics in tests with 10 MB records."""

WAIT_SECONDS = 15
"""Timeout of clients; only failing tests wait that long."""


class Client(Protocol):
    """Consumers use assigned partitions, without a coordinator."""

    name: str

    def missing(self) -> str | None:
        """Return why this client cannot run here, or None if it can."""

    def can_send(self, record: Sent) -> bool:
        """Return whether the client can send the record: kcat, for example, has no empty keys."""

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
        """Send in order and wait for all responses. Returns the offsets, or -1 if the client does not report them."""

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        """Read each partition of `start` from its offset up to the one in `end`."""

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        """Return offsets; for a timestamp the first at or after it, or None."""

    def partition_count(self, bootstrap: str, topic: str) -> int:
        """Request the topic's metadata, which may create it."""
