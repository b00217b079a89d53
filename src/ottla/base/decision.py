"""What a shard answers: the records that change its state, and the response that may leave once they are committed."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """`decide` only reads; the records it returns are replayed, appended and committed before `response` leaves."""

    records: tuple[Any, ...] = ()
    response: Any = None
