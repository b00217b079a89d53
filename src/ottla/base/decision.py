"""The context of a request, and the decision that a state machine makes about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.base.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The sender of a request. One per connection and client id, shared by all requests of that client."""

    listener: str
    principal: str
    client_id: str | None
    peer_host: str


@dataclass(slots=True)
class Decision:
    """The records that change a state machine's state, and the response to send once they are committed.

    `decide` does not change state that must survive a restart; `replay` does. The caller appends and replays `records`,
    and sends `response` once they are committed.

    A request that waits for other members (JoinGroup, SyncGroup) has `waiting` set and no response. A later decision
    lists its token in `completions`: pairs of a token and a response to send when that decision's records are
    committed.

    `on_rejected` is called with the error and the time if the log rejects the records, before any is replayed. It
    undoes state that is kept in memory only and returns the decision to use instead.

    Not frozen, since creating a frozen dataclass takes three times as long; never changed after creation.
    """

    records: tuple[Any, ...] = ()
    response: Any = None
    waiting: bool = False
    completions: tuple[tuple[Any, Any], ...] = ()
    on_rejected: "Callable[[ErrorCode, int], Decision] | None" = field(default=None, compare=False, repr=False)
