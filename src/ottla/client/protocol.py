"""The protocol of one connection, without I/O: requests to bytes, received bytes to responses.

A broker responds in the order of the requests. Versions are negotiated once, with ApiVersions; each request then uses
the highest version that both sides support.
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
"""Upper limit of a response. fetch.max.bytes is 50 MiB by default, and a batch may exceed it."""
SOFTWARE_NAME = "ottla-client"
SOFTWARE_VERSION = "0.1.0"

_head = Struct(">ihhih").pack
_correlation = Struct(">i").unpack_from

OnResponse = Callable[[int, bytes | memoryview], None]
"""Called with a response's version and body."""


class InFlightRequest:
    """A request that waits for its response."""

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
    """`start_negotiation` and `request` return bytes to send; received bytes go through `get_buffer` and `received`."""

    def __init__(self, client_id: str, buffers: ReceiveBufferPool) -> None:
        self._client_id = client_id.encode()
        self._reader = FrameReader(buffers, FRAME_BYTES_MAX, self._on_frame)
        self._in_flight: deque[InFlightRequest] = deque()
        self._next_correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._chosen: dict[int, int] = {}
        self.get_buffer = self._reader.get_buffer
        self.received = self._reader.received
        """Raises BadFrame or MalformedMessage if the stream is invalid; close the connection then."""
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
        """Return the first request.

        A broker that does not support its version responds in version 0; `on_retry` then gets the bytes of the next
        attempt.
        """

        def deliver(sent: int, body: bytes | memoryview) -> None:
            if sent and int.from_bytes(body[:2], "big") == ErrorCode.UNSUPPORTED_VERSION:
                response, _ = decode(ApiVersionsResponse, 0, body)
                offered = {entry.api_key: entry.max_version for entry in response.api_keys}
                lower = min(offered.get(ApiVersionsRequest.API_KEY, 0), sent - 1)
                on_retry(self.start_negotiation(on_ready, on_retry, fail, deadline_ms, lower))
                return
            response, _ = decode(ApiVersionsResponse, sent, body)
            if response.error_code:
                fail(UnsupportedVersionError(f"ApiVersions failed with error {response.error_code}."))
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
        """Return the highest common version. Raises UnsupportedVersionError if there is none."""
        if version_max is None:
            chosen = self._chosen.get(request.API_KEY)
            if chosen is not None:
                return chosen
        low, high = self._versions.get(request.API_KEY, (0, -1))
        version = min(high, request.MAX_VERSION if version_max is None else min(version_max, request.MAX_VERSION))
        if version < max(low, request.MIN_VERSION):
            name = request.__name__.removesuffix("Request")
            if high < low:
                raise UnsupportedVersionError(f"{name}: not supported by the broker.")
            ours = f"{request.MIN_VERSION}-{request.MAX_VERSION if version_max is None else version_max}"
            raise UnsupportedVersionError(f"{name}: no common version (broker {low}-{high}, client {ours}).")
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
        """Return the frame of a request. Without a `response_type` (acks=0) no response is expected."""
        flexible = version >= request.FLEXIBLE_FROM
        body = encode(request, version)
        if response_type is None:
            return self._head(request.API_KEY, version, flexible, len(body)) + body
        # ApiVersions responses never have header tags: the client may not know the version yet.
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
            raise MalformedMessage("unexpected response: no request is in flight")
        request = self._in_flight[0]
        (correlation_id,) = _correlation(buffer, start)
        if correlation_id != request.correlation_id:
            raise MalformedMessage(f"correlation id {correlation_id} instead of {request.correlation_id}")
        self._in_flight.popleft()
        position = skip_tags(buffer, start + 4, end) if request.is_flexible else start + 4
        try:
            request.deliver(request.version, self._reader.retain(view, position, end))
        except MalformedMessage as error:
            request.fail(DisconnectedError(f"Invalid response from the broker: {error}."))
            raise
        return True

    def expired_request(self, now_ms: float) -> InFlightRequest | None:
        """Return a request past its deadline. The connection is unusable then, as responses come in order."""
        return next((request for request in self._in_flight if request.deadline_ms <= now_ms), None)

    def fail_all(self, error: ClientError) -> None:
        """Fail all requests in flight, after the connection was lost."""
        self._reader.release()
        requests, self._in_flight = self._in_flight, deque()
        for request in requests:
            request.fail(error)
