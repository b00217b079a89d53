"""One connection as requests and responses, without I/O: it is told which bytes came and says which to send.

Responses come in the order of the requests. Versions are negotiated once, by ApiVersions; each request then takes the highest version that
both sides speak.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.ports import Buffer
from ottla.client.errors import ClientError, DisconnectedError, UnsupportedVersionError
from ottla.wire.errors import MalformedMessage
from ottla.wire.framing import FrameReader, ReceiveBufferPool
from ottla.wire.headers import skip_tags
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.schema import Message, decode, encode

M = TypeVar("M", bound=Message)

FRAME_BYTES_MAX = 256 << 20
"""No broker sends more at once: fetch.max.bytes is 50 MiB, and one batch above it."""
SOFTWARE_NAME = "ottla-client"
SOFTWARE_VERSION = "0.1.0"

_head = Struct(">ihhih").pack
_correlation = Struct(">i").unpack_from

OnResponse = Callable[[int, bytes | memoryview], None]
"""Version and body."""


class InFlightRequest:
    """A request whose response has not come."""

    __slots__ = ("correlation_id", "deadline_ms", "deliver", "fail", "is_flexible", "version")

    def __init__(
        self,
        correlation_id: int,
        version: int,
        is_flexible: bool,
        deadline_ms: float,
        deliver: OnResponse,
        fail: Callable[[ClientError], None],
    ) -> None:
        self.correlation_id = correlation_id
        self.version = version
        self.is_flexible = is_flexible
        self.deadline_ms = deadline_ms
        self.deliver = deliver
        self.fail = fail


class BrokerProtocol:
    """Bytes to send are returned by `start_negotiation` and `request`; bytes that came go to `get_buffer` and `received`."""

    def __init__(self, client_id: str, buffers: ReceiveBufferPool) -> None:
        self._client_id = client_id.encode()
        self._reader = FrameReader(buffers, FRAME_BYTES_MAX, self._on_frame)
        self._in_flight: deque[InFlightRequest] = deque()
        self._next_correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._chosen: dict[int, int] = {}
        self.get_buffer = self._reader.get_buffer
        self.received = self._reader.received
        """Raises BadFrame or MalformedMessage where the stream makes no sense: close the connection then."""
        self.features: dict[str, tuple[int, int]] = {}

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def next_deadline_ms(self) -> float | None:
        return min((request.deadline_ms for request in self._in_flight), default=None)

    # Negotiation

    def start_negotiation(
        self,
        on_ready: Callable[[], None],
        on_retry: Callable[[bytes], None],
        fail: Callable[[ClientError], None],
        deadline_ms: float,
        version: int = ApiVersionsRequest.MAX_VERSION,
    ) -> bytes:
        """The first request. A broker that does not know its version says so in version 0, and `on_retry` gets the next attempt's bytes."""

        def deliver(sent: int, body: bytes | memoryview) -> None:
            if sent and int.from_bytes(body[:2], "big") == ErrorCode.UNSUPPORTED_VERSION:
                response, _ = decode(ApiVersionsResponse, 0, body)
                offered = {entry.api_key: entry.max_version for entry in response.api_keys}
                lower = min(offered.get(ApiVersionsRequest.API_KEY, 0), sent - 1)
                on_retry(self.start_negotiation(on_ready, on_retry, fail, deadline_ms, lower))
                return
            response, _ = decode(ApiVersionsResponse, sent, body)
            if response.error_code:
                fail(
                    UnsupportedVersionError(
                        f"The broker refused to say which versions it speaks (error {response.error_code})."
                    )
                )
                return
            self._versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
            self._chosen = {}
            on_ready()

        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        flexible = version >= ApiVersionsRequest.FLEXIBLE_FROM
        return self._frame(
            ApiVersionsRequest.API_KEY, version, flexible, False, encode(request, version), deliver, fail, deadline_ms
        )

    def supports(self, request: type[Message]) -> bool:
        low, high = self._versions.get(request.API_KEY, (0, -1))
        return max(low, request.MIN_VERSION) <= min(high, request.MAX_VERSION)

    def version_for(self, request: type[Message], version_max: int | None = None) -> int:
        """The highest version that both sides speak, or UnsupportedVersionError."""
        if version_max is None:
            chosen = self._chosen.get(request.API_KEY)
            if chosen is not None:
                return chosen
        low, high = self._versions.get(request.API_KEY, (0, -1))
        version = min(high, request.MAX_VERSION if version_max is None else min(version_max, request.MAX_VERSION))
        if version < max(low, request.MIN_VERSION):
            theirs = f"versions {low} to {high}" if high >= low else "no version"
            ours = f"{request.MIN_VERSION} to {request.MAX_VERSION if version_max is None else version_max}"
            name = request.__name__.removesuffix("Request")
            raise UnsupportedVersionError(f"The broker speaks {theirs} of {name}, this client {ours}.")
        if version_max is None:
            self._chosen[request.API_KEY] = version
        return version

    # Requests and responses

    def request(
        self,
        request: Message,
        version: int,
        response_type: type[Message] | None,
        deliver: OnResponse,
        fail: Callable[[ClientError], None],
        deadline_ms: float,
    ) -> bytes:
        """The frame of a request. Without an `response` (acks=0) none is waited for."""
        flexible = version >= request.FLEXIBLE_FROM
        body = encode(request, version)
        if response_type is None:
            return self._head(request.API_KEY, version, flexible, len(body)) + body
        # The response to ApiVersions never has tags in its header: its reader may not know the version yet.
        response_flexible = version >= response_type.FLEXIBLE_FROM and request.API_KEY != ApiVersionsRequest.API_KEY
        return self._frame(request.API_KEY, version, flexible, response_flexible, body, deliver, fail, deadline_ms)

    def _frame(
        self,
        api_key: int,
        version: int,
        flexible: bool,
        response_flexible: bool,
        body: Buffer,
        deliver: OnResponse,
        fail: Callable[[ClientError], None],
        deadline_ms: float,
    ) -> bytes:
        head = self._head(api_key, version, flexible, len(body))
        correlation_id = self._next_correlation_id
        self._in_flight.append(InFlightRequest(correlation_id, version, response_flexible, deadline_ms, deliver, fail))
        return head + body

    def _head(self, api_key: int, version: int, flexible: bool, body_size: int) -> bytes:
        self._next_correlation_id = self._next_correlation_id + 1 & 0x7FFF_FFFF
        client_id = self._client_id
        size = 10 + len(client_id) + flexible + body_size
        head = _head(size, api_key, version, self._next_correlation_id, len(client_id)) + client_id
        return head + b"\0" if flexible else head

    def _on_frame(self, buffer: bytearray, view: memoryview, start: int, end: int) -> bool:
        if not self._in_flight or end - start < 4:
            raise MalformedMessage("a response that nobody asked for")
        request = self._in_flight[0]
        (correlation_id,) = _correlation(buffer, start)
        if correlation_id != request.correlation_id:
            raise MalformedMessage(f"response {correlation_id} came where {request.correlation_id} was due")
        self._in_flight.popleft()
        position = skip_tags(buffer, start + 4, end) if request.is_flexible else start + 4
        try:
            request.deliver(request.version, self._reader.retain(view, position, end))
        except MalformedMessage as error:
            request.fail(DisconnectedError(f"The broker's response could not be read: {error}."))
            raise
        return True

    def expired_request(self, now_ms: float) -> InFlightRequest | None:
        """A request that has waited for too long, if there is one. As responses are in order, the connection is of no use then."""
        return next((request for request in self._in_flight if request.deadline_ms <= now_ms), None)

    def fail_all(self, error: ClientError) -> None:
        """The connection has ended: everything in flight fails with it."""
        self._reader.release()
        request, self._in_flight = self._in_flight, deque()
        for each in request:
            each.fail(error)
