"""The state of a connection: what it waits for, which determines how arriving bytes are handled.

A connection is in exactly one `State` and leaves it only as `TRANSITIONS` allows. A request that is handled in
one callback changes no state. In READY, requests are handled as they arrive. In every other open state, arriving bytes
are buffered and the socket is paused, so that TCP slows the client down; on return to READY the bytes are handled and
the socket is resumed.

    MUTED --unmute--> READY                                            the server admits the connection
    READY --defer--> DEFERRED --complete--> READY                      a request waits: for data, a worker, a commit
    READY --yield--> YIELDED --next slice--> READY                     the rest of a burst waits for its time slice
    READY --wait for memory--> WAITING_FOR_MEMORY --memory available--> READY
    READY --pause writing--> BLOCKED --resume writing--> READY         the client does not read its responses
    any   --close--> CLOSING --connection lost--> CLOSED               or directly to CLOSED, if the client disconnects

Responses are written at the end of a callback, so the socket can be full only after a request was deferred, a burst
yielded, or the memory ran out. DEFERRED, YIELDED and WAITING_FOR_MEMORY therefore have a variant `..._BLOCKED`:

    DEFERRED --pause writing--> DEFERRED_BLOCKED --complete--> BLOCKED, or --resume writing--> DEFERRED
"""

from enum import Enum
from typing import NoReturn


class State(Enum):
    """Each state: what the connection waits for, whether it handles requests, and whether it buffers arriving bytes."""

    MUTED = "not admitted yet (as Kafka mutes a channel)", False, True
    READY = "nothing", True, True
    DEFERRED = "the response of a request", False, True
    DEFERRED_BLOCKED = "the response of a request, and a client that does not read", False, True
    YIELDED = "the next time slice, for the rest of a burst", False, True
    YIELDED_BLOCKED = "the next time slice, and a client that does not read", False, True
    WAITING_FOR_MEMORY = "receive memory, for a large request", False, True
    WAITING_FOR_MEMORY_BLOCKED = "receive memory, and a client that does not read", False, True
    BLOCKED = "a client that does not read its responses", False, True
    CLOSING = "the end of the connection, after its last responses", False, False
    CLOSED = "nothing", False, False

    def __init__(self, waits_for: str, handles_requests: bool, is_open: bool) -> None:
        self.waits_for = waits_for
        self.handles_requests = handles_requests
        self.is_open = is_open

    __hash__ = object.__hash__  # Enum's own is a Python function, which doubles the time of a transition


class Event(Enum):
    """Events that change a connection's state."""

    UNMUTE = "the server admits the connection"
    DEFER = "a handler responds later"
    COMPLETE = "the deferred response is available"
    YIELD = "the time slice is used up within a burst of requests"
    NEXT_SLICE = "the scheduler gives the rest of the burst its slice"
    WAIT_FOR_MEMORY = "a large request starts while queued.max.request.bytes is used up"
    MEMORY_AVAILABLE = "memory for that request was released"
    PAUSE_WRITING = "the socket accepts no more bytes"
    RESUME_WRITING = "the socket has accepted all written bytes"
    CLOSE = "the broker closes or aborts the connection"
    CONNECTION_LOST = "the network has dropped the connection"

    __hash__ = object.__hash__


class InvalidTransition(AssertionError):
    """An event that cannot happen in this state: a bug in the server."""


class _Transitions(dict[tuple[State, Event], State]):
    def __missing__(self, key: tuple[State, Event]) -> NoReturn:
        state, event = key
        raise InvalidTransition(f"{event.name} in state {state.name}")


_table: dict[tuple[State, Event], State] = {
    (State.MUTED, Event.UNMUTE): State.READY,
    (State.READY, Event.DEFER): State.DEFERRED,
    (State.DEFERRED, Event.COMPLETE): State.READY,
    (State.DEFERRED, Event.DEFER): State.DEFERRED,  # for example for a flush, after a worker
    (State.READY, Event.YIELD): State.YIELDED,
    (State.YIELDED, Event.NEXT_SLICE): State.READY,
    (State.READY, Event.WAIT_FOR_MEMORY): State.WAITING_FOR_MEMORY,
    (State.WAITING_FOR_MEMORY, Event.MEMORY_AVAILABLE): State.READY,
    # The socket is full, perhaps while the connection waits for something else.
    (State.READY, Event.PAUSE_WRITING): State.BLOCKED,
    (State.BLOCKED, Event.RESUME_WRITING): State.READY,
    (State.DEFERRED, Event.PAUSE_WRITING): State.DEFERRED_BLOCKED,
    (State.DEFERRED_BLOCKED, Event.RESUME_WRITING): State.DEFERRED,
    (State.DEFERRED_BLOCKED, Event.DEFER): State.DEFERRED_BLOCKED,
    (State.DEFERRED_BLOCKED, Event.COMPLETE): State.BLOCKED,
    (State.YIELDED, Event.PAUSE_WRITING): State.YIELDED_BLOCKED,
    (State.YIELDED_BLOCKED, Event.RESUME_WRITING): State.YIELDED,
    (State.YIELDED_BLOCKED, Event.NEXT_SLICE): State.BLOCKED,
    (State.WAITING_FOR_MEMORY, Event.PAUSE_WRITING): State.WAITING_FOR_MEMORY_BLOCKED,
    (State.WAITING_FOR_MEMORY_BLOCKED, Event.RESUME_WRITING): State.WAITING_FOR_MEMORY,
    (State.WAITING_FOR_MEMORY_BLOCKED, Event.MEMORY_AVAILABLE): State.BLOCKED,
    # Closing.
    **{(state, Event.CLOSE): State.CLOSING for state in State if state is not State.CLOSED},
    **{(state, Event.CONNECTION_LOST): State.CLOSED for state in State if state is not State.CLOSED},
    # Events of operations that were in progress when the connection closed have no effect.
    (State.CLOSING, Event.UNMUTE): State.CLOSING,
    (State.CLOSING, Event.DEFER): State.CLOSING,
    (State.CLOSING, Event.COMPLETE): State.CLOSING,
    (State.CLOSING, Event.NEXT_SLICE): State.CLOSING,
    (State.CLOSING, Event.MEMORY_AVAILABLE): State.CLOSING,
    (State.CLOSING, Event.RESUME_WRITING): State.CLOSING,
    (State.CLOSED, Event.DEFER): State.CLOSED,
    (State.CLOSED, Event.COMPLETE): State.CLOSED,
    (State.CLOSED, Event.NEXT_SLICE): State.CLOSED,
    (State.CLOSED, Event.CLOSE): State.CLOSED,
}
TRANSITIONS = _Transitions(_table)
"""The next state; a pair that is not listed raises InvalidTransition."""
