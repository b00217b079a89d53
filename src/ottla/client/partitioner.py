"""Which partition a record goes to. Records with a key go by Kafka's hash of it, so that all clients agree; others stick to one partition
until a batch of it is full (`accumulator`), go round robin, or go where a function of yours says."""

from collections.abc import Callable
from struct import unpack_from
from typing import Any

from ottla.client.errors import ConfigError

Partitioner = Callable[[str, bytes | None, bytes | None, int], int]
"""Topic, key, value and how many partitions there are: the number of one of them."""

_M = 0x5BD1E995
_U32 = 0xFFFF_FFFF
SEED = 0x9747B28C
CACHED_KEYS_MAX = 1 << 14
CACHED_KEY_BYTES_MAX = 64


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's clients, as an unsigned number."""
    length = len(data)
    h = SEED ^ length
    words = length >> 2
    for k in unpack_from(f"<{words}I", data):
        k = k * _M & _U32
        h = (h * _M ^ (k ^ k >> 24) * _M) & _U32
    rest = data[words << 2 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _U32
    h = (h ^ h >> 13) * _M & _U32
    return h ^ h >> 15


class KeyHashes:
    """The positive hashes of the keys that were used lately: a hash takes microseconds in Python, a look-up a tenth of one."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, key: bytes) -> int:
        found = self._known.get(key)
        if found is None:
            found = murmur2(key) & 0x7FFF_FFFF
            if len(key) <= CACHED_KEY_BYTES_MAX:
                if len(self._known) >= CACHED_KEYS_MAX:
                    self._known.clear()
                self._known[key] = found
        return found


class RoundRobin:
    """Each record of a topic goes to the partition after that of the last one, whatever its key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        chosen = self._next.get(topic, 0) % partitions
        self._next[topic] = chosen + 1
        return chosen


def partitioner_named(given: Any) -> Partitioner | None:
    """What `partitioner.class` says: a function, or the name of Kafka's round robin; None is the default."""
    if given is None:
        return None
    if isinstance(given, str):
        if given.rpartition(".")[2].lower() in ("roundrobinpartitioner", "roundrobin"):
            return RoundRobin()
        raise ConfigError(f"partitioner.class must be a function or 'RoundRobinPartitioner', not {given!r}.")
    if isinstance(given, type):
        given = given()
    if not callable(given):
        raise ConfigError(
            f"partitioner.class must be a function of topic, key, value and the number of partitions, not {given!r}."
        )
    made: Partitioner = given
    return made
