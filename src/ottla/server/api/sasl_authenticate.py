"""SaslAuthenticate (key 36), versions 0–2: rejected, as no listener authenticates clients yet."""

from ottla.base.decision import RequestContext
from ottla.base.errors import ErrorCode
from ottla.runtime.broker import Broker
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

REQUEST = SaslAuthenticateRequest


def handle(
    broker: Broker, context: RequestContext, request: SaslAuthenticateRequest, version: int
) -> SaslAuthenticateResponse:
    message = f"listener {context.listener} does not authenticate clients"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
