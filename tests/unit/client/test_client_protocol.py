"""One connection without I/O: versions are agreed on, answers find their requests, nonsense is noticed."""

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


class Talk:
    """A protocol, and what it told."""

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

    def agree(self):
        feed(self.protocol, frame(1, encode(self.versions, 4)))
        assert self.events == ["ready"]
        self.events.clear()
        return self

    def ask(self, request=None, deadline_ms=100.0):
        request = request or MetadataRequest(topics=[])
        version = self.protocol.version_for(type(request))

        def deliver(version, body):
            self.events.append((version, decode(MetadataResponse, version, bytes(body))[0].cluster_id))

        return self.protocol.request(request, version, MetadataResponse, deliver, self.fail, deadline_ms)


def answer(correlation_id, name, version=13):
    return frame(correlation_id, encode(MetadataResponse(cluster_id=name), version), flexible=version >= 9)


def test_the_first_request_is_api_versions():
    talk = Talk()
    size, key, version, correlation_id, client_id_size = unpack_from(">ihhih", talk.start_negotiation)
    assert (size, key, version, correlation_id, client_id_size) == (
        len(talk.start_negotiation) - 4,
        18,
        ApiVersionsRequest.MAX_VERSION,
        1,
        2,
    )
    assert talk.start_negotiation[14:17] == b"me\0"


def test_a_broker_that_is_older_says_so_in_version_0():
    talk = Talk()
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 2)])
    feed(talk.protocol, frame(1, encode(refusal, 0)))
    ((kind, again),) = talk.events
    assert kind == "retry"
    assert unpack_from(">hhi", again, 4) == (18, 2, 2)
    talk.events.clear()
    feed(talk.protocol, frame(2, encode(talk.versions, 2)))
    assert talk.events == ["ready"]


@pytest.mark.parametrize("piece", [1, 3, None])
def test_answers_find_their_requests(piece):
    """Whole, in bits, and byte by byte."""
    talk = Talk().agree()
    requests = [talk.ask(), talk.ask()]
    assert [unpack_from(">hhi", data, 4) for data in requests] == [(METADATA, 13, 2), (METADATA, 13, 3)]
    assert talk.protocol.in_flight == 2
    feed(talk.protocol, answer(2, "one") + answer(3, "two"), piece)
    assert talk.events == [(13, "one"), (13, "two")]
    assert talk.protocol.in_flight == 0


def test_the_highest_version_of_both_is_taken():
    talk = Talk(((METADATA, 2, 7),)).agree()
    assert talk.protocol.version_for(MetadataRequest) == 7
    assert talk.protocol.version_for(MetadataRequest, 5) == 5
    talk.ask()
    feed(talk.protocol, answer(2, "old", 7))
    assert talk.events == [(7, "old")]


def test_what_the_broker_cannot():
    talk = Talk(((METADATA, 14, 15),)).agree()
    assert not talk.protocol.supports(OffsetDeleteRequest)
    with pytest.raises(UnsupportedVersionError, match="OffsetDelete: not supported by the broker"):
        talk.protocol.version_for(OffsetDeleteRequest)
    with pytest.raises(UnsupportedVersionError, match=r"Metadata: no common version \(broker 14-15, client 0-13\)"):
        talk.protocol.version_for(MetadataRequest)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (answer(9, "x"), MalformedMessage),
        (pack(">i", -5), BadFrame),
        (frame(2, b"\xff\xff", flexible=True), MalformedMessage),
        (answer(2, "x") + answer(3, "y"), MalformedMessage),
    ],
)
def test_nonsense_is_noticed(data, error):
    talk = Talk().agree()
    talk.ask()
    with pytest.raises(error):
        feed(talk.protocol, data)


def test_what_was_in_flight_hears_of_the_end():
    talk = Talk().agree()
    talk.ask()
    talk.ask()
    reason = DisconnectedError("gone")
    talk.protocol.fail_all(reason)
    assert talk.events == [reason, reason]
    assert talk.protocol.in_flight == 0


def test_deadlines():
    talk = Talk().agree()
    talk.ask(deadline_ms=100)
    talk.ask(deadline_ms=50)
    assert talk.protocol.next_deadline_ms == 50
    assert talk.protocol.expired_request(49) is None
    assert talk.protocol.expired_request(50).correlation_id == 3
