"""One client connection: requests are handled one at a time, in order, and so are responses.

While a request is deferred (a fetch waits for data, CreateTopics for its commit), later requests wait, as in Kafka:
their bytes stay in the receive buffer, and the socket is paused when more arrive. A client that does not read its
responses is paused in the same way. A connection therefore buffers a bounded number of request bytes, and at most one
response more than the socket takes. What it waits for is its `State` (`server/connection_state.py`).
"""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from struct import Struct
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from ottla.base.decision import RequestContext
from ottla.base.ports import Buffer, Connection, File
from ottla.server.connection_state import TRANSITIONS, Event, State
from ottla.server.dispatch import Api
from ottla.server.error_counts import Encoded, error_count
from ottla.server.large_requests import LARGE_BYTES_MIN, handle_large
from ottla.wire.errors import MalformedMessage
from ottla.wire.framing import BadFrame, FrameReader
from ottla.wire.headers import read_request_header, skip_tags
from ottla.wire.schema import Message, decode, encode

if TYPE_CHECKING:
    from ottla.server.server import Server

UNSENT_BYTES_MAX = 64 << 10
"""Responses to a burst of requests are gathered up to this size before they are written."""
MESSAGE_BYTES_MAX = 16 << 20
"""Upper limit of requests without records: decoded into objects, they take many times their bytes."""

_read_start = Struct(">hhih").unpack_from
_frame_start = Struct(">ii").pack
_frame_start_flexible = Struct(">iib").pack

PRODUCE = 0
API_VERSIONS = 18
_IMMEDIATE = (Message, bytes, Encoded)
"""Types that a handler returns if it responds immediately; otherwise it returns an awaitable or a generator."""


