"""BrokerProtocol: version negotiation, matching of responses, invalid data."""

from struct import pack, unpack_from

import pytest

from ottla.client.errors import DisconnectedError, UnsupportedVersionError
from ottla.client.protocol import BrokerProtocol
from ottla.wire.errors import MalformedMessage
from ottla.wire.framing import BadFrame, ReceiveBufferPool
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.schema import decode, encode

METADATA = 3


def frame(correlation_id, body, *, flexible=False):
    head = pack(">i", correlation_id) + (b"\0" if flexible else b"")
    return pack(">i", len(head) + len(body)) + head + body


def feed(protocol, data, piece=None):
    while data:
        buffer = protocol.get_buffer(-1)
        size = min(len(data), len(buffer), piece or len(data))
        buffer[:size] = data[:size]
        protocol.received(size)
        data = data[size:]


class NegotiatedProtocol:
    """A BrokerProtocol and the events it reported."""

    def __init__(self, ranges=((18, 0, 4), (METADATA, 0, 13))):
        self.events = []
        self.protocol = BrokerProtocol("me", ReceiveBufferPool())
        self.start_negotiation = self.protocol.start_negotiation(
            lambda: self.events.append("ready"),
            lambda data: self.events.append(("retry", data)),
            self.fail,
            deadline_ms=5,
        )
        self.versions = ApiVersionsResponse(api_keys=[ApiVersion(*each) for each in ranges])

    def fail(self, error):
        self.events.append(error)

    def negotiate(self):
        feed(self.protocol, frame(1, encode(self.versions, 4)))
        assert self.events == ["ready"]
        self.events.clear()
        return self

    def send_request(self, request=None, deadline_ms=100.0):
        request = request or MetadataRequest(topics=[])
        version = self.protocol.version_for(type(request))

        def deliver(version, body):
            self.events.append((version, decode(MetadataResponse, version, bytes(body))[0].cluster_id))

        return self.protocol.request(request, version, MetadataResponse, deliver, self.fail, deadline_ms)


def response_frame(correlation_id, name, version=13):
    return frame(correlation_id, encode(MetadataResponse(cluster_id=name), version), flexible=version >= 9)


def test_first_request_is_api_versions():
    peer = NegotiatedProtocol()
    size, key, version, correlation_id, client_id_size = unpack_from(">ihhih", peer.start_negotiation)
    assert (size, key, version, correlation_id, client_id_size) == (
        len(peer.start_negotiation) - 4,
        18,
        ApiVersionsRequest.MAX_VERSION,
        1,
        2,
    )
    assert peer.start_negotiation[14:17] == b"me\0"


def test_negotiation_retries_with_an_older_version():
    peer = NegotiatedProtocol()
    error_response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 2)])
    feed(peer.protocol, frame(1, encode(error_response, 0)))
    ((kind, again),) = peer.events
    assert kind == "retry"
    assert unpack_from(">hhi", again, 4) == (18, 2, 2)
    peer.events.clear()
    feed(peer.protocol, frame(2, encode(peer.versions, 2)))
    assert peer.events == ["ready"]


@pytest.mark.parametrize("piece", [1, 3, None])
def test_responses_are_matched_to_requests(piece):
    """In one piece, in several, and byte by byte."""
    peer = NegotiatedProtocol().negotiate()
    requests = [peer.send_request(), peer.send_request()]
    assert [unpack_from(">hhi", data, 4) for data in requests] == [(METADATA, 13, 2), (METADATA, 13, 3)]
    assert peer.protocol.in_flight == 2
    feed(peer.protocol, response_frame(2, "one") + response_frame(3, "two"), piece)
    assert peer.events == [(13, "one"), (13, "two")]
    assert peer.protocol.in_flight == 0


def test_highest_common_version_is_used():
    peer = NegotiatedProtocol(((METADATA, 2, 7),)).negotiate()
    assert peer.protocol.version_for(MetadataRequest) == 7
    assert peer.protocol.version_for(MetadataRequest, 5) == 5
    peer.send_request()
    feed(peer.protocol, response_frame(2, "old", 7))
    assert peer.events == [(7, "old")]


def test_unsupported_apis_raise():
    peer = NegotiatedProtocol(((METADATA, 14, 15),)).negotiate()
    assert not peer.protocol.supports(OffsetDeleteRequest)
    with pytest.raises(UnsupportedVersionError, match="OffsetDelete: not supported by the broker"):
        peer.protocol.version_for(OffsetDeleteRequest)
    with pytest.raises(UnsupportedVersionError, match=r"Metadata: no common version \(broker 14-15, client 0-13\)"):
        peer.protocol.version_for(MetadataRequest)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (response_frame(9, "x"), MalformedMessage),
        (pack(">i", -5), BadFrame),
        (frame(2, b"\xff\xff", flexible=True), MalformedMessage),
        (response_frame(2, "x") + response_frame(3, "y"), MalformedMessage),
    ],
)
def test_invalid_responses_raise(data, error):
    peer = NegotiatedProtocol().negotiate()
    peer.send_request()
    with pytest.raises(error):
        feed(peer.protocol, data)


def test_requests_in_flight_fail_when_the_connection_is_lost():
    peer = NegotiatedProtocol().negotiate()
    peer.send_request()
    peer.send_request()
    reason = DisconnectedError("gone")
    peer.protocol.fail_all(reason)
    assert peer.events == [reason, reason]
    assert peer.protocol.in_flight == 0


def test_expired_requests_are_found():
    peer = NegotiatedProtocol().negotiate()
    peer.send_request(deadline_ms=100)
    peer.send_request(deadline_ms=50)
    assert peer.protocol.next_deadline_ms == 50
    assert peer.protocol.expired_request(49) is None
    assert peer.protocol.expired_request(50).correlation_id == 3
