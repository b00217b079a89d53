"""Trace of a run: every port call in order, with a hash of its bytes. Equal seeds give equal traces."""

from collections.abc import Callable
from hashlib import blake2b

Detail = int | str | bytes | bytearray | memoryview | None


class Trace:
    """The digest covers all entries; only the newest are saved for reading."""

    __slots__ = ("_digest", "_entries", "_entries_max", "_now", "count")

    def __init__(self, now: Callable[[], float], *, entries_max: int = 200_000) -> None:
        self._now = now
        self._digest = blake2b(digest_size=16)
        self._entries: list[str] = []
        self._entries_max = entries_max
        self.count = 0

    def add(self, process: str, call: str, *details: Detail) -> None:
        parts = [f"{self._now():.6f}", process, call]
        parts.extend(_format(detail) for detail in details)
        entry = " ".join(parts)
        self._digest.update(entry.encode())
        self._digest.update(b"\n")
        self.count += 1
        self._entries.append(entry)
        if len(self._entries) > self._entries_max:
            del self._entries[: self._entries_max // 2]

    def digest(self) -> str:
        return self._digest.hexdigest()

    def entries(self) -> list[str]:
        return list(self._entries)


def _format(detail: Detail) -> str:
    if isinstance(detail, bytes | bytearray | memoryview):
        return f"{len(detail)}:{blake2b(detail, digest_size=8).hexdigest()}"
    return str(detail)
