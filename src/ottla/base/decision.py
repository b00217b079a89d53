"""What a shard answers: the records that change its state, and the response that may leave once they are committed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.base.errors import ErrorCode


@dataclass(slots=True)
class Decision:
    """`decide` only reads; the records it returns are replayed, appended and committed before `response` leaves.

    A request that has to wait for others (JoinGroup, SyncGroup) has no response yet: `waiting` is true, and a later decision names
    its token among the `completions`, pairs of a token and a response that leave when that decision's records are committed.
    `on_refused` is called with the error and the time where the log refused the records, before any was replayed: it undoes what
    the shard only remembers, and says what to answer instead. Nobody changes one (frozen it would take three times as long to make).
    """

    records: tuple[Any, ...] = ()
    response: Any = None
    waiting: bool = False
    completions: tuple[tuple[Any, Any], ...] = ()
    on_refused: "Callable[[ErrorCode, int], Decision] | None" = field(default=None, compare=False, repr=False)
