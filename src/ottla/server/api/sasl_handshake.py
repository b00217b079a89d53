"""SaslHandshake (key 17), versions 0–1: rejected, as no listener authenticates clients yet."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

REQUEST = SaslHandshakeRequest


def handle(
    broker: Broker, context: RequestContext, request: SaslHandshakeRequest, version: int
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