class FileRegion:
    """Part of a response that `sendfile` takes from the page cache to the socket."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size


class _NoConnection:
    """Stand-in for the network connection before it is made and after it is lost; discards all writes."""

    peer_host, peer_port, sent_bytes = "", 0, 0

    def write(self, parts: Sequence[Buffer], *, more: bool = False) -> None: ...

    def send_file(self, file: File, position: int, size: int) -> None: ...

    def buffered_bytes(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


NO_CONNECTION: Connection = _NoConnection()


class ServerConnection:
    """The Receiver of one accepted connection (see `base.ports`)."""

    def __init__(self, server: "Server", listener: str) -> None:
        self._server = server
        self._listener = listener
        self.broker = server.broker
        self.apis = server.apis
        self.fetch_sessions = server.fetch_sessions
        self._scheduler = server.broker.scheduler
        self._reader = FrameReader(
            server.buffers,
            server.frame_max,
            self._on_frame,
            on_memory_exhausted=self._on_memory_exhausted,
            on_memory_available=self._on_memory_available,
            should_yield=self._should_yield,
        )
        self.get_buffer = self._reader.get_buffer
        self._out: list[Buffer] = []
        self._unsent_bytes = 0
        self._connection: Connection = NO_CONNECTION
        self._state = State.MUTED
        self._client_id: bytes | None = None
        self._context: RequestContext | None = None
        self._task: asyncio.Task[None] | None = None
        self.on_lost: Any = None
        """Called when the client disconnects while a request is deferred."""
        self.bytes_in = 0
        self.peer_host = ""
        self.peer_port = 0
        self.active_at = 0.0
        self.last_progress = -1
        """The value of `progress` at `active_at`."""

    # Called by the network

    def connection_made(self, connection: Connection) -> None:
        self._connection = connection
        self.peer_host = connection.peer_host
        self.peer_port = connection.peer_port
        self._server.on_connected(self)

    def buffer_updated(self, size: int) -> None:
        self.bytes_in += size
        scheduler = self._scheduler
        scheduler.has_served_client = True
        if scheduler.sender is not self:
            scheduler.sender = self
            scheduler.has_other_senders = True
        if not self._state.handles_requests:
            self._connection.pause_reading()
            if self._state.is_open:
                self._reader.store(size)
            return
        try:
            self._reader.received(size)
        except Exception as error:
            self._on_bad_request(error)
            return
        if self._out:
            self.flush()

    def pause_writing(self) -> None:
        self._transition(Event.PAUSE_WRITING)

    def resume_writing(self) -> None:
        self._transition(Event.RESUME_WRITING)
        self._continue()

    def connection_lost(self, error: Exception | None) -> None:
        self._transition(Event.CONNECTION_LOST)
        connection, self._connection = self._connection, NO_CONNECTION
        self._out.clear()
        if self._scheduler.sender is self:
            self._scheduler.sender = None
        self._reader.release()
        self._server.on_disconnected(self, connection.sent_bytes)
        if self.on_lost is not None:
            self.on_lost()
            self.on_lost = None

    # Called by the server

    def unmute(self) -> None:
        """Start handling requests: the connection is admitted."""
        self._transition(Event.UNMUTE)
        if self._reader.buffered_bytes:
            self._continue()  # otherwise the socket was never paused; its transport may not even be reading yet

    @property
    def listener(self) -> str:
        return self._listener

    @property
    def is_closed(self) -> bool:
        return self._state is State.CLOSED

    @property
    def bytes_out(self) -> int:
        return self._connection.sent_bytes

    @property
    def progress(self) -> int:
        """Number of bytes received and sent."""
        return self.bytes_in + self.bytes_out

    # Called by handlers

    def send(self, parts: Sequence[Buffer | FileRegion]) -> bool:
        """Send a response; return whether the next request may be handled now."""
        for part in parts:
            if isinstance(part, FileRegion):
                self.flush(more=True)
                self._connection.send_file(part.file, part.position, part.size)
            else:
                self._out.append(part)
                self._unsent_bytes += len(part)
        if self._unsent_bytes > UNSENT_BYTES_MAX:
            self.flush()
        return self._state.handles_requests

    def send_now(self, parts: Sequence[Buffer]) -> bool:
        """Write a response immediately, because it contains a view of a shared buffer; return like `send`."""
        if self._out:
            self._out += parts
            self.flush()
        else:
            self._connection.write(parts)
        return self._state.handles_requests

    def send_small(self, frame: bytes) -> bool:
        """Send a few bytes together with the other responses of this callback; return like `send`."""
        self._out.append(frame)
        return self._state.handles_requests

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the rest of a deferred request; `work` ends with `complete_deferred`."""
        self._task = asyncio.ensure_future(self._guard(work, self.broker.loop.time()))

    def defer(self) -> bool:
        """Announce that `complete_deferred` will send the response; a raw handler returns the result."""
        self._transition(Event.DEFER)
        return False

    def complete_deferred(self, parts: Sequence[Buffer | FileRegion]) -> None:
        """Send the response of a deferred request, nothing if it is empty (acks=0), and go on with the next request."""
        self._transition(Event.COMPLETE)
        self.on_lost = None
        if self._state.is_open:
            self.send(parts)
            self._continue()

    def encode_response(self, api: Api, version: int, correlation_id: int, response: Any) -> bytes:
        """Return the frame of a response: a message, or its encoded bytes."""
        if isinstance(response, bytes):
            body = response
        elif isinstance(response, Encoded):
            body, errors = response
            api.errors += errors
        else:
            body = encode(response, version)
            api.errors += error_count(response)
        if version >= api.response_flexible_from:
            return _frame_start_flexible(len(body) + 5, correlation_id, 0) + body
        return _frame_start(len(body) + 4, correlation_id) + body

    def flush(self, *, more: bool = False) -> None:
        out = self._out
        if out:
            self._out = []
            self._unsent_bytes = 0
            self._connection.write(out, more=more)

    def close(self) -> None:
        """Close after the responses sent so far; further requests are discarded."""
        self.flush()
        self._transition(Event.CLOSE)
        self._connection.pause_reading()
        self._connection.close()

    def abort(self) -> None:
        self._transition(Event.CLOSE)
        self._connection.abort()

    @property
    def peer(self) -> str:
        return f"{self.peer_host}:{self.peer_port}"

    # Frames

    def _on_frame(self, buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        """Handle one request; return whether the next one may be handled now."""
        frame_bytes = end - start
        if frame_bytes >= 10:
            key, version, correlation_id, size = _read_start(buffer, start)
            api = self.apis.get(key)
            if api is not None and api.handle_raw is not None and api.min_version <= version <= api.max_version:
                api.requests += 1
                if frame_bytes > MESSAGE_BYTES_MAX and key != PRODUCE:
                    raise _too_large(frame_bytes)
                position = start + 10 + (size if size > 0 else 0)
                if version >= api.flexible_from:
                    if position < end and not buffer[position]:
                        position += 1  # no tags, as in nearly every request: saves a call
                    else:
                        position = skip_tags(buffer, position, end)
                return api.handle_raw(self, buffer, view, position, end, version, correlation_id)
        return self._on_other_frame(buffer, view, start, end)

    def _on_other_frame(self, buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        """Handle a request that is decoded into a message, or reject one that is not supported."""
        key, version, correlation_id, client_id, position = read_request_header(buffer, start, end)
        api = self.apis.get(key)
        if api is None:
            raise MalformedMessage(f"unsupported API key {key}")
        if not api.is_loaded:
            api.load()
            if api.handle_raw is not None:
                return self._on_frame(buffer, view, start, end)
        if not api.min_version <= version <= api.max_version and key != API_VERSIONS:
            raise MalformedMessage(
                f"unsupported version {version} of API key {key}; "
                f"supported versions are {api.min_version}-{api.max_version}"
            )
        if version >= api.flexible_from:
            position = skip_tags(buffer, position, end)
        if version > api.max_version:
            version = -1  # ApiVersions of a newer client: the response lists the supported versions
        api.requests += 1
        if end - start > MESSAGE_BYTES_MAX:
            raise _too_large(end - start)
        assert api.handle is not None, api.module
        request = None
        if end - start > LARGE_BYTES_MIN and version >= 0:
            self._scheduler.large_requests.check_capacity(end - start)
            self.start_task(
                handle_large(self, api, version, correlation_id, self._context_of(client_id), bytes(view[position:end]))
            )
            return self.defer()
        if version >= 0:
            assert api.request is not None, api.module
            request, _ = decode(api.request, version, view[:end], position)
        began_ms = self.broker.clock.now_ms()
        response = api.handle(self.broker, self._context_of(client_id), request, version)
        if isinstance(response, GeneratorType):
            response = self._scheduler.start(response)
        version = max(version, 0)
        if not isinstance(response, _IMMEDIATE):
            if asyncio.isfuture(response):  # waits for other clients: no task, not logged as slow
                response.add_done_callback(partial(self._on_future_done, api, version, correlation_id))
            else:
                self.start_task(self._finish(api, version, correlation_id, response))
            return self.defer()
        frame = self.encode_response(api, version, correlation_id, response)
        self._server.maybe_log_slow(self, api.module, self.broker.clock.now_ms() - began_ms)
        return self.send([frame])

    async def _finish(self, api: Api, version: int, correlation_id: int, response: Any) -> None:
        self.complete_deferred([self.encode_response(api, version, correlation_id, await response)])

    def _on_future_done(self, api: Api, version: int, correlation_id: int, future: "asyncio.Future[Any]") -> None:
        try:
            self.complete_deferred([self.encode_response(api, version, correlation_id, future.result())])
        except Exception as error:
            self._server.on_failure(self, error)
            self.abort()

    async def _guard(self, work: Coroutine[Any, Any, None], began: float) -> None:
        try:
            await work
        except Exception as error:
            self._on_bad_request(error)
        self._server.maybe_log_slow(
            self, getattr(work, "__qualname__", "work"), int((self.broker.loop.time() - began) * 1000)
        )

    # State

    def _transition(self, event: Event) -> None:
        self._state = TRANSITIONS[self._state, event]

    def _continue(self) -> None:
        """In READY, handle the bytes that were kept and resume the socket."""
        if not self._state.handles_requests:
            return
        try:
            self._reader.resume()
        except Exception as error:
            self._on_bad_request(error)
            return
        if self._out:
            self.flush()
        if self._state.handles_requests:
            self._connection.resume_reading()

    def _on_memory_exhausted(self) -> None:
        self._transition(Event.WAIT_FOR_MEMORY)
        self._connection.pause_reading()

    def _on_memory_available(self) -> None:
        self._transition(Event.MEMORY_AVAILABLE)
        self._continue()

    def _should_yield(self, is_first: bool) -> bool:
        """Return whether the rest of a burst has to wait for the next slice."""
        scheduler = self._scheduler
        if is_first:
            scheduler.begin_burst()
            return False
        if not scheduler.is_burst_over():
            return False
        self._transition(Event.YIELD)
        scheduler.schedule_burst(self, self._on_slice)
        return True

    def _on_slice(self) -> None:
        self._transition(Event.NEXT_SLICE)
        self._continue()

    def _on_bad_request(self, error: Exception) -> None:
        """Close the connection: the request is malformed, or its handler raised an unexpected error."""
        if isinstance(error, BadFrame | MalformedMessage):
            self._server.on_malformed_request(self, error)
            self.close()  # as in Kafka; responses to earlier requests are sent first
        else:
            self._server.on_failure(self, error)
            self.abort()

    def _context_of(self, client_id: bytes | None) -> RequestContext:
        if self._context is None or client_id != self._client_id:
            name = None if client_id is None else client_id.decode(errors="replace")
            self._client_id = client_id
            self._context = RequestContext(self._listener, "User:ANONYMOUS", name, self.peer_host)
        return self._context


def _too_large(size: int) -> MalformedMessage:
    return MalformedMessage(
        f"request of {size} bytes exceeds the {MESSAGE_BYTES_MAX}-byte limit for requests without records"
    )
